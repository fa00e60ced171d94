//! What a channel's task is to do: which agent gets what is said, and how long a burst is waited for. It is decided when the
//! task begins, with the caller's scopes and `channels.yaml` at hand, and stored as its routing decision: a turn knows neither.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use switchboard_a2a::Json;
use switchboard_engine::AgentName;

use crate::routing::DecidedBy;

/// The agent that hands on what channels say.
pub const CHANNEL: &str = "~channel";

/// The plan of a channel's task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChannelPlan {
    agent: String,
    /// What has decided.
    by: DecidedBy,
    /// The skill that is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    #[serde(default)]
    mode: String,
    targets: Vec<String>,
    debounce_ms: u64,
    max_debounce_ms: u64,
}

impl ChannelPlan {
    /// That an agent gets it.
    pub fn new(target: &AgentName, by: DecidedBy, skill: Option<String>, debounce: (Duration, Duration)) -> Self {
        let milliseconds = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        Self {
            agent: CHANNEL.to_owned(),
            by,
            skill,
            mode: "single".to_owned(),
            targets: vec![target.to_string()],
            debounce_ms: milliseconds(debounce.0),
            max_debounce_ms: milliseconds(debounce.1),
        }
    }

    /// Of a stored decision.
    pub fn read(decision: &Json) -> Option<Self> {
        decision.read().ok()
    }

    /// The agent that gets it.
    pub fn target(&self) -> Option<AgentName> {
        self.targets.first().map(|name| AgentName::from(name.as_str()))
    }

    /// How long it has to be quiet before what was said is handed on.
    pub(crate) fn debounce(&self) -> Duration {
        Duration::from_millis(self.debounce_ms)
    }

    /// The longest that is waited for that.
    pub(crate) fn max_debounce(&self) -> Duration {
        Duration::from_millis(self.max_debounce_ms)
    }
}
