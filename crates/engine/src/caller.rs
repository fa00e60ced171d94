//! The caller of a request and its scopes.

use crate::ids::{AgentName, CallerId};

/// The identity every request is made under.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Owns the tasks it starts.
    pub id: CallerId,
    /// What it may do.
    pub scopes: Scopes,
}

impl Caller {
    /// The one caller of a server that runs open on loopback: all scopes.
    pub fn local() -> Self {
        Self { id: CallerId::from("local"), scopes: Scopes { agents: AgentScope::All, admin: true } }
    }
}

/// What a caller may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scopes {
    /// Which agents it may call.
    pub agents: AgentScope,
    /// Whether it may use the operator API.
    pub admin: bool,
}

/// Which agents a caller may call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentScope {
    /// Every one, also those added later.
    All,
    /// These only.
    Only(Vec<AgentName>),
}

impl AgentScope {
    /// Whether the agent is among them.
    pub fn allows(&self, agent: &AgentName) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => names.contains(agent),
        }
    }
}
