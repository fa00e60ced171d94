//! What is read of a task or a reply.

use switchboard_a2a::{
    Artifact, ContextId, Json, Message, Part, PartContent, Role, SendResponse, Task, TaskId, TaskState, TaskStatus,
};
use switchboard_client::response_text;

/// What a response without text reads as.
const NOTHING: &str = "(no text)";

fn task(state: TaskState, said: Option<&str>, made: &[&[&str]]) -> Task {
    let message = said.map(|text| Message::text(Role::Agent, text));
    let artifact = |texts: &&[&str]| Artifact::new(texts.iter().map(|text| Part::text(*text)).collect());
    Task {
        id: TaskId::from("t"),
        context_id: ContextId::from("c"),
        status: TaskStatus { state, message, timestamp: None },
        artifacts: made.iter().map(artifact).collect(),
        history: Vec::new(),
        metadata: None,
    }
}

fn text(state: TaskState, said: Option<&str>, made: &[&[&str]]) -> String {
    response_text(&SendResponse::Task(task(state, said, made)))
}

#[test]
fn what_was_made_is_read_first() {
    let done = TaskState::Completed;
    assert_eq!(text(done, Some("finished"), &[&["a report"]]), "a report");
    assert_eq!(text(done, Some("finished"), &[&["one ", "report"], &["another"]]), "one report\n\nanother");
    assert_eq!(text(done, Some("finished"), &[]), "finished");
    assert_eq!(text(done, None, &[]), NOTHING);
    assert_eq!(text(TaskState::Working, Some("at it"), &[&["half"]]), "half");
}

#[test]
fn data_beside_text_is_for_programs() {
    let mut done = task(TaskState::Completed, None, &[&["a report"]]);
    let data = Artifact::new(vec![Part::data(Json::from_serialize(&7).unwrap())]);
    done.artifacts.push(data);
    assert_eq!(response_text(&SendResponse::Task(done.clone())), "a report");
    done.artifacts.remove(0);
    assert_eq!(response_text(&SendResponse::Task(done)), "7");
}

#[test]
fn empty_artifacts_are_none() {
    for empty in [&[][..], &[""], &["", "  \n"]] {
        assert_eq!(text(TaskState::Completed, Some("finished"), &[empty]), "finished", "{empty:?}");
        assert_eq!(text(TaskState::Completed, None, &[empty]), NOTHING, "{empty:?}");
    }
    assert_eq!(text(TaskState::Completed, Some(" "), &[]), NOTHING);
    assert_eq!(text(TaskState::Completed, None, &[&[""], &["second"]]), "second");
}

#[test]
fn the_last_thing_said_is_read_if_there_is_nothing_else() {
    let mut done = task(TaskState::Completed, None, &[]);
    done.history = vec![
        Message::text(Role::Agent, "first"),
        Message::text(Role::Agent, "last"),
        Message::text(Role::User, "thanks"),
    ];
    assert_eq!(response_text(&SendResponse::Task(done)), "last");
}

#[test]
fn a_question_and_a_reason_are_read_before_what_was_made() {
    use TaskState::{AuthRequired, Canceled, Failed, InputRequired, Rejected};
    for state in [InputRequired, AuthRequired, Failed, Rejected, Canceled] {
        assert_eq!(text(state, Some("why"), &[&["half"]]), "why", "{state:?}");
        assert_eq!(text(state, None, &[&["half"]]), "half", "{state:?}");
        assert_eq!(text(state, None, &[]), NOTHING, "{state:?}");
        let outcome = SendResponse::Task(task(state, Some("why"), &[&["half"]]));
        assert!(!outcome.is_success(), "{outcome:?}");
    }
    let asks = SendResponse::Task(task(InputRequired, Some("which?"), &[]));
    assert_eq!(asks.state(), Some(InputRequired), "{asks:?}");
}

#[test]
fn what_is_no_text_is_told_in_words() {
    let data = PartContent::Data(Json::parse(r#"{"a":1}"#).unwrap());
    let named = Part { filename: Some("a.png".to_owned()), ..Part::new(PartContent::Raw(vec![1, 2, 3])) };
    let url = Part::new(PartContent::Url("https://files.example/b".to_owned()));
    let parts = vec![Part::text("see "), Part::text("this:"), Part::new(data), named, url];
    let reply = SendResponse::Message(Message { parts, ..Message::text(Role::Agent, "") });
    assert_eq!(response_text(&reply), "see this:\n[file: a.png, 3 bytes]\n[file: https://files.example/b]");
    assert!(reply.is_success() && reply.task().is_none());
}

#[test]
fn data_is_read_where_there_is_nothing_else() {
    let data = Artifact::new(vec![Part::new(PartContent::Data(Json::parse(r#"{"a":1}"#).unwrap()))]);
    let thought = Artifact::text("hm").named("reasoning");
    let text = |said: Option<&str>, artifacts: &[&Artifact]| {
        let artifacts = artifacts.iter().map(|artifact| (*artifact).clone()).collect();
        response_text(&SendResponse::Task(Task { artifacts, ..task(TaskState::Completed, said, &[]) }))
    };
    assert_eq!(text(None, &[&data, &Artifact::text("done")]), "done");
    assert_eq!(text(None, &[&thought, &Artifact::text("done")]), "done");
    assert_eq!(text(Some("finished"), &[&data]), "finished");
    assert_eq!(text(Some("The answer is in the artifact \"x\"."), &[&data]), r#"{"a":1}"#);
    assert_eq!(text(None, &[&data]), r#"{"a":1}"#);
    assert_eq!(text(None, &[&thought]), "hm");
}
