//! Names of agents. They are path segments (`/a2a/{agent}/…`) and targets, so they are plain and may not be a reserved word.

use std::fmt;

use serde::Serialize;

use crate::config::problem::Mismatch;
use crate::config::value::Scalar;
use crate::json_schema_of;

/// Words with another meaning where an agent's name is expected: segments of paths below `/a2a` and `/api/agents`, and the
/// target that stands for every agent.
const RESERVED: [&str; 10] = [
    "v1",
    "tasks",
    "jsonrpc",
    "message:send",
    "message:stream",
    "extendedAgentCard",
    ".well-known",
    "agents",
    "runtime",
    "all",
];

/// The longest name: a label of a host name, so that an agent can get a host of its own.
const LONGEST: usize = 63;

/// The name of an agent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct AgentName(String);

impl AgentName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AgentName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Scalar for AgentName {
    const WRITE: &'static str = "a name of lowercase letters, digits and -, such as code-review";

    fn from_text(text: &str) -> Result<Self, Mismatch> {
        if RESERVED.contains(&text) {
            return Err(Mismatch::new(
                format!("\"{text}\" is reserved, because it means something else where agents are named"),
                format!("choose another name; reserved are {}", RESERVED.join(", ")),
            ));
        }
        let allowed = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
        let well_formed = text.starts_with(allowed) && text.chars().all(|letter| allowed(letter) || letter == '-');
        if !well_formed || text.len() > LONGEST {
            return Err(Mismatch::new(
                format!("\"{text}\" cannot be an agent's name"),
                format!("write {}; it begins with a letter or digit and has at most {LONGEST} characters", Self::WRITE),
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

json_schema_of!(AgentName, { "type": "string", "pattern": "^[a-z0-9][a-z0-9-]{0,62}$", "not": { "enum": RESERVED } });
