//! Remote agents that cannot be reached, take too long, or forget their tasks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use switchboard_a2a::{Task, TaskState, Timestamp, Version};
use switchboard_client::CallContext;
use switchboard_engine::clock::SimulatedClock;
use switchboard_hub::remote::RemoteParts;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::crashes::{begin, ended, texts};
use super::owed::{begun, ends, owed};
use super::script::{Reply, Scripted, task};
use super::world::{Running, all_sleep, caller, hub, passing, say};

const SECOND: Duration = Duration::from_secs(1);

fn word(task: &Task, key: &str) -> String {
    let metadata = task.metadata.as_ref().unwrap();
    metadata.get(key).and_then(|word| word.as_text()).unwrap_or_default()
}

fn front(folder: &std::path::Path, url: &str, clock: &SimulatedClock) -> Running {
    tokio::task::block_in_place(|| hub(folder, url, |parts| parts.clock = Arc::new(clock.clone())))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_never_answers_fails_the_task_and_says_when_to_try_again() {
    let here = tempfile::tempdir().unwrap();
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let clock = SimulatedClock::at(Timestamp(1_000));
    let front = front(here.path(), &format!("http://{nobody}"), &clock);
    let client = caller(&front, Version::V1);
    let sent = async {
        let stream = client.stream(&CallContext::default(), say("go")).await.unwrap();
        stream.finish().await.unwrap().task().unwrap().clone()
    };
    let task = passing(&clock, SECOND, sent).await;
    assert_eq!(task.status.state, TaskState::Failed);
    assert_eq!(word(&task, "switchboard/reasonDetail"), "unavailable");
    assert!(task.metadata.as_ref().unwrap().get("switchboard/retryAfterMs").is_some(), "{task:?}");
    assert!(owed(&front, &task.id).await.is_none_or(|job| !format!("{job:?}").contains("rc")), "nothing was sent");
    tokio::task::block_in_place(|| front.kill());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_stays_away_is_given_up_and_its_task_is_to_be_canceled() {
    let here = tempfile::tempdir().unwrap();
    let remote = Scripted::start(false, |asked, _| match asked.method() {
        "SendMessage" => Reply::Result(json!({ "task": task("TASK_STATE_WORKING", "m") })),
        _ => Reply::Closes,
    })
    .await;
    let clock = SimulatedClock::at(Timestamp(1_000));
    let front = front(here.path(), &remote.url(), &clock);
    let client = caller(&front, Version::V1);
    let id = begun(&client, "go").await;
    let task = passing(&clock, SECOND, ended(&client, &id)).await;
    assert_eq!(task.status.state, TaskState::Failed);
    assert_eq!(word(&task, "switchboard/reasonDetail"), "unreachable");
    assert_eq!(texts(&task), ["made"], "what it had made is kept");
    assert!(owed(&front, &id).await.is_some(), "it may still be at work");
    assert_eq!(remote.calls("SendMessage").len(), 1);
    assert!(remote.calls("GetTask").len() < 200, "it is asked ever more rarely");
    tokio::task::block_in_place(|| front.kill());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_remote_task_that_takes_longer_than_its_deadline_fails_and_is_to_be_canceled() {
    let here = tempfile::tempdir().unwrap();
    let remote = Scripted::start(false, |asked, _| match asked.method() {
        "SendMessage" => Reply::Result(json!({ "task": task("TASK_STATE_WORKING", "m") })),
        "GetTask" => Reply::Result(task("TASK_STATE_WORKING", "m")),
        _ => Reply::Error(-32601),
    })
    .await;
    let clock = SimulatedClock::at(Timestamp(1_000));
    let front = front(here.path(), &remote.url(), &clock);
    let client = caller(&front, Version::V1);
    let id = begun(&client, "go").await;
    clock.advance(Duration::from_secs(23 * 3_600));
    let still = client.get(&CallContext::default(), &id, None).await.unwrap();
    assert_eq!(still.status.state, TaskState::Working, "a day is allowed");
    clock.advance(Duration::from_secs(3_600));
    let task = passing(&clock, SECOND, ended(&client, &id)).await;
    assert_eq!((task.status.state, word(&task, "switchboard/reason").as_str()), (TaskState::Failed, "timed_out"));
    assert!(owed(&front, &id).await.is_some(), "it is still at work");
    tokio::task::block_in_place(|| front.kill());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancellation_before_the_remote_task_was_found_reaches_it_once_it_is() {
    let here = tempfile::tempdir().unwrap();
    let (is_listed, is_canceled) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (listed, canceled) = (Arc::clone(&is_listed), Arc::clone(&is_canceled));
    let message_id = parking_lot::Mutex::new(String::new());
    let remote = Scripted::start(false, move |asked, _| match asked.method() {
        "SendMessage" => {
            *message_id.lock() = asked.body["params"]["message"]["messageId"].as_str().unwrap().to_owned();
            Reply::Closes
        }
        "ListTasks" if listed.load(Ordering::SeqCst) => Reply::Result(json!({
            "tasks": [task("TASK_STATE_WORKING", &message_id.lock())],
            "nextPageToken": "", "pageSize": 50, "totalSize": 1,
        })),
        "CancelTask" => {
            canceled.store(true, Ordering::SeqCst);
            Reply::Result(task("TASK_STATE_CANCELED", "m"))
        }
        "GetTask" if canceled.load(Ordering::SeqCst) => Reply::Result(task("TASK_STATE_CANCELED", "m")),
        "SubscribeToTask" if canceled.load(Ordering::SeqCst) => Reply::Error(-32601),
        _ => Reply::Closes,
    })
    .await;
    let clock = SimulatedClock::at(Timestamp(1_000));
    let patient = |parts: &mut RemoteParts| {
        parts.clock = Arc::new(clock.clone());
        // Time passes faster than requests are answered.
        (parts.settings.lost_after, parts.settings.deadline) = (Duration::MAX, None);
    };
    let front = tokio::task::block_in_place(|| hub(here.path(), &remote.url(), patient));
    let client = caller(&front, Version::V1);
    let id = begin(&client, "go").await;
    // It waits before it looks for the message, and then hears that it is canceled; time stands still.
    remote.called("SendMessage", 1).await;
    all_sleep(&clock, 1).await;
    let (canceler, canceled) = (client.clone(), id.clone());
    let canceling = tokio::spawn(async move { canceler.cancel(&CallContext::default(), &canceled, None).await });
    remote.called("ListTasks", 1).await;
    is_listed.store(true, Ordering::SeqCst);
    let task = passing(&clock, SECOND, ended(&client, &id)).await;
    assert_eq!((task.status.state, is_canceled.load(Ordering::SeqCst)), (TaskState::Canceled, true), "{task:?}");
    assert_eq!(canceling.await.unwrap().unwrap().status.state, TaskState::Canceled);
    tokio::task::block_in_place(|| front.kill());
}

/// A push notification as an agent sends it; the status of the answer.
pub(super) async fn push(url: &str, token: &str, body: &serde_json::Value) -> u16 {
    let (address, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let body = body.to_string();
    let head = format!("POST /{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    let headers = format!(
        "X-A2A-Notification-Token: {token}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(format!("{head}{headers}{body}").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_that_was_pushed_counts_once_where_the_agent_has_forgotten_the_task() {
    after_a_pushed_end(-32001, TaskState::Completed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_that_was_pushed_does_not_count_where_the_agent_only_refuses_to_tell_of_the_task() {
    after_a_pushed_end(-32004, TaskState::Failed).await;
}

/// The agent has pushed the end of its task, and answers those who ask for it with an error from then on.
async fn after_a_pushed_end(code: i64, state: TaskState) {
    let here = tempfile::tempdir().unwrap();
    let has_forgotten = Arc::new(AtomicBool::new(false));
    let forgotten = Arc::clone(&has_forgotten);
    let remote = Scripted::pushing(move |asked, _| match asked.method() {
        "SendMessage" => Reply::Result(json!({ "task": task("TASK_STATE_WORKING", "m") })),
        "GetTask" if forgotten.load(Ordering::SeqCst) => Reply::Error(code),
        "GetTask" => Reply::Result(task("TASK_STATE_WORKING", "m")),
        _ => Reply::Error(-32601),
    })
    .await;
    let clock = SimulatedClock::at(Timestamp(1_000));
    let front = front(here.path(), &remote.url(), &clock);
    let client = caller(&front, Version::V1);
    let id = begun(&client, "go").await;
    let sent = remote.calls("SendMessage").remove(0);
    let config = &sent.body["params"]["configuration"]["taskPushNotificationConfig"];
    let (url, token) = (config["url"].as_str().unwrap(), config["token"].as_str().unwrap());
    let update = |task: &str, state: &str| json!({ "statusUpdate": { "taskId": task, "contextId": "rc", "status": { "state": state } } });
    assert_eq!(push(url, "guessed", &update("r", "TASK_STATE_COMPLETED")).await, 401);
    assert!((200..300).contains(&push(url, token, &update("r", "TASK_STATE_WORKING")).await));
    for _ in 0..2 {
        assert!((200..300).contains(&push(url, token, &update("r", "TASK_STATE_COMPLETED")).await));
    }
    has_forgotten.store(true, Ordering::SeqCst);
    let task = passing(&clock, Duration::from_millis(10), ended(&client, &id)).await;
    assert_eq!((task.status.state, texts(&task)), (state, vec!["made".to_owned()]), "{task:?}");
    assert_eq!(ends(&front, &id).await.len(), 1);
    let may_be_at_work = owed(&front, &id).await.is_some();
    assert_eq!(may_be_at_work, state == TaskState::Failed, "{task:?}");
    tokio::task::block_in_place(|| front.kill());
}
