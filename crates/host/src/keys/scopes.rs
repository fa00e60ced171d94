//! What a key allows, as it is stored and shown.

use serde::{Deserialize, Serialize};
use switchboard_engine::{AgentName, AgentScope, Scopes};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyScopes {
    pub agents: KeyAgents,
    /// Whether it may use the operator API.
    pub admin: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum KeyAgents {
    /// Every one, also those added later.
    All,
    Only(Vec<String>),
}

impl KeyAgents {
    pub fn shown(&self) -> String {
        match self {
            Self::All => "all".to_owned(),
            Self::Only(names) => names.join(","),
        }
    }
}

impl From<KeyScopes> for Scopes {
    fn from(scopes: KeyScopes) -> Self {
        let agents = match scopes.agents {
            KeyAgents::All => AgentScope::All,
            KeyAgents::Only(names) => AgentScope::Only(names.into_iter().map(AgentName::from).collect()),
        };
        Self { agents, admin: scopes.admin }
    }
}
