//! What the guard refuses: why, and the chain in words.

use std::fmt::Write;

use switchboard_a2a::{Json, Metadata};

use super::chain::Hop;
use crate::ids::{AgentName, CallerId};
use crate::reason::{REASON_DETAIL_KEY, Reason};

/// Called for every refusal, with the caller that it is of: of a task's calls the one that pays for it.
pub type RefusalListener = Box<dyn Fn(&DelegationRefused, &CallerId) + Send + Sync>;

/// Why a call or a message was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefusalKind {
    /// The chain is too long.
    Depth,
    /// The agent is in the chain too often.
    Loop,
    /// The task, or the tree, has started too many.
    Breadth,
    /// The agent is not among those that the calling one may call.
    NotAllowed,
    /// The child would wait for what its ancestor has until the child ends.
    Deadlock,
}

impl RefusalKind {
    /// Its word in metadata and errors.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Depth => "delegation_depth",
            Self::Loop => "delegation_loop",
            Self::Breadth => "delegation_breadth",
            Self::NotAllowed => "delegation_not_allowed",
            Self::Deadlock => "delegation_deadlock",
        }
    }

    /// The metadata of a status that refuses for it.
    pub(crate) fn metadata(self) -> Metadata {
        let mut metadata = Reason::Rejected.metadata().unwrap_or_default();
        if let Ok(detail) = Json::from_serialize(self.as_str()) {
            metadata.insert(REASON_DETAIL_KEY, detail);
        }
        metadata
    }
}

/// A call or a message that was refused before anything started.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{problem}")]
pub struct DelegationRefused {
    /// Why.
    pub kind: RefusalKind,
    /// The agent that was asked for; empty if only the count was too high.
    pub to: String,
    /// The agents of the chain, the root's first; those on other servers with the id of their server.
    pub chain: Vec<String>,
    /// All of it in words, with what would be right.
    pub problem: String,
}

impl DelegationRefused {
    pub(super) fn new(kind: RefusalKind, node: &str, to: &AgentName, hops: &[Hop], problem: &str) -> Self {
        let chain: Vec<String> = hops.iter().map(|hop| shown(hop, node)).collect();
        let mut words = format!("{problem}; the chain is ");
        for name in &chain {
            // Writing into a string cannot fail.
            let _ = write!(words, "{name} → ");
        }
        words.push_str(to.as_str());
        Self { kind, to: to.to_string(), chain, problem: words }
    }

    /// What is refused of one task, whatever chain it is in.
    pub(super) fn of_task(kind: RefusalKind, to: &AgentName, problem: String) -> Self {
        Self { kind, to: to.to_string(), chain: Vec::new(), problem }
    }

    /// A count that the store refused.
    pub(crate) fn breadth(problem: String) -> Self {
        Self { kind: RefusalKind::Breadth, to: String::new(), chain: Vec::new(), problem }
    }
}

/// Names of other servers are claims, so they are cut to what a line can hold.
fn shown(hop: &Hop, node: &str) -> String {
    const SHOWN: usize = 64;
    let cut =
        |text: &str, most: usize| text.chars().filter(|letter| !letter.is_control()).take(most).collect::<String>();
    let agent = cut(&hop.agent, SHOWN);
    if hop.node == node { agent } else { format!("{agent}@{}", cut(&hop.node, 8)) }
}
