//! Agents that answer a message with what is neither a task nor a refusal: it may have arrived, and that is said.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::json;
use switchboard_a2a::{Task, TaskState, Timestamp, Version};
use switchboard_client::CallContext;
use switchboard_engine::clock::SimulatedClock;

use super::crashes::texts;
use super::owed::owed;
use super::script::{Asked, Reply, Scripted, card, task};
use super::world::{caller, hub, passing, say};

const SECOND: Duration = Duration::from_secs(1);
/// Time passes faster than requests are answered.
pub(super) const NEVER: Duration = Duration::MAX;
const INTERNAL: i64 = -32603;
const INVALID_PARAMS: i64 = -32602;

/// Sends a message to an agent that is given up after a time; the task of it, and whether a cancellation is owed.
pub(super) async fn sent_to(remote: &Scripted, lost_after: Duration) -> (Task, bool) {
    let here = tempfile::tempdir().unwrap();
    let clock = SimulatedClock::at(Timestamp(1_000));
    let start = || {
        hub(here.path(), &remote.url(), |parts| {
            parts.clock = Arc::new(clock.clone());
            (parts.settings.lost_after, parts.settings.deadline) = (lost_after, None);
            // Without polls beside a stream, which would hide what else is looked for.
            parts.callbacks = None;
        })
    };
    let front = tokio::task::block_in_place(start);
    let client = caller(&front, Version::V1);
    let sent = async {
        let stream = client.stream(&CallContext::default(), say("go")).await.unwrap();
        stream.finish().await.unwrap().task().unwrap().clone()
    };
    let task = passing(&clock, SECOND, sent).await;
    let is_owed = owed(&front, &task.id).await.is_some();
    tokio::task::block_in_place(|| front.kill());
    (task, is_owed)
}

pub(super) fn detail(task: &Task) -> Option<String> {
    task.metadata.as_ref()?.get("switchboard/reasonDetail")?.as_text()
}

pub(super) fn said(task: &Task) -> String {
    task.status.message.as_ref().unwrap().joined_text()
}

