//! A task followed through a stream is the task the peer has.

use switchboard_a2a::{
    Dialect, Metadata, StreamResponse, Task, TaskArtifactUpdate, TaskState, TaskStatusUpdate, decode,
};

use crate::capture;

fn task(json: &str) -> Task {
    serde_json::from_str(json).unwrap()
}

fn working() -> Task {
    task(r#"{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_WORKING"}}"#)
}

fn status(json: &str) -> StreamResponse {
    StreamResponse::StatusUpdate(serde_json::from_str::<TaskStatusUpdate>(json).unwrap())
}

fn chunk(artifact: &str, append: bool, last_chunk: bool) -> StreamResponse {
    let artifact = serde_json::from_str(artifact).unwrap();
    let (task_id, context_id) = ("t1".into(), "c1".into());
    StreamResponse::ArtifactUpdate(TaskArtifactUpdate {
        task_id,
        context_id,
        artifact,
        append,
        last_chunk,
        metadata: None,
    })
}

#[test]
fn chunks_are_joined_replaced_or_begun() {
    let mut task = working();
    let first = chunk(r#"{"artifactId":"a","name":"n","parts":[{"text":"one"}],"metadata":{"k":1}}"#, false, false);
    assert!(task.apply(&first));
    let more = r#"{"artifactId":"a","description":"d","parts":[{"text":" two"},{"data":1}],"metadata":{"k":2},"extensions":["e"]}"#;
    assert!(task.apply(&chunk(more, true, true)));
    assert!(task.apply(&chunk(r#"{"artifactId":"a","parts":[{"text":"three"}],"extensions":["e"]}"#, true, true)));
    // No event has begun this one.
    assert!(task.apply(&chunk(r#"{"artifactId":"b","parts":[{"text":"x"}]}"#, true, false)));
    let expected = r#"[{"artifactId":"a","name":"n","description":"d","parts":[{"text":"one two"},{"data":1},{"text":"three"}],"metadata":{"k":2},"extensions":["e"]},{"artifactId":"b","parts":[{"text":"x"}]}]"#;
    assert_eq!(serde_json::to_string(&task.artifacts).unwrap(), expected);
    assert!(task.apply(&chunk(r#"{"artifactId":"a","parts":[{"text":"new"}]}"#, false, true)));
    let expected = r#"[{"artifactId":"a","parts":[{"text":"new"}]},{"artifactId":"b","parts":[{"text":"x"}]}]"#;
    assert_eq!(serde_json::to_string(&task.artifacts).unwrap(), expected);
}

#[test]
fn what_was_said_with_the_former_status_is_history() {
    let mut task = working();
    let asked = r#"{"taskId":"t1","status":{"state":"TASK_STATE_INPUT_REQUIRED","message":{"messageId":"m1","role":"ROLE_AGENT","parts":[{"text":"which?"}]}},"metadata":{"a":1}}"#;
    assert!(task.apply(&status(asked)));
    assert!(task.history.is_empty());
    let on = r#"{"taskId":"t1","status":{"state":"TASK_STATE_WORKING"},"metadata":{"a":2,"b":3}}"#;
    assert!(task.apply(&status(on)));
    assert_eq!(task.history.len(), 1);
    assert_eq!((task.history[0].message_id.as_str(), &task.status.message), ("m1", &None));
    let metadata: Metadata = serde_json::from_str(r#"{"a":2,"b":3}"#).unwrap();
    assert_eq!(task.metadata.as_ref(), Some(&metadata));
    // A peer may put it there itself.
    assert!(task.apply(&status(asked)));
    task.history = vec![task.status.message.clone().unwrap()];
    assert!(task.apply(&status(on)));
    assert_eq!(task.history.len(), 1);
}

#[test]
fn frames_of_others_and_after_the_end_change_nothing() {
    let mut task = working();
    let before = task.clone();
    assert!(!task.apply(&status(r#"{"taskId":"t2","status":{"state":"TASK_STATE_FAILED"}}"#)));
    let other = Task { id: "t2".into(), ..working() };
    assert!(!task.apply(&StreamResponse::Task(other)));
    let reply = serde_json::from_str(r#"{"messageId":"m","role":"ROLE_AGENT","parts":[]}"#).unwrap();
    assert!(!task.apply(&StreamResponse::Message(reply)));
    assert_eq!(task, before);
    // Some peers leave the id out of updates, since one task was asked for.
    task.context_id = "".into();
    assert!(task.apply(&status(r#"{"taskId":"","contextId":"c9","status":{"state":"TASK_STATE_COMPLETED"}}"#)));
    assert_eq!((task.status.state, task.context_id.as_str()), (TaskState::Completed, "c9"));
    assert!(!task.apply(&status(r#"{"taskId":"t1","status":{"state":"TASK_STATE_WORKING"}}"#)));
    assert_eq!(task.status.state, TaskState::Completed);
    assert!(task.apply(&chunk(r#"{"artifactId":"a","parts":[{"text":"late"}]}"#, false, true)));
    assert_eq!(task.artifacts.len(), 1);
}

#[test]
fn a_whole_task_replaces_what_was_known() {
    let mut task = working();
    let whole = StreamResponse::Task(Task { status: working().status, history: vec![], ..working() });
    assert!(task.apply(&chunk(r#"{"artifactId":"a","parts":[{"text":"x"}]}"#, false, true)));
    assert!(task.apply(&whole));
    assert_eq!(task, working());
}

#[test]
fn the_streams_of_the_sdks_end_in_the_state_of_their_last_status() {
    let mut streams = 0;
    for capture in capture::all("client-").into_iter().chain(capture::all("server-")) {
        for exchange in &capture.exchanges {
            if !exchange.response_head.to_lowercase().contains("text/event-stream") {
                continue;
            }
            let (dialect, ..): (Dialect, _, _) = exchange.decode();
            let frames: Vec<StreamResponse> = exchange
                .results()
                .iter()
                .map(|result| decode::decode_stream(dialect, &serde_json::to_vec(result).unwrap()).unwrap())
                .collect();
            let Some((StreamResponse::Task(first), rest)) = frames.split_first() else { continue };
            let mut task = first.clone();
            let mut artifacts = 0;
            for frame in rest {
                assert!(task.apply(frame), "{}: {frame:?}", capture.name);
                artifacts += usize::from(matches!(frame, StreamResponse::ArtifactUpdate(update) if !update.append));
            }
            let last = rest.iter().rev().find_map(|frame| match frame {
                StreamResponse::StatusUpdate(update) => Some(update.status.clone()),
                _ => None,
            });
            assert_eq!(task.status, last.unwrap_or(first.status.clone()), "{}", capture.name);
            assert!(task.artifacts.len() <= first.artifacts.len() + artifacts, "{}", capture.name);
            streams += 1;
        }
    }
    assert!(streams > 30, "only {streams} streams");
}
