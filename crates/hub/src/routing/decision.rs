//! How a message was routed, as it is stored with it and shown to its caller: `metadata["switchboard/routing"]`.

use serde::{Deserialize, Serialize};
use switchboard_a2a::Json;
use switchboard_engine::AgentName;

use crate::tasks::fanout_plan::FanoutPlan;

/// What has decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DecidedBy {
    /// The targets that the caller has named.
    Target,
    /// The agent that the conversation was with.
    Context,
    /// An experiment.
    Experiment,
    /// The skill.
    Skill,
    /// A keyword of the text.
    Keyword,
    /// Nothing else.
    Default,
}

impl DecidedBy {
    /// What has decided, of a decision as it is stored.
    pub(crate) fn of_stored(decision: &Json) -> Option<Self> {
        #[derive(Deserialize)]
        struct Stored {
            by: DecidedBy,
        }
        decision.read::<Stored>().ok().map(|stored| stored.by)
    }

    /// Its name in metadata and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::Context => "context",
            Self::Experiment => "experiment",
            Self::Skill => "skill",
            Self::Keyword => "keyword",
            Self::Default => "default",
        }
    }
}

/// How a message was routed.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The agent; for a fan-out the one that carries it out.
    pub agent: AgentName,
    /// What has decided.
    pub by: DecidedBy,
    /// The skill that was asked for, or that a keyword stands for.
    pub skill: Option<String>,
    /// The agents it was picked from.
    pub candidates: Vec<AgentName>,
    /// Agents that it would have been, or that would have been among its targets, were they not down.
    pub left_out: Vec<AgentName>,
    /// Its weight among them, where weights have decided.
    pub weight: Option<f64>,
    /// What a fan-out is to do.
    pub fanout: Option<FanoutPlan>,
}

impl Decision {
    pub(super) fn of(agent: &AgentName, by: DecidedBy, skill: Option<&str>) -> Self {
        let skill = skill.map(str::to_owned);
        Self {
            agent: agent.clone(),
            by,
            skill,
            candidates: Vec::new(),
            left_out: Vec::new(),
            weight: None,
            fanout: None,
        }
    }

    /// The form in which it is stored.
    pub fn to_json(&self) -> Option<Json> {
        #[derive(Serialize)]
        struct Wire<'a> {
            agent: &'a str,
            by: DecidedBy,
            #[serde(skip_serializing_if = "Option::is_none")]
            skill: Option<&'a str>,
            /// Whether one agent serves it, or several do.
            mode: &'static str,
            #[serde(skip_serializing_if = "Vec::is_empty")]
            candidates: Vec<&'a str>,
            #[serde(rename = "leftOut", skip_serializing_if = "Vec::is_empty")]
            left_out: Vec<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            weight: Option<f64>,
            #[serde(flatten)]
            fanout: Option<&'a FanoutPlan>,
        }
        let wire = Wire {
            agent: self.agent.as_str(),
            by: self.by,
            skill: self.skill.as_deref(),
            mode: if self.fanout.is_some() { "fanout" } else { "single" },
            candidates: self.candidates.iter().map(AgentName::as_str).collect(),
            left_out: self.left_out.iter().map(AgentName::as_str).collect(),
            weight: self.weight,
            fanout: self.fanout.as_ref(),
        };
        Json::from_serialize(&wire).ok()
    }
}
