//! Remote agents that say what is not theirs to say, or more than is read.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use switchboard_a2a::{TaskState, Timestamp, Version};
use switchboard_client::CallContext;
use switchboard_engine::clock::SimulatedClock;
use tokio::sync::Semaphore;

use super::broken::{NEVER, detail, said, sent_to};
use super::crashes::texts;
use super::script::{Reply, Scripted, card, frame, task};
use super::world::{caller, hub, say};

const INVALID_PARAMS: i64 = -32602;
const LOST_AFTER: Duration = Duration::from_secs(600);

fn streaming() -> Value {
    let mut card = card(false);
    card["capabilities"]["streaming"] = true.into();
    card
}

/// Its task, which has made nothing so far.
fn begun() -> Value {
    let mut begun = task("TASK_STATE_WORKING", "m");
    begun["artifacts"] = json!([]);
    json!({ "task": begun })
}

fn status(task: &str, state: &str, text: &str) -> Value {
    let message = json!({ "messageId": "said", "role": "ROLE_AGENT", "parts": [{ "text": text }] });
    let status = json!({ "state": state, "message": message });
    json!({ "statusUpdate": { "taskId": task, "contextId": "rc", "status": status } })
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_another_task_on_our_stream_are_not_told_and_the_task_is_looked_at() {
    let artifact = json!({ "artifactId": "x", "parts": [{ "text": "another's" }] });
    let chunk = json!({ "artifactUpdate": { "taskId": "other", "contextId": "rc", "artifact": artifact } });
    let message = json!({
        "message": { "messageId": "x", "role": "ROLE_AGENT", "taskId": "other", "parts": [{ "text": "another's" }] },
    });
    let end = status("other", "TASK_STATE_COMPLETED", "another's");
    let mut whole = task("TASK_STATE_COMPLETED", "m");
    whole["id"] = json!("other");
    whole["artifacts"][0]["parts"][0]["text"] = json!("another's");
    let foreign = [chunk, message, json!({ "task": whole }), end];
    let frames: Vec<String> = std::iter::once(begun()).chain(foreign).map(|result| frame(None, result)).collect();
    let never = Arc::new(Semaphore::new(0));
    let remote = Scripted::with_card(streaming(), move |asked, _| match asked.method() {
        // The stream stays open, and says nothing more.
        "SendStreamingMessage" => Reply::Held(frames.clone(), Arc::clone(&never), Vec::new()),
        "GetTask" => Reply::Result(task("TASK_STATE_COMPLETED", "m")),
        _ => Reply::Error(-32004),
    })
    .await;
    let (done, _) = sent_to(&remote, NEVER).await;
    assert_eq!((done.status.state, texts(&done)), (TaskState::Completed, vec!["made".to_owned()]), "{done:?}");
    assert!(!format!("{done:?}").contains("another's"), "{done:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_task_is_looked_at_once_for_many_events_of_another() {
    let mut own = status("r", "TASK_STATE_WORKING", "still at it");
    own["statusUpdate"]["status"]["message"]["messageId"] = json!("own");
    let foreign = (0..4).map(|_| status("other", "TASK_STATE_WORKING", "another's"));
    let frames = std::iter::once(begun()).chain(foreign).chain([own]).map(|result| frame(None, result));
    let frames: Vec<String> = frames.collect();
    let end = vec![frame(None, status("r", "TASK_STATE_COMPLETED", "done"))];
    let is_over = Arc::new(Semaphore::new(0));
    let over = Arc::clone(&is_over);
    let remote = Scripted::with_card(streaming(), move |asked, _| match asked.method() {
        "SendStreamingMessage" => Reply::Held(frames.clone(), Arc::clone(&over), end.clone()),
        // A look finds nothing new, so that it ends nothing and further ones would be made.
        "GetTask" => Reply::Result(begun()["task"].clone()),
        _ => Reply::Error(-32004),
    })
    .await;
    let here = tempfile::tempdir().unwrap();
    let clock = SimulatedClock::at(Timestamp(1_000));
    let start = || {
        hub(here.path(), &remote.url(), |parts| {
            parts.clock = Arc::new(clock.clone());
            // Without polls beside the stream, which are looks as well.
            parts.callbacks = None;
        })
    };
    let front = tokio::task::block_in_place(start);
    let mut stream = caller(&front, Version::V1).stream(&CallContext::default(), say("go")).await.unwrap();
    // The time stands still until all of them have come.
    let have_come = async {
        let mut said = String::new();
        while said != "still at it" {
            stream.next().await.unwrap().expect("it has not ended");
            let message = stream.task().and_then(|task| task.status.message.as_ref());
            said = message.map(|message| message.joined_text()).unwrap_or_default();
        }
    };
    tokio::time::timeout(crate::HANG_GUARD, have_come).await.expect("they come");
    assert_eq!(remote.calls("GetTask").len(), 0, "it may be told without a look");
    clock.advance(Duration::from_secs(1));
    remote.called("GetTask", 1).await;
    is_over.add_permits(1);
    let done = tokio::time::timeout(crate::HANG_GUARD, stream.finish()).await.expect("it ends").unwrap();
    let done = done.task().unwrap();
    assert_eq!((done.status.state, said(done).as_str()), (TaskState::Completed, "done"));
    assert_eq!(remote.calls("GetTask").len(), 2, "one look, and one that confirms the end");
    tokio::task::block_in_place(|| front.kill());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_message_of_an_end_is_kept_where_the_agent_has_stored_the_state_alone() {
    let end = status("r", "TASK_STATE_COMPLETED", "all done");
    let frames = vec![frame(None, begun()), frame(None, end)];
    let remote = Scripted::with_card(streaming(), move |asked, _| match asked.method() {
        "SendStreamingMessage" => Reply::Events(frames.clone()),
        "GetTask" => Reply::Result(task("TASK_STATE_COMPLETED", "m")),
        _ => Reply::Error(-32004),
    })
    .await;
    let (done, _) = sent_to(&remote, NEVER).await;
    assert_eq!((done.status.state, texts(&done)), (TaskState::Completed, vec!["made".to_owned()]), "{done:?}");
    assert_eq!(said(&done), "all done");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_nested_too_deep_is_not_stored_and_the_task_says_why() {
    let deep = (0..100).fold(json!("deep"), |inner, _| json!([inner]));
    let mut nested = task("TASK_STATE_COMPLETED", "m");
    nested["artifacts"][0]["parts"][0] = json!({ "data": deep });
    let remote = Scripted::start(false, move |asked, _| match asked.method() {
        "SendMessage" => Reply::Result(json!({ "task": nested })),
        _ => Reply::Error(-32601),
    })
    .await;
    let (failed, _) = sent_to(&remote, NEVER).await;
    assert_eq!((failed.status.state, detail(&failed).as_deref()), (TaskState::Failed, Some("send_unknown")));
    let said = said(&failed);
    assert!(said.contains("invalid agent response") && said.contains("nested deeper than 67 levels"), "{said}");
    assert!(failed.artifacts.is_empty(), "{failed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_caller_is_told_of_a_failure_is_short_and_names_no_address() {
    let long: &'static str = "ä".repeat(10_000).leak();
    let refusing = Scripted::start(false, move |_, _| Reply::Refuses(INVALID_PARAMS, long)).await;
    let (refused, _) = sent_to(&refusing, NEVER).await;
    let refusal = said(&refused);
    assert!(refusal.starts_with("front has not taken the message: it refused: ää"), "{refusal}");
    assert!(refusal.contains('…') && refusal.len() < 2_300, "{} bytes", refusal.len());
    let broken = Scripted::start(true, |_, _| Reply::BrokenPage(502, "<html>http://10.0.0.5:8080</html>")).await;
    let (lost, _) = sent_to(&broken, LOST_AFTER).await;
    assert_eq!(said(&lost), "front cannot be reached any more: it answered with status 502");
    let gone = Scripted::start(false, |_, _| Reply::Closes).await;
    gone.stop().await;
    let (away, _) = sent_to(&gone, LOST_AFTER).await;
    assert_eq!(said(&away), "front cannot be reached: there is no connection to it");
    let page = Scripted::start(false, |_, _| Reply::Page("<html><title>http://10.0.0.5:8080</title>")).await;
    let (unclear, _) = sent_to(&page, NEVER).await;
    for text in [refusal, said(&unclear)] {
        assert!(!text.contains("http:") && !text.contains("10.0.0.5") && !text.contains("127.0.0.1"), "{text}");
    }
}
