//! What is told of a remote task where the agent says odd things, or not all of it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use switchboard_a2a::{Metadata, Task, TaskState, Timestamp, Version};
use switchboard_client::CallContext;
use switchboard_engine::Seq;
use switchboard_engine::clock::SimulatedClock;
use switchboard_engine::event::Event;
use switchboard_engine::store::Store;

use super::crashes::texts;
use super::script::{Reply, Scripted, card, frame, task};
use super::world::{Running, caller, hub, passing, say};

async fn finished(front: &Running, request: switchboard_a2a::SendRequest) -> Task {
    let stream = caller(front, Version::V1).stream(&CallContext::default(), request).await.unwrap();
    let finished = tokio::time::timeout(crate::HANG_GUARD, stream.finish()).await.expect("it ends");
    finished.unwrap().task().unwrap().clone()
}

fn front(folder: &std::path::Path, remote: &Scripted) -> Running {
    tokio::task::block_in_place(|| hub(folder, &remote.url(), |_| {}))
}

async fn events(front: &Running, task: &Task) -> Vec<Event> {
    let row = front.store.row(&task.id).await.unwrap().unwrap();
    let log = front.engine.log(&task.id, row.key).after(Seq(0), usize::MAX).await.unwrap();
    log.iter().map(|event| Event::decode(&event.line).unwrap()).collect()
}

fn word(metadata: Option<&Metadata>, key: &str) -> Option<String> {
    metadata?.get(key)?.as_text()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submitted_task_is_no_news_and_one_in_an_unknown_state_works() {
    let here = tempfile::tempdir().unwrap();
    let remote = Scripted::start(false, |asked, before| match (asked.method(), before) {
        ("SendMessage", _) => Reply::Result(json!({ "task": task("TASK_STATE_SUBMITTED", "m") })),
        ("GetTask", 0) => Reply::Result(task("TASK_STATE_PONDERING", "m")),
        ("GetTask", _) => Reply::Result(task("TASK_STATE_COMPLETED", "m")),
        _ => Reply::Error(-32601),
    })
    .await;
    let front = front(here.path(), &remote);
    let done = finished(&front, say("go")).await;
    let states = events(&front, &done).await.into_iter().filter_map(|event| match event {
        Event::StatusUpdate(update) => Some(update.status.state),
        _ => None,
    });
    assert_eq!(states.collect::<Vec<_>>(), [TaskState::Working, TaskState::Completed]);
    tokio::task::block_in_place(|| front.kill());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_artifact_of_which_part_was_missed_is_told_whole_and_says_so() {
    let here = tempfile::tempdir().unwrap();
    let mut streaming = card(false);
    streaming["capabilities"]["streaming"] = true.into();
    let mut begun = task("TASK_STATE_WORKING", "m");
    begun["artifacts"] = json!([]);
    let artifact = |text: &str| json!({ "artifactId": "a", "parts": [{ "text": text }] });
    let chunk =
        json!({ "artifactUpdate": { "taskId": "r", "contextId": "rc", "artifact": artifact("what was cut off") } });
    let first = vec![frame(None, json!({ "task": begun })), frame(None, chunk)];
    let remote = Scripted::with_card(streaming, move |asked, _| match asked.method() {
        "SendStreamingMessage" => Reply::Events(first.clone()),
        "GetTask" => Reply::Result(task("TASK_STATE_COMPLETED", "m")),
        _ => Reply::Error(-32004),
    })
    .await;
    let front = front(here.path(), &remote);
    let done = finished(&front, say("go")).await;
    assert_eq!((done.status.state, texts(&done)), (TaskState::Completed, vec!["made".to_owned()]), "{done:?}");
    let chunks = events(&front, &done).await.into_iter().filter_map(|event| match event {
        Event::ArtifactUpdate(update) => Some((update.append, word(update.metadata.as_ref(), "switchboard/gap"))),
        _ => None,
    });
    assert_eq!(chunks.collect::<Vec<_>>(), [(false, None), (false, Some("artifact".to_owned()))]);
    tokio::task::block_in_place(|| front.kill());
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_of_this_server_that_a_message_refers_to_are_not_named_there() {
    let here = tempfile::tempdir().unwrap();
    let remote =
        Scripted::start(false, |_, _| Reply::Result(json!({ "task": task("TASK_STATE_COMPLETED", "m") }))).await;
    let front = front(here.path(), &remote);
    let first = finished(&front, say("go")).await;
    let mut second = say("and this");
    second.message.context_id = Some(first.context_id.clone());
    second.message.reference_task_ids = vec![first.id.clone()];
    finished(&front, second).await;
    let sent = remote.calls("SendMessage").remove(1);
    let message = &sent.body["params"]["message"];
    assert_eq!((&message["parts"][0]["text"], &message["contextId"]), (&json!("and this"), &json!("rc")));
    assert_eq!(message["referenceTaskIds"], Value::Null);
    assert!(!sent.body.to_string().contains(&format!("\"{}\"", first.id)), "{}", sent.body);
    tokio::task::block_in_place(|| front.kill());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_web_page_in_place_of_an_answer_fails_the_task_and_is_described() {
    let here = tempfile::tempdir().unwrap();
    let page = "<html><head><title>Sign in</title></head></html>";
    let remote = Scripted::start(false, move |_, _| Reply::Page(page)).await;
    let clock = SimulatedClock::at(Timestamp(1_000));
    let start = || hub(here.path(), &remote.url(), |parts| parts.clock = Arc::new(clock.clone()));
    let front = tokio::task::block_in_place(start);
    let failed = passing(&clock, Duration::from_secs(1), finished(&front, say("go"))).await;
    let said = failed.status.message.as_ref().unwrap().joined_text();
    assert_eq!(failed.status.state, TaskState::Failed, "{failed:?}");
    assert!(said.contains("invalid agent response") && said.contains("a web page"), "{said}");
    assert!(!said.contains("Sign in") && !said.contains("127.0.0.1"), "what it says is not the caller's: {said}");
    let detail = word(failed.metadata.as_ref(), "switchboard/reasonDetail");
    assert_eq!(detail.as_deref(), Some("send_unknown"), "it is no refusal of an agent");
    assert_eq!(remote.calls("SendMessage").len(), 1);
    tokio::task::block_in_place(|| front.kill());
}
