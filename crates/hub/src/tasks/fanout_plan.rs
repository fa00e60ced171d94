//! What a fan-out is to do: which agents get the message, and how many of them have to complete it.
//!
//! Routing decides it once, with the caller's scopes at hand, and it is stored with the message as part of the routing
//! decision (`switchboard/routing`): a turn knows no scopes, and one that is recovered must call the same agents.

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use switchboard_engine::AgentName;

/// The agent that carries fan-outs out.
pub const FANOUT: &str = "~fanout";

/// The targets of a fan-out and its policy. Its JSON form is two members, `targets` and `policy`, of the routing decision;
/// other members beside them are left alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FanoutPlan {
    /// The agents, in the order in which they were asked for.
    #[serde(with = "names")]
    pub targets: Vec<AgentName>,
    /// When it is done.
    #[serde(default, with = "policy_text")]
    pub policy: FanoutPolicy,
}

/// When a fan-out is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FanoutPolicy {
    /// When all children have ended; it completes if all of them did.
    #[default]
    All,
    /// When one has completed; the others are canceled.
    First,
    /// When so many have completed, else more than half of them; the others are canceled.
    Quorum(Option<NonZeroUsize>),
    /// One child after the other until one completes.
    Failover,
}

/// A text that names no policy.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not a fan-out policy: all, first, quorum, quorum:N (N at least 1) and failover are")]
pub struct UnknownPolicy(String);

impl FanoutPolicy {
    /// How many of so many children have to complete.
    pub fn needed(self, children: usize) -> usize {
        match self {
            Self::All => children,
            Self::First | Self::Failover => 1,
            Self::Quorum(None) => children / 2 + 1,
            Self::Quorum(Some(count)) => count.get(),
        }
    }

    /// Its name without a number, as a label of metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::First => "first",
            Self::Quorum(_) => "quorum",
            Self::Failover => "failover",
        }
    }
}

impl fmt::Display for FanoutPolicy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quorum(Some(count)) => write!(formatter, "quorum:{count}"),
            other => formatter.write_str(other.name()),
        }
    }
}

impl FromStr for FanoutPolicy {
    type Err = UnknownPolicy;

    fn from_str(text: &str) -> Result<Self, UnknownPolicy> {
        let unknown = || UnknownPolicy(text.to_owned());
        match text.split_once(':') {
            None => [Self::All, Self::First, Self::Quorum(None), Self::Failover]
                .into_iter()
                .find(|policy| policy.name() == text)
                .ok_or_else(unknown),
            Some(("quorum", count)) => Ok(Self::Quorum(Some(count.parse().map_err(|_| unknown())?))),
            Some(_) => Err(unknown()),
        }
    }
}

mod names {
    use serde::{Deserialize, Deserializer, Serializer};
    use switchboard_engine::AgentName;

    pub(super) fn serialize<S: Serializer>(names: &[AgentName], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(names.iter().map(AgentName::as_str))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<AgentName>, D::Error> {
        Ok(Vec::<String>::deserialize(deserializer)?.into_iter().map(AgentName::from).collect())
    }
}

mod policy_text {
    use serde::{Deserialize, Deserializer, Serializer, de};

    use super::FanoutPolicy;

    pub(super) fn serialize<S: Serializer>(policy: &FanoutPolicy, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(policy)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<FanoutPolicy, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}
