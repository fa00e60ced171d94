//! `blast-v1`: on a card, how far the effects of each skill reach (its blast radius). The farther, the more review.

use std::collections::BTreeMap;

use serde::Serialize;

use super::card_params;
use crate::card::{AgentCard, AgentExtension};

/// The extension's URI.
pub const URI: &str = "https://proto-labs.ai/a2a/ext/blast-v1";

/// How far the effects of a skill reach, from near to far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Radius {
    /// The agent itself.
    #[serde(rename = "self")]
    Own,
    /// One project.
    Project,
    /// A repository.
    Repo,
    /// All agents.
    Fleet,
    /// Everybody.
    Public,
}

impl Radius {
    /// All of them, from near to far. Their indexes are the numbers that cards may use instead of names.
    pub const ALL: [Self; 5] = [Self::Own, Self::Project, Self::Repo, Self::Fleet, Self::Public];

    /// Its name on cards and in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Own => "self",
            Self::Project => "project",
            Self::Repo => "repo",
            Self::Fleet => "fleet",
            Self::Public => "public",
        }
    }

    /// The radius of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|radius| radius.name() == name)
    }
}

#[derive(Serialize)]
struct SkillRadius {
    radius: Radius,
}

/// The radius that a card declares for each skill.
pub fn declared_radii(card: &AgentCard) -> BTreeMap<String, Radius> {
    card_params::of_skills(card, URI, |said, _| match said.text(&["radius"]) {
        Some(name) => Radius::from_name(&name),
        None => Radius::ALL.get(usize::try_from(said.count(&["radius"])?).ok()?).copied(),
    })
}

/// The extension for a card.
pub fn extension(radii: &BTreeMap<String, Radius>) -> AgentExtension {
    let skills = radii.iter().map(|(skill, radius)| (skill.clone(), SkillRadius { radius: *radius })).collect();
    card_params::extension(URI, &skills)
}