fn keys(sent: &[Asked]) -> Vec<Option<&str>> {
    sent.iter().map(|sent| sent.header("idempotency-key")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_breaks_down_over_a_message_whenever_it_comes_fails_the_task_which_says_so() {
    for is_keyed in [true, false] {
        for status in [200, 500] {
            let remote = Scripted::start(is_keyed, move |asked, _| match asked.method() {
                "SendMessage" => Reply::Broken(status, INTERNAL),
                _ => Reply::Error(-32601),
            })
            .await;
            let (task, is_owed) = sent_to(&remote, NEVER).await;
            let (failed, unknown) = (task.status.state, detail(&task));
            assert_eq!((failed, unknown.as_deref()), (TaskState::Failed, Some("send_unknown")), "{task:?}");
            let said = said(&task);
            assert!(said.contains("it broke") && said.contains("whether it has arrived"), "{said}");
            assert!(is_owed, "it may be at work: {task:?}");
            let sent = remote.calls("SendMessage");
            assert_eq!(sent.len(), if is_keyed { 3 } else { 1 }, "nothing is sent twice where that is not recognised");
            assert!(keys(&sent).windows(2).all(|two| two[0] == two[1]), "{:?}", keys(&sent));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_sent_again_under_its_key_to_an_agent_that_broke_down_over_it_once() {
    let replies: [fn() -> Reply; 3] =
        [|| Reply::Broken(500, INTERNAL), || Reply::BrokenPage(500, "<html>"), || Reply::Page("<html>")];
    for reply in replies {
        let remote = Scripted::start(true, move |asked, before| match (asked.method(), before) {
            ("SendMessage", 0) => reply(),
            ("SendMessage", _) => Reply::Result(json!({ "task": task("TASK_STATE_COMPLETED", "m") })),
            _ => Reply::Error(-32601),
        })
        .await;
        let (task, is_owed) = sent_to(&remote, NEVER).await;
        assert_eq!((task.status.state, is_owed), (TaskState::Completed, false), "{task:?}");
        let sent = remote.calls("SendMessage");
        let keys = keys(&sent);
        assert!(keys.len() == 2 && keys[0].is_some() && keys[0] == keys[1], "{keys:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_task_of_a_message_that_was_answered_by_a_server_error_is_looked_for() {
    let message_id = Mutex::new(String::new());
    let remote = Scripted::start(false, move |asked, _| match asked.method() {
        "SendMessage" => {
            *message_id.lock() = asked.body["params"]["message"]["messageId"].as_str().unwrap().to_owned();
            Reply::BrokenPage(500, "<html>")
        }
        "ListTasks" => {
            let tasks = [task("TASK_STATE_COMPLETED", &message_id.lock())];
            Reply::Result(json!({ "tasks": tasks, "nextPageToken": "", "pageSize": 50, "totalSize": 1 }))
        }
        "GetTask" => Reply::Result(task("TASK_STATE_COMPLETED", "m")),
        _ => Reply::Error(-32004),
    })
    .await;
    let (task, _) = sent_to(&remote, NEVER).await;
    assert_eq!((task.status.state, texts(&task)), (TaskState::Completed, vec!["made".to_owned()]), "{task:?}");
    assert_eq!(remote.calls("SendMessage").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_error_that_does_not_pass_ends_the_task_after_a_limited_number_of_attempts() {
    let remote = Scripted::start(true, |_, _| Reply::BrokenPage(500, "<html>")).await;
    let (task, is_owed) = sent_to(&remote, 600 * SECOND).await;
    assert_eq!((task.status.state, is_owed), (TaskState::Failed, true), "{task:?}");
    assert_eq!(detail(&task).as_deref(), Some("unreachable"), "{task:?}");
    let attempts = remote.calls("SendMessage").len();
    assert!((2..50).contains(&attempts), "{attempts}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_gateway_answers_in_json_counts_as_the_same_in_html() {
    for body in [r#"{"message":"no"}"#, r#"{"error":"no"}"#] {
        let away = Scripted::start(true, move |asked, before| match (asked.method(), before) {
            ("SendMessage", 0..20) => Reply::Gateway([502, 503, 504][before % 3], body),
            ("SendMessage", _) => Reply::Result(json!({ "task": task("TASK_STATE_COMPLETED", "m") })),
            _ => Reply::Error(-32601),
        })
        .await;
        let (task, _) = sent_to(&away, NEVER).await;
        assert_eq!(task.status.state, TaskState::Completed, "it is waited for: {task:?}");
        let sent = away.calls("SendMessage");
        assert!(keys(&sent).windows(2).all(|two| two[0] == two[1]), "{:?}", keys(&sent));
        for (status, expected) in [(404, "refused"), (429, "unavailable")] {
            let remote = Scripted::start(false, move |_, _| Reply::Gateway(status, body)).await;
            let (task, _) = sent_to(&remote, NEVER).await;
            assert_eq!(detail(&task).as_deref(), Some(expected), "{status} {body}: {task:?}");
            assert!(status == 429 || remote.calls("SendMessage").len() == 1, "{status} {body}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_on_a_stream_in_place_of_a_task_is_a_refusal_or_leaves_open_whether_the_message_was_taken() {
    for (code, expected, words) in
        [(INVALID_PARAMS, "refused", "has not taken the message"), (INTERNAL, "send_unknown", "whether it has arrived")]
    {
        let mut streaming = card(false);
        streaming["capabilities"]["streaming"] = true.into();
        let error = json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": code, "message": "no" } });
        let frame = format!("data: {error}\n\n");
        let remote = Scripted::with_card(streaming, move |asked, _| match asked.method() {
            "SendStreamingMessage" => Reply::Events(vec![frame.clone()]),
            _ => Reply::Error(-32601),
        })
        .await;
        let (task, _) = sent_to(&remote, NEVER).await;
        assert_eq!((task.status.state, detail(&task).as_deref()), (TaskState::Failed, Some(expected)), "{task:?}");
        assert!(said(&task).contains(words), "{task:?}");
        assert_eq!(remote.calls("SendStreamingMessage").len(), 1);
        assert_eq!(remote.calls("SendMessage").len(), 0);
    }
}
