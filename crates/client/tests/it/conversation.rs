//! Which task and context the messages of a conversation go to.

use switchboard_a2a::{ContextId, ErrorKind, Message, Role, SendResponse, Task, TaskId, TaskState, TaskStatus};
use switchboard_client::{ClientError, Conversation};

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
        conversation.record_response(&task("t", state));
        assert_eq!(ids(&conversation), (some("c"), some("t")), "{state:?}");
    }
    for state in [TaskState::Completed, TaskState::Failed, TaskState::Canceled, TaskState::Rejected] {
        conversation.record_response(&task("t", TaskState::InputRequired));
        conversation.record_response(&task("t", state));
        assert_eq!(ids(&conversation), (some("c"), None), "{state:?}");
    }
    conversation.record_response(&task("u", TaskState::InputRequired));
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
    conversation.record_response(&reply(Some("c")));
    assert_eq!(ids(&conversation), (some("c"), None));
    for without in [None, Some("")] {
        conversation.record_response(&reply(without));
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
    conversation.record_response(&task("t", TaskState::InputRequired));
    conversation.record_response(&reply(Some("t")));
    assert_eq!(ids(&conversation), (some("c"), some("t")));
    conversation.record_response(&reply(Some("another")));
    assert_eq!(ids(&conversation), (some("c"), None));
}

#[test]
fn ids_of_the_caller_are_left_as_they_are() {
    let mut conversation = Conversation::default();
    conversation.record_response(&task("t", TaskState::InputRequired));
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
        conversation.set_ids(&mut message);
        let placed = (message.context_id.map(|id| id.to_string()), message.task_id.map(|id| id.to_string()));
        assert_eq!(placed, expected, "{context:?} {task:?}");
    }
}

#[test]
fn only_a_task_that_is_gone_is_forgotten() {
    let refusal = |kind, message: &str| {
        ClientError::Agent(switchboard_a2a::Error { message: message.to_owned(), ..switchboard_a2a::Error::new(kind) })
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
        conversation.record_response(&task("t1", TaskState::InputRequired));
        assert_eq!(conversation.record_refusal(&error), is_gone, "{error}");
        assert_eq!(ids(&conversation), (some("c"), (!is_gone).then(|| "t1".to_owned())), "{error}");
    }
}

#[test]
fn it_can_be_written_down() {
    let mut conversation = Conversation::default();
    assert_eq!(serde_json::to_string(&conversation).unwrap(), "{}");
    conversation.record_response(&task("t", TaskState::InputRequired));
    let written = serde_json::to_string(&conversation).unwrap();
    assert_eq!(written, r#"{"contextId":"c","taskId":"t"}"#);
    assert_eq!(serde_json::from_str::<Conversation>(&written).unwrap(), conversation);
}
