//! What an experiment compares, as it is stored.

use serde::{Deserialize, Serialize};
use switchboard_a2a::Timestamp;
use switchboard_engine::store::hub::RegistrationRow;
use switchboard_engine::{AgentName, CallerId};

/// Two agents at one skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Definition {
    pub(crate) skill: String,
    /// The agent that has served it so far.
    pub(crate) control: String,
    /// The one that is tried.
    pub(crate) challenger: String,
    /// Tasks of each that have to end before one wins.
    pub(crate) n: u64,
}

/// A definition that is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Defined {
    pub(crate) definition: Definition,
    /// Tells it apart from an earlier one with the same skill.
    pub(crate) version: u64,
    pub(crate) owner: CallerId,
    /// Since when.
    pub(crate) at: Timestamp,
}

impl Definition {
    /// Whether it compares this agent.
    pub(crate) fn names(&self, agent: &AgentName) -> bool {
        [&self.control, &self.challenger].iter().any(|name| *name == agent.as_str())
    }
}

impl Defined {
    pub(crate) fn read(row: &RegistrationRow) -> Option<Self> {
        let definition = serde_json::from_slice(&row.body).ok()?;
        Some(Self { definition, version: row.version, owner: row.owner.clone(), at: row.at })
    }
}
