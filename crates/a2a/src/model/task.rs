//! A task and its status.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::lenient::or_default;
use crate::{Artifact, ContextId, Message, Metadata, TaskId, Timestamp};

/// A unit of work of an agent for a caller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// Given by the server.
    pub id: TaskId,
    /// The conversation it belongs to; always sent, though v1.0 lets it be absent.
    #[serde(default, alias = "context_id", deserialize_with = "or_default")]
    pub context_id: ContextId,
    /// Its current status.
    pub status: TaskStatus,
    /// What it has produced.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// The messages, oldest first.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Message>,
    /// Anything else about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

/// A state, the message that came with it, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskStatus {
    /// The state.
    #[serde(default, deserialize_with = "or_default")]
    pub state: TaskState,
    /// What the agent says about it.
    #[serde(default, alias = "update", skip_serializing_if = "Option::is_none")]
    pub message: Option<Message>,
    /// When it was entered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Timestamp>,
}

/// The nine states of the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TaskState {
    /// Unknown or not given.
    #[default]
    Unspecified,
    /// Accepted, not begun.
    Submitted,
    /// Being worked on.
    Working,
    /// Ended well.
    Completed,
    /// Ended badly.
    Failed,
    /// Stopped on request.
    Canceled,
    /// Waits for the caller's answer.
    InputRequired,
    /// The agent will not do it.
    Rejected,
    /// Waits for credentials.
    AuthRequired,
}

impl TaskState {
    /// The task has ended. The terminal event is the one that carries such a state; none follows it.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled | Self::Rejected)
    }

    /// An interrupted state: the task waits for an answer or for credentials.
    pub fn is_interrupted(self) -> bool {
        matches!(self, Self::InputRequired | Self::AuthRequired)
    }

    /// The name in v1.0.
    pub fn as_str(self) -> &'static str {
        NAMES[self as usize].1
    }

    /// The name in v0.3 on JSON-RPC.
    pub(crate) fn kebab_case(self) -> &'static str {
        NAMES[self as usize].2
    }

    /// Reads any known spelling: `TASK_STATE_INPUT_REQUIRED`, `input-required`, `input_required`, `cancelled`.
    pub fn from_wire(text: &str) -> Option<Self> {
        let bare = text.strip_prefix("TASK_STATE_").unwrap_or(text);
        let is = |name: &str| {
            bare.len() == name.len()
                && bare.bytes().zip(name.bytes()).all(|(given, wanted)| {
                    let given = if given == b'_' { b'-' } else { given.to_ascii_lowercase() };
                    given == wanted
                })
        };
        let others = [(Self::Canceled, "cancelled"), (Self::Unspecified, "unspecified")];
        let mut names = NAMES.iter().map(|&(state, _, name)| (state, name)).chain(others);
        names.find(|(_, name)| is(name)).map(|(state, _)| state)
    }

    /// Reads the number the protocol's enum gives it.
    pub fn from_number(number: u64) -> Option<Self> {
        usize::try_from(number).ok().and_then(|index| NAMES.get(index)).map(|(state, ..)| *state)
    }
}

/// Every state by its number, with its names in v1.0 and in v0.3 on JSON-RPC.
const NAMES: [(TaskState, &str, &str); 9] = [
    (TaskState::Unspecified, "TASK_STATE_UNSPECIFIED", "unknown"),
    (TaskState::Submitted, "TASK_STATE_SUBMITTED", "submitted"),
    (TaskState::Working, "TASK_STATE_WORKING", "working"),
    (TaskState::Completed, "TASK_STATE_COMPLETED", "completed"),
    (TaskState::Failed, "TASK_STATE_FAILED", "failed"),
    (TaskState::Canceled, "TASK_STATE_CANCELED", "canceled"),
    (TaskState::InputRequired, "TASK_STATE_INPUT_REQUIRED", "input-required"),
    (TaskState::Rejected, "TASK_STATE_REJECTED", "rejected"),
    (TaskState::AuthRequired, "TASK_STATE_AUTH_REQUIRED", "auth-required"),
];

impl Serialize for TaskState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A state that is not in the table comes from a newer peer and is read as unspecified.
impl<'de> Deserialize<'de> for TaskState {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = TaskState;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a task state such as TASK_STATE_WORKING")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<TaskState, E> {
                Ok(TaskState::from_wire(text).unwrap_or_default())
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<TaskState, E> {
                Ok(TaskState::from_number(number).unwrap_or_default())
            }
            fn visit_i64<E: de::Error>(self, _number: i64) -> Result<TaskState, E> {
                Ok(TaskState::Unspecified)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}
