//! Routing: which agent gets a message to the root address that begins a new task.
//!
//! The first of these decides: the targets that the caller names, the agent that the conversation was with, the skill,
//! a keyword of the text, the default agent. It is a function without I/O over a view of the agents, asked once per
//! message; what it decides is stored with the message, so that a recovered turn does the same.

pub mod choice;
mod configured;
mod cooldown_key;
mod decision;
pub mod directory;
pub mod drops;
pub mod keywords;
pub mod rendezvous;
pub mod roster_view;
mod signals;
mod targets;

pub use choice::{Choice, RoutingQuery, choose};
pub use decision::{DecidedBy, Decision};
pub use directory::{AgentSignals, NoSignals, RoutingDirectory};
pub use drops::{DropReason, Drops};
pub use keywords::{KeywordMatch, KeywordRule};
pub use roster_view::{AgentView, Availability, Experiment, RosterView, Track};
pub use signals::RoutingSignals;
pub(crate) use targets::ALL;

use std::collections::BTreeMap;
use std::time::Duration;

use switchboard_engine::AgentName;

/// The rules of an operator.
#[derive(Clone, Debug, Default)]
pub struct RoutingRules {
    /// The default agent, in place of that of the root address.
    pub helm: Option<AgentName>,
    /// Whether a skill that no agent has is refused, and not served by the default agent.
    pub refuse_unknown_skills: bool,
    /// The first that matches counts.
    pub keywords: Vec<KeywordRule>,
    /// By skill: for how long the same work is not done again.
    pub cooldowns: BTreeMap<String, Duration>,
    /// How many agents a message may fan out to.
    pub max_targets: usize,
}
