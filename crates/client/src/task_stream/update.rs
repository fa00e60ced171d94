//! The updates of a task stream: events, lost connections, and gaps.

use switchboard_a2a::{StreamResponse, TaskId};
use thiserror::Error;

/// Events of a task are missing and cannot be recovered.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("part of what happened to task {task} is missing: {missing}")]
pub struct StreamGap {
    /// The task.
    pub task: TaskId,
    /// What is missing.
    pub missing: GapReason,
}

/// Why there is a gap.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GapReason {
    /// The chunks of an artifact do not match what the agent has.
    #[error("artifact {0} did not arrive in the order in which it was made")]
    Artifact(String),
    /// The agent no longer has what it sent before.
    #[error("the agent no longer knows of {0}, which it had told before")]
    Forgotten(String),
    /// The agent no longer has the task.
    #[error("the agent no longer knows the task ({0})")]
    TaskNotFound(String),
    /// The connection was lost, and the missed events cannot be fetched.
    #[error("the connection was lost, and the agent does not tell what was missed ({0})")]
    Unknown(String),
}

/// An update of a task stream.
#[derive(Clone, Debug)]
pub enum Update {
    /// An event of the agent.
    Event(Box<StreamResponse>),
    /// The connection was lost; the stream reconnects.
    Lost {
        /// The reason.
        why: String,
        /// How often in a row.
        attempt: u32,
    },
    /// Events are missing; the stream continues with the task as it is now.
    Gap(StreamGap),
}
