//! How far people take part in an agent's work: the words of `policy` in agent files and of `hub.inbox`.

use serde::{Serialize, Serializer};
use switchboard_a2a::extension::blast::Radius;
use switchboard_a2a::extension::hitl_mode::Mode;

use crate::config::problem::Mismatch;
use crate::config::value::{Scalar, choice};
use crate::{json_schema_of, word_setting};

/// How much people take part before and while a skill runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReviewMode(pub Mode);

/// How far the effects of a skill reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlastRadius(pub Radius);

/// What happens to a gate that nobody has decided in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum OnTimeout {
    /// The skill begins.
    Approve,
    /// The gate stays open until the question timeout.
    Escalate,
    /// The task is rejected.
    Reject,
}

/// The least that people take part, by radius.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(default, deny_unknown_fields))]
#[serde(rename_all = "camelCase")]
pub struct MinimumModes {
    /// For skills that change nothing but the agent.
    #[serde(rename = "self")]
    pub own: ReviewMode,
    /// For skills that change one project.
    pub project: ReviewMode,
    /// For skills that change a repository.
    pub repo: ReviewMode,
    /// For skills that change all agents.
    pub fleet: ReviewMode,
    /// For skills that everybody can see.
    pub public: ReviewMode,
}

impl MinimumModes {
    /// The least for a radius.
    pub fn of(&self, radius: Radius) -> Mode {
        let mode = match radius {
            Radius::Own => self.own,
            Radius::Project => self.project,
            Radius::Repo => self.repo,
            Radius::Fleet => self.fleet,
            Radius::Public => self.public,
        };
        mode.0
    }

    pub(crate) fn read(&mut self, section: &mut crate::config::section::Section<'_, '_>) {
        section.read("self", &mut self.own);
        section.read("project", &mut self.project);
        section.read("repo", &mut self.repo);
        section.read("fleet", &mut self.fleet);
        section.read("public", &mut self.public);
    }
}

impl Default for MinimumModes {
    fn default() -> Self {
        Self {
            own: ReviewMode(Mode::Autonomous),
            project: ReviewMode(Mode::Notification),
            repo: ReviewMode(Mode::Veto),
            fleet: ReviewMode(Mode::Gated),
            public: ReviewMode(Mode::Gated),
        }
    }
}

impl Scalar for ReviewMode {
    const WRITE: &'static str = "autonomous, notification, veto, gated or compound";

    fn from_text(text: &str) -> Result<Self, Mismatch> {
        choice(text, &Mode::ALL.map(|mode| (mode.name(), Self(mode))))
    }
}

impl Scalar for BlastRadius {
    const WRITE: &'static str = "self, project, repo, fleet or public";

    fn from_text(text: &str) -> Result<Self, Mismatch> {
        choice(text, &Radius::ALL.map(|radius| (radius.name(), Self(radius))))
    }
}

word_setting!(OnTimeout: "reject" => Reject, "approve" => Approve or "escalate" => Escalate);

impl Serialize for ReviewMode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.name())
    }
}

impl Serialize for BlastRadius {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.name())
    }
}

json_schema_of!(ReviewMode, { "enum": ["autonomous", "notification", "veto", "gated", "compound"] });

json_schema_of!(BlastRadius, { "enum": ["self", "project", "repo", "fleet", "public"] });
