//! Which agents an agent may call: `delegates: [name, name/skill, "remote:*"]`.

use std::fmt;
use std::str::FromStr;

use crate::ids::AgentName;
use crate::manifest::Execution;

/// Whose permission a call needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DelegationScope {
    /// The calling agent's list.
    #[default]
    Agent,
    /// The payer's key as well, as it is when the call is made.
    Both,
}

/// The agents that an agent may call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Delegates {
    /// Every one: for agents that are part of the program, whose author decides what they call.
    #[default]
    All,
    /// These only.
    Only(Vec<Delegate>),
}

/// One entry of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delegate {
    /// An agent, with any skill.
    Agent(AgentName),
    /// An agent, with one skill only.
    Skill(AgentName, String),
    /// Every agent on another server.
    Remote,
}

/// A text that is no entry of the list.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} names no agents: the name of an agent, NAME/SKILL and remote:* do")]
pub struct UnknownDelegate(String);

impl Delegates {
    /// Whether there is an agent that may be called.
    pub fn is_none(&self) -> bool {
        matches!(self, Self::Only(entries) if entries.is_empty())
    }

    /// The entries of the list; none if every agent may be called.
    pub fn entries(&self) -> Option<&[Delegate]> {
        match self {
            Self::All => None,
            Self::Only(entries) => Some(entries),
        }
    }

    /// Whether an agent may be called at all, if only for some skill.
    pub fn name(&self, agent: &AgentName, execution: Execution) -> bool {
        let Self::Only(entries) = self else { return true };
        entries.iter().any(|entry| match entry {
            Delegate::Agent(name) | Delegate::Skill(name, _) => name == agent,
            Delegate::Remote => execution == Execution::Remote,
        })
    }

    /// Whether an agent may be called for a skill.
    pub fn allow(&self, agent: &AgentName, execution: Execution, skill: Option<&str>) -> bool {
        let Self::Only(entries) = self else { return true };
        entries.iter().any(|entry| match entry {
            Delegate::Agent(name) => name == agent,
            Delegate::Skill(name, allowed) => name == agent && skill == Some(allowed),
            Delegate::Remote => execution == Execution::Remote,
        })
    }
}

impl fmt::Display for Delegate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agent(name) => formatter.write_str(name.as_str()),
            Self::Skill(name, skill) => write!(formatter, "{name}/{skill}"),
            Self::Remote => formatter.write_str("remote:*"),
        }
    }
}

impl FromStr for Delegate {
    type Err = UnknownDelegate;

    fn from_str(text: &str) -> Result<Self, UnknownDelegate> {
        let is_name = |name: &str| {
            !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        };
        match text.split_once('/') {
            _ if text == "remote:*" => Ok(Self::Remote),
            None if is_name(text) => Ok(Self::Agent(text.into())),
            Some((name, skill)) if is_name(name) && !skill.is_empty() => Ok(Self::Skill(name.into(), skill.to_owned())),
            _ => Err(UnknownDelegate(text.to_owned())),
        }
    }
}
