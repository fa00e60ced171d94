//! What the kernel reads of a routing decision, which is the directory's to write: the skill that it has picked the agent
//! by, and the agents that one of the server's own hands the message on to. A keyword can pick a skill that no hint names,
//! and the agent has to work under it all the same.

use serde::Deserialize;
use switchboard_a2a::Json;

use crate::ids::AgentName;

/// A routing decision.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RoutingDecision {
    pub(crate) skill: Option<String>,
    targets: Vec<String>,
}

impl RoutingDecision {
    /// Of what is stored. What says nothing of these is as good as none.
    pub(crate) fn read(stored: Option<&Json>) -> Self {
        stored.and_then(|decision| decision.read().ok()).unwrap_or_default()
    }

    /// The agents that the message is handed on to.
    pub(crate) fn targets(self) -> impl Iterator<Item = AgentName> {
        self.targets.into_iter().map(AgentName::from)
    }
}
