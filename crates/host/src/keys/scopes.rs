//! What a key allows, as it is stored and shown.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use switchboard_engine::{AgentName, AgentScope, CallerRole, Scopes};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredScopes")]
pub struct KeyScopes {
    pub agents: KeyAgents,
    #[serde(serialize_with = "write_role")]
    pub role: CallerRole,
}

/// Scopes as any version has stored them: before there were roles, a key was an admin's or not.
#[derive(Deserialize)]
struct StoredScopes {
    agents: KeyAgents,
    #[serde(default, deserialize_with = "read_role")]
    role: Option<CallerRole>,
    #[serde(default)]
    admin: bool,
}

impl From<StoredScopes> for KeyScopes {
    fn from(stored: StoredScopes) -> Self {
        let before_roles = if stored.admin { CallerRole::Admin } else { CallerRole::None };
        Self { agents: stored.agents, role: stored.role.unwrap_or(before_roles) }
    }
}

fn read_role<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<CallerRole>, D::Error> {
    let name = String::deserialize(deserializer)?;
    name.parse().map(Some).map_err(serde::de::Error::custom)
}

fn write_role<S: Serializer>(role: &CallerRole, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(role.name())
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
        Self { agents, role: scopes.role }
    }
}
