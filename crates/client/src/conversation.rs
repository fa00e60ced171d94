//! A conversation over any number of messages: which are follow-ups to an open task, and which start a task in the same
//! context. It can be serialized and continued later.

use serde::{Deserialize, Serialize};
use switchboard_a2a::{ContextId, ErrorKind, Message, Role, SendResponse, TaskId};

use crate::ClientError;

/// The ids a conversation continues with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Conversation {
    /// Given by the agent with its first response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_id: Option<ContextId>,
    /// The open task, which gets the next message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
}

impl Conversation {
    /// Sets the ids of a message: none on the first, those of the open task on a follow-up, the context alone after a
    /// terminal state. Ids the message has already are kept.
    pub fn set_ids(&self, message: &mut Message) {
        message.role = Role::User;
        let is_elsewhere = message.context_id.is_some() && message.context_id != self.context_id
            || message.task_id.is_some() && message.task_id != self.task_id;
        if !is_elsewhere {
            message.context_id = self.context_id.clone();
            message.task_id = self.task_id.clone();
        }
    }

    /// A text message with its ids.
    pub fn text(&self, text: impl Into<String>) -> Message {
        let mut message = Message::text(Role::User, text);
        self.set_ids(&mut message);
        message
    }

    /// Updates the ids from a response.
    pub fn record_response(&mut self, response: &SendResponse) {
        let (context_id, task_id) = match response {
            // A message that names the task does not end it.
            SendResponse::Message(message) => {
                let open = self.task_id.take().filter(|open| message.task_id.as_ref() == Some(open));
                (message.context_id.clone(), open)
            }
            SendResponse::Task(task) => {
                let is_open = !task.status.state.is_terminal();
                (Some(task.context_id.clone()), is_open.then(|| task.id.clone()))
            }
        };
        if let Some(context_id) = context_id.filter(|id| !id.as_str().is_empty()) {
            self.context_id = Some(context_id);
        }
        self.task_id = task_id;
    }

    /// Updates the ids from a refusal. If the open task has ended or is gone, it is forgotten, the context stays, and
    /// the result is true: the same text sent again starts another task.
    pub fn record_refusal(&mut self, error: &ClientError) -> bool {
        let (Some(task), ClientError::Agent(refusal)) = (&self.task_id, error) else { return false };
        let is_gone = match refusal.kind {
            ErrorKind::TaskNotFound | ErrorKind::UnsupportedOperation => true,
            // Some agents refuse follow-ups to an ended task with these; the message then names the task.
            ErrorKind::InvalidParams | ErrorKind::InvalidRequest => refusal.message.contains(task.as_str()),
            _ => false,
        };
        if is_gone {
            self.task_id = None;
        }
        is_gone
    }

    /// Ends the conversation (`done: true` in other clients): the next message starts another one.
    pub fn forget(&mut self) {
        *self = Self::default();
    }
}
