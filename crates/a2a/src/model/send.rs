//! What a caller sends.

mod read;

use serde::{Deserialize, Serialize};

use crate::{Message, Metadata, Task, TaskState};

pub(crate) use read::{ConfigurationWire, PushWire, resource_name};

/// A request to send one message.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SendRequest {
    /// Which agent, where one address serves many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The message.
    pub message: Message,
    /// How to answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configuration: Option<SendConfiguration>,
    /// Anything else about the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

/// How the caller wants its answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SendConfiguration {
    /// Media types the caller can read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub accepted_output_modes: Vec<String>,
    /// A webhook to register with the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_push_notification_config: Option<PushConfig>,
    /// How much history to answer with: absent is all, zero is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history_length: Option<u32>,
    /// Whether to answer as soon as the task exists instead of waiting for it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub return_immediately: bool,
}

/// What a sent message is answered with.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum SendResponse {
    /// The task that does the work.
    Task(Task),
    /// A direct reply.
    Message(Message),
}

impl SendResponse {
    /// The task, unless it is a direct reply.
    pub fn task(&self) -> Option<&Task> {
        match self {
            Self::Task(task) => Some(task),
            Self::Message(_) => None,
        }
    }

    /// The state of the task.
    pub fn state(&self) -> Option<TaskState> {
        self.task().map(|task| task.status.state)
    }

    /// Whether it is a direct reply or a completed task.
    pub fn is_success(&self) -> bool {
        self.state().is_none_or(|state| state == TaskState::Completed)
    }
}

/// Where to tell a caller of changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "PushWire")]
pub struct PushConfig {
    /// Which agent, where one address serves many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Names the configuration within its task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The task; absent when given with a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// Where to send to.
    pub url: String,
    /// Sent back to the receiver so that it knows us.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// What to authenticate with at the receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authentication: Option<AuthenticationInfo>,
    /// What to send, if not what its version says. An addition of ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<PushPayload>,
}

/// What a receiver is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PushPayload {
    /// The whole task as of the event.
    Task,
    /// The change of status, with what the task has made once it is completed.
    StatusUpdate,
    /// What a stream would carry.
    StreamResponse,
}

/// An HTTP authentication scheme and its credentials.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "read::AuthenticationWire")]
pub struct AuthenticationInfo {
    /// `Bearer`, `Basic` and the like.
    pub scheme: String,
    /// What follows the scheme.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials: Option<String>,
}
