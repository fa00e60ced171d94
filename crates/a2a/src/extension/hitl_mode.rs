//! `hitl-mode-v1`: on a card, how much people take part before and while a skill runs (human in the loop).

use std::collections::BTreeMap;

use serde::Serialize;

use super::card_params;
use crate::card::{AgentCard, AgentExtension};

/// The extension's URI.
pub const URI: &str = "https://proto-labs.ai/a2a/ext/hitl-mode-v1";

/// How much people take part, from not at all to at every checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Not at all.
    Autonomous,
    /// They are told.
    Notification,
    /// They may reject it for a while before it starts.
    Veto,
    /// It starts when they approve.
    Gated,
    /// As gated, and again at every checkpoint.
    Compound,
}

impl Mode {
    /// All of them, from the least to the most. Their indexes are the numbers that cards may use instead of names.
    pub const ALL: [Self; 5] = [Self::Autonomous, Self::Notification, Self::Veto, Self::Gated, Self::Compound];

    /// Its name on cards and in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Autonomous => "autonomous",
            Self::Notification => "notification",
            Self::Veto => "veto",
            Self::Gated => "gated",
            Self::Compound => "compound",
        }
    }

    /// The mode of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

/// What a skill asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    /// How much people take part.
    pub mode: Mode,
    /// For which of them the question is: `operator` or `caller`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reviewer: Option<String>,
    /// For how long a start can be vetoed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub veto_ttl_ms: Option<u64>,
}

/// The policy that a card declares for each skill.
pub fn declared_policies(card: &AgentCard) -> BTreeMap<String, Policy> {
    card_params::of_skills(card, URI, |said, _| {
        let mode = match said.text(&["mode"]) {
            Some(name) => Mode::from_name(&name),
            None => Mode::ALL.get(usize::try_from(said.count(&["mode"])?).ok()?).copied(),
        };
        let (reviewer, veto_ttl_ms) = (said.text(&["reviewer"]), said.count(&["vetoTtlMs"]));
        Some(Policy { mode: mode?, reviewer, veto_ttl_ms })
    })
}

/// The extension for a card.
pub fn extension(policies: &BTreeMap<String, Policy>) -> AgentExtension {
    card_params::extension(URI, policies)
}
