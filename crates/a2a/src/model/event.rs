//! What a stream carries.

mod read;

use serde::{Deserialize, Serialize};

use crate::lenient::{flag, or_default};
use crate::{Artifact, ContextId, Message, Metadata, Task, TaskId, TaskStatus};

pub(crate) use read::FrameKind;

/// A change of a task's status.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskStatusUpdate {
    /// The task.
    #[serde(alias = "task_id")]
    pub task_id: TaskId,
    /// Its conversation.
    #[serde(default, alias = "context_id", deserialize_with = "or_default")]
    pub context_id: ContextId,
    /// The new status.
    pub status: TaskStatus,
    /// Anything else about the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

/// A new artifact, or a further chunk of one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskArtifactUpdate {
    /// The task.
    #[serde(alias = "task_id")]
    pub task_id: TaskId,
    /// Its conversation.
    #[serde(default, alias = "context_id", deserialize_with = "or_default")]
    pub context_id: ContextId,
    /// The artifact or chunk.
    pub artifact: Artifact,
    /// Whether the parts go behind those already sent under this artifact id.
    #[serde(default, deserialize_with = "flag", skip_serializing_if = "std::ops::Not::not")]
    pub append: bool,
    /// Whether this ends the artifact.
    #[serde(default, alias = "last_chunk", deserialize_with = "flag", skip_serializing_if = "std::ops::Not::not")]
    pub last_chunk: bool,
    /// Anything else about the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

/// One frame of a stream: exactly one of four.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum StreamResponse {
    /// The whole task.
    Task(Task),
    /// A direct reply.
    Message(Message),
    /// A change of status.
    StatusUpdate(TaskStatusUpdate),
    /// A new artifact or chunk.
    ArtifactUpdate(TaskArtifactUpdate),
}
