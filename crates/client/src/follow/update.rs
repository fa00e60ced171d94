//! What a follower is told: events, that the connection was lost, and what is missing.

use switchboard_a2a::{StreamResponse, TaskId};
use thiserror::Error;

/// Part of a task's story is missing and cannot be had any more.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("part of what happened to task {task} is missing: {missing}")]
pub struct Gap {
    /// The task.
    pub task: TaskId,
    /// What is missing.
    pub missing: Missing,
}

/// What is missing of a task's story.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Missing {
    /// What came of an artifact is not how the agent has it.
    #[error("artifact {0} did not arrive in the order in which it was made")]
    Artifact(String),
    /// The agent no longer has what it said before.
    #[error("the agent no longer knows of {0}, which it had told before")]
    Forgotten(String),
    /// The connection was lost and the agent cannot be asked what was missed.
    #[error("the connection was lost, and the agent does not tell what was missed ({0})")]
    Unknown(String),
}

/// What a follower is told.
#[derive(Clone, Debug)]
pub enum Update {
    /// Something the agent said.
    Event(Box<StreamResponse>),
    /// The connection is lost and will be taken up again.
    Lost {
        /// What happened.
        why: String,
        /// How often in a row.
        attempt: u32,
    },
    /// Part of the story is missing; it goes on with how the task is now.
    Gap(Gap),
}
