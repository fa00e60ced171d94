//! A conversation with an agent over any number of messages: which of them go to a task that waits, which begin another
//! one in the same context, and when it is over. It can be written down and taken up again.

use serde::{Deserialize, Serialize};
use switchboard_a2a::{ContextId, ErrorKind, Message, Role, SendResponse, TaskId};

use crate::ClientError;

/// Where a conversation stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Conversation {
    /// Given by the agent with its first answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_id: Option<ContextId>,
    /// The task that the next message goes to: the agent asked, or has not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
}

impl Conversation {
    /// Puts a message in its place: the first goes without ids, an answer to the task that asked, and what comes after a
    /// task's end begins another one in the same context. Ids that the message has already count more.
    pub fn place(&self, message: &mut Message) {
        message.role = Role::User;
        let is_elsewhere = message.context_id.is_some() && message.context_id != self.context_id
            || message.task_id.is_some() && message.task_id != self.task_id;
        if !is_elsewhere {
            message.context_id = self.context_id.clone();
            message.task_id = self.task_id.clone();
        }
    }

    /// A text in its place.
    pub fn text(&self, text: impl Into<String>) -> Message {
        let mut message = Message::text(Role::User, text);
        self.place(&mut message);
        message
    }

    /// Takes in what the agent answered.
    pub fn heard(&mut self, response: &SendResponse) {
        let (context_id, task_id) = match response {
            // A reply that names the task is said on the way: the task goes on.
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

    /// Takes in that a message was refused. The task it went to may have ended or may be gone by now: then it is
    /// forgotten, the context stays, and the answer is true. The same text, placed again, begins another task.
    pub fn refused(&mut self, error: &ClientError) -> bool {
        let (Some(task), ClientError::Agent(refusal)) = (&self.task_id, error) else { return false };
        let is_gone = match refusal.kind {
            ErrorKind::TaskNotFound | ErrorKind::UnsupportedOperation => true,
            // What some say of a task that has ended; it says so only with the task's name.
            ErrorKind::InvalidParams | ErrorKind::InvalidRequest => refusal.message.contains(task.as_str()),
            _ => false,
        };
        if is_gone {
            self.task_id = None;
        }
        is_gone
    }

    /// Ends it, which other clients call `done: true`: the next message begins another one.
    pub fn forget(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use switchboard_a2a::{Task, TaskState, TaskStatus};

    use super::*;

    fn task(id: &str, state: TaskState) -> SendResponse {
        SendResponse::Task(Task {
            id: TaskId::from(id),
            context_id: ContextId::from("c"),
            status: TaskStatus { state, message: None, timestamp: None },
            artifacts: Vec::new(),
            history: Vec::new(),
            metadata: None,
        })
    }

    fn ids(conversation: &Conversation) -> (Option<String>, Option<String>) {
        let message = conversation.text("hello");
        assert_eq!((message.role, message.joined_text()), (Role::User, "hello".to_owned()));
        (message.context_id.map(|id| id.to_string()), message.task_id.map(|id| id.to_string()))
    }

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn messages_go_to_the_task_that_waits_and_begin_another_after_its_end() {
        let mut conversation = Conversation::default();
        assert_eq!(ids(&conversation), (None, None), "the first goes without ids");
        for state in [TaskState::InputRequired, TaskState::AuthRequired, TaskState::Working, TaskState::Submitted] {
            conversation.heard(&task("t", state));
            assert_eq!(ids(&conversation), (some("c"), some("t")), "{state:?}");
        }
        for state in [TaskState::Completed, TaskState::Failed, TaskState::Canceled, TaskState::Rejected] {
            conversation.heard(&task("t", TaskState::InputRequired));
            conversation.heard(&task("t", state));
            assert_eq!(ids(&conversation), (some("c"), None), "{state:?}");
        }
        conversation.heard(&task("u", TaskState::InputRequired));
        assert_eq!(ids(&conversation), (some("c"), some("u")));
        conversation.forget();
        assert_eq!(ids(&conversation), (None, None));
    }

    #[test]
    fn a_direct_reply_keeps_the_context() {
        let mut conversation = Conversation::default();
        let reply = |context: Option<&str>| {
            let context_id = context.map(ContextId::from);
            SendResponse::Message(Message { context_id, ..Message::text(Role::Agent, "hello back") })
        };
        conversation.heard(&reply(Some("c")));
        assert_eq!(ids(&conversation), (some("c"), None));
        for without in [None, Some("")] {
            conversation.heard(&reply(without));
            assert_eq!(ids(&conversation), (some("c"), None), "{without:?}");
        }
    }

    #[test]
    fn a_reply_on_the_way_leaves_the_task_open() {
        let mut conversation = Conversation::default();
        let reply = |task: Option<&str>| {
            let task_id = task.map(TaskId::from);
            SendResponse::Message(Message { task_id, ..Message::text(Role::Agent, "hold on") })
        };
        conversation.heard(&task("t", TaskState::InputRequired));
        conversation.heard(&reply(Some("t")));
        assert_eq!(ids(&conversation), (some("c"), some("t")));
        conversation.heard(&reply(Some("another")));
        assert_eq!(ids(&conversation), (some("c"), None));
    }

    #[test]
    fn ids_of_the_caller_are_left_as_they_are() {
        let mut conversation = Conversation::default();
        conversation.heard(&task("t", TaskState::InputRequired));
        let cases = [
            ((None, None), (some("c"), some("t"))),
            ((some("c"), None), (some("c"), some("t"))),
            ((some("d"), None), (some("d"), None)),
            ((None, some("u")), (None, some("u"))),
            ((some("d"), some("u")), (some("d"), some("u"))),
        ];
        for ((context, task), expected) in cases {
            let mut message = Message::text(Role::User, "hello");
            message.context_id = context.as_deref().map(ContextId::from);
            message.task_id = task.as_deref().map(TaskId::from);
            conversation.place(&mut message);
            let placed = (message.context_id.map(|id| id.to_string()), message.task_id.map(|id| id.to_string()));
            assert_eq!(placed, expected, "{context:?} {task:?}");
        }
    }

    #[test]
    fn only_a_task_that_is_gone_is_forgotten() {
        let refusal = |kind, message: &str| {
            ClientError::Agent(switchboard_a2a::Error {
                message: message.to_owned(),
                ..switchboard_a2a::Error::new(kind)
            })
        };
        let cases = [
            (refusal(ErrorKind::TaskNotFound, ""), true),
            (refusal(ErrorKind::UnsupportedOperation, ""), true),
            (refusal(ErrorKind::InvalidParams, "task t1 is in terminal state"), true),
            (refusal(ErrorKind::InvalidParams, "parts: none"), false),
            (refusal(ErrorKind::Internal, "t1"), false),
            (ClientError::Secret("t1".to_owned()), false),
        ];
        for (error, is_gone) in cases {
            let mut conversation = Conversation::default();
            conversation.heard(&task("t1", TaskState::InputRequired));
            assert_eq!(conversation.refused(&error), is_gone, "{error}");
            assert_eq!(ids(&conversation), (some("c"), (!is_gone).then(|| "t1".to_owned())), "{error}");
        }
    }

    #[test]
    fn it_can_be_written_down() {
        let mut conversation = Conversation::default();
        assert_eq!(serde_json::to_string(&conversation).unwrap(), "{}");
        conversation.heard(&task("t", TaskState::InputRequired));
        let written = serde_json::to_string(&conversation).unwrap();
        assert_eq!(written, r#"{"contextId":"c","taskId":"t"}"#);
        assert_eq!(serde_json::from_str::<Conversation>(&written).unwrap(), conversation);
    }
}
