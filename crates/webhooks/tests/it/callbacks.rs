//! The receiving end: tokens, every dialect, duplicates, stale orders and restarts.

use std::sync::Arc;
use std::time::Duration;

use switchboard_a2a::{PushConfig, StreamResponse, TaskId, TaskState, Version};
use switchboard_webhooks::{CallbackReceiver, ReceiveError, Received};
use tempfile::tempdir;

use crate::receiver::Receiver;
use crate::test_kernel::{TestKernel, to};

/// A hang guard: what has not happened after so long never will. It says nothing about speed.
const HANG_GUARD: Duration = Duration::from_secs(300);

fn callbacks(kernel: &TestKernel) -> CallbackReceiver {
    CallbackReceiver::new(kernel.store.clone(), Arc::new(kernel.clock.clone()))
}

async fn receive(
    callbacks: &CallbackReceiver,
    task: &TaskId,
    token: Option<&str>,
    id: Option<&str>,
    body: &[u8],
) -> Result<Received, ReceiveError> {
    callbacks.receive(callbacks.admit(task, token).await?, id, body).await
}

fn state(update: &StreamResponse) -> Option<TaskState> {
    match update {
        StreamResponse::Task(task) => Some(task.status.state),
        StreamResponse::StatusUpdate(update) => Some(update.status.state),
        _ => None,
    }
}

/// A status of remote task `r`, dated by a second.
fn update(state: &str, at: &str) -> String {
    format!(
        r#"{{"statusUpdate":{{"taskId":"r","contextId":"c","status":{{"state":"TASK_STATE_{state}","timestamp":"2026-11-15T10:00:{at}Z"}}}}}}"#
    )
}

#[tokio::test]
async fn only_the_token_lets_in() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let callbacks = callbacks(&kernel);
    let task = kernel.send("wait", None).await;
    let body = br#"{"kind":"task","id":"r","contextId":"c","status":{"state":"working"}}"#;
    let unknown = receive(&callbacks, &task, Some("x"), None, body).await;
    assert!(matches!(unknown, Err(ReceiveError::Unknown(_))), "nothing is expected yet");
    let token = callbacks.open(&task).await.unwrap();
    assert_eq!(token.len(), 43, "256 bits");
    for wrong in [None, Some(""), Some("x"), Some(&token[..42]), Some(&*format!("{token}x"))] {
        let refused = receive(&callbacks, &task, wrong, None, body).await;
        assert!(matches!(refused, Err(ReceiveError::Token)), "{wrong:?}: {refused:?}");
    }
    assert_eq!(receive(&callbacks, &task, Some(&token), None, body).await.unwrap(), Received::New);
    let renewed = callbacks.open(&task).await.unwrap();
    assert!(matches!(receive(&callbacks, &task, Some(&token), None, body).await, Err(ReceiveError::Token)));
    assert_eq!(receive(&callbacks, &task, Some(&renewed), None, body).await.unwrap(), Received::Duplicate);
    let unknown = TaskId::from("unknown");
    assert!(matches!(callbacks.open(&unknown).await, Err(ReceiveError::Unknown(_))));
    assert_eq!(
        CallbackReceiver::address("https://here.test/", &task),
        format!("https://here.test/api/a2a/callback/{task}")
    );
}

#[tokio::test]
async fn every_dialect_is_understood() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let callbacks = callbacks(&kernel);
    let bodies = [
        r#"{"kind":"task","id":"r","contextId":"c","status":{"state":"completed"}}"#,
        r#"{"id":"r","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"}}"#,
        r#"{"task":{"id":"r","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"}}}"#,
        r#"{"kind":"status-update","taskId":"r","contextId":"c","status":{"state":"completed"},"final":true}"#,
        r#"{"kind":"status-update","taskId":"r","contextId":"c","status":{"state":"completed"},"final":true,"artifact":{"artifactId":"a","parts":[{"kind":"text","text":"x"}],"append":false,"lastChunk":true}}"#,
        r#"{"statusUpdate":{"taskId":"r","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"kind":"status-update","taskId":"r","contextId":"c","status":{"state":"completed"},"final":true}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"statusUpdate":{"taskId":"r","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"}}}}"#,
    ];
    for body in bodies {
        let task = kernel.send("wait", None).await;
        let token = callbacks.open(&task).await.unwrap();
        receive(&callbacks, &task, Some(&token), None, body.as_bytes())
            .await
            .unwrap_or_else(|error| panic!("{body}: {error}"));
        let update = callbacks.follow(&task).await.unwrap().next().await.unwrap().unwrap();
        assert_eq!(state(&update.update), Some(TaskState::Completed), "{body}");
    }
    let task = kernel.send("wait", None).await;
    let token = callbacks.open(&task).await.unwrap();
    for nonsense in [
        "",
        "x",
        "[]",
        "{}",
        "null",
        r#"{"a":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"x"}}"#,
        "\u{feff}{",
    ] {
        let refused = receive(&callbacks, &task, Some(&token), None, nonsense.as_bytes()).await;
        assert!(matches!(refused, Err(ReceiveError::Body(_))), "{nonsense:?}: {refused:?}");
    }
    let refused = receive(&callbacks, &task, Some(&token), None, b"\xff\xfe").await;
    assert!(matches!(refused, Err(ReceiveError::Body(_))), "{refused:?}");
}

#[tokio::test]
async fn duplicates_and_stale_orders_change_nothing() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let callbacks = callbacks(&kernel);
    let task = kernel.send("wait", None).await;
    let token = callbacks.open(&task).await.unwrap();
    let told = async |id: Option<&str>, body: &str| {
        receive(&callbacks, &task, Some(&token), id, body.as_bytes()).await.unwrap()
    };
    assert_eq!(told(Some("r:p:7-1a2b:1.4"), &update("WORKING", "04")).await, Received::New);
    assert_eq!(told(Some("r:p:7-1a2b:1.4"), &update("WORKING", "04")).await, Received::Duplicate);
    assert_eq!(told(Some("r:p:7-1a2b:1.2"), &update("SUBMITTED", "02")).await, Received::New);
    assert_eq!(told(None, &update("WORKING", "03")).await, Received::New);
    assert_eq!(told(Some("r:p:7-1a2b:1.5"), &update("COMPLETED", "05")).await, Received::New);
    assert_eq!(told(Some("r:p:7-1a2b:1.6"), &update("WORKING", "06")).await, Received::New);
    // Two equal pieces without a name are two.
    let piece = r#"{"artifactUpdate":{"taskId":"r","contextId":"c","artifact":{"artifactId":"a","parts":[{"text":"x"}]},"append":true}}"#;
    let other = kernel.send("wait", None).await;
    let other_token = callbacks.open(&other).await.unwrap();
    for _ in 0..2 {
        let received = receive(&callbacks, &other, Some(&other_token), None, piece.as_bytes()).await;
        assert_eq!(received.unwrap(), Received::New);
    }
    let mut follower = callbacks.follow(&task).await.unwrap();
    assert_eq!(state(&follower.next().await.unwrap().unwrap().update), Some(TaskState::Working));
    assert_eq!(state(&follower.next().await.unwrap().unwrap().update), Some(TaskState::Completed));
    assert!(follower.next().await.unwrap().is_none(), "nothing follows the end");
}

#[tokio::test]
async fn a_remote_clock_that_is_set_back_hides_nothing() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let callbacks = callbacks(&kernel);
    let task = kernel.send("wait", None).await;
    let token = callbacks.open(&task).await.unwrap();
    let told = [
        (Some("r::7-1a2b:1.4"), update("WORKING", "40")),
        // Later by its number, earlier by its time.
        (Some("r::7-1a2b:1.6"), update("INPUT_REQUIRED", "10")),
        (Some("r::7-1a2b:1.5"), update("WORKING", "50")),
        // Only its time says how old it is, and the end is news at any time.
        (None, update("COMPLETED", "05")),
        (Some("r::7-1a2b:1.9"), update("COMPLETED", "59")),
    ];
    for (id, body) in &told {
        receive(&callbacks, &task, Some(&token), *id, body.as_bytes()).await.unwrap();
    }
    let mut follower = callbacks.follow(&task).await.unwrap();
    for expected in [TaskState::Working, TaskState::InputRequired, TaskState::Completed] {
        let next = follower.next().await.unwrap().expect("something is left out");
        assert_eq!(state(&next.update), Some(expected));
    }
    assert!(follower.next().await.unwrap().is_none(), "nothing follows the end");
}

#[tokio::test]
async fn names_that_others_give_say_nothing_of_the_order() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let callbacks = callbacks(&kernel);
    let foreign = [
        ["evt:2.1", "evt:1.9"],
        ["2.1", "1.9"],
        ["r:2.1", "r:1.9"],
        ["r:p:2.1", "r:p:1.9"],
        ["r:p:x-1a:2.1", "r:p:x-1a:1.9"],
        ["r:p:7-:2.1", "r:p:7-:1.9"],
        ["r:p:7-1a:+2.1", "r:p:7-1a:+1.9"],
        ["other:p:7-1a:2.1", "other:p:7-1a:1.9"],
    ];
    for ids in foreign {
        let task = kernel.send("wait", None).await;
        let token = callbacks.open(&task).await.unwrap();
        for (id, body) in ids.iter().zip([update("WORKING", "01"), update("INPUT_REQUIRED", "02")]) {
            receive(&callbacks, &task, Some(&token), Some(id), body.as_bytes()).await.unwrap();
        }
        let mut follower = callbacks.follow(&task).await.unwrap();
        for id in ids {
            let next = tokio::time::timeout(HANG_GUARD, follower.next()).await;
            assert_eq!(next.unwrap_or_else(|_| panic!("{id} is left out")).unwrap().unwrap().id, id);
        }
    }
}

#[tokio::test]
async fn what_our_own_kind_sends_is_ordered_by_its_name() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let receiver = Receiver::open().await;
    // Names may hold what parts the names of deliveries.
    let webhook = PushConfig { id: Some("a:b".to_owned()), ..to(&receiver) };
    kernel.finish("say a; say b", Some((Version::V1, webhook))).await;
    kernel.all_finished().await;
    let sent = receiver.all();
    assert_eq!(receiver.abouts(), ["working", "working", "completed"]);
    let callbacks = callbacks(&kernel);
    let task = kernel.send("wait", None).await;
    let token = callbacks.open(&task).await.unwrap();
    for delivery in [&sent[1], &sent[0], &sent[2]] {
        // Without its time, so that only its name tells.
        let mut body = delivery.json();
        body["statusUpdate"]["status"].as_object_mut().unwrap().remove("timestamp").unwrap();
        receive(&callbacks, &task, Some(&token), Some(delivery.id()), body.to_string().as_bytes()).await.unwrap();
    }
    let mut follower = callbacks.follow(&task).await.unwrap();
    assert_eq!(follower.next().await.unwrap().unwrap().id, sent[1].id());
    assert_eq!(follower.next().await.unwrap().unwrap().id, sent[2].id(), "the first came too late");
}

#[tokio::test]
async fn what_was_not_taken_waits_for_the_next_follower() {
    let folder = tempdir().unwrap();
    let task;
    {
        let kernel = TestKernel::open(folder.path()).await;
        let callbacks = callbacks(&kernel);
        task = kernel.finish("say a", None).await;
        let token = callbacks.open(&task).await.unwrap();
        let mut follower = callbacks.follow(&task).await.unwrap();
        let body = |text: &str| {
            format!(
                r#"{{"artifactUpdate":{{"taskId":"r","contextId":"c","artifact":{{"artifactId":"a","parts":[{{"text":"{text}"}}]}}}}}}"#
            )
        };
        let next = tokio::spawn(async move { (follower.next().await.unwrap().unwrap(), follower) });
        receive(&callbacks, &task, Some(&token), Some("1"), body("one").as_bytes()).await.unwrap();
        let (first, follower) = next.await.unwrap();
        assert_eq!(first.id, "1");
        follower.taken().await.unwrap();
        receive(&callbacks, &task, Some(&token), Some("2"), body("two").as_bytes()).await.unwrap();
        kernel.engine.shutdown().await.unwrap();
    }
    let kernel = TestKernel::open(folder.path()).await;
    let mut follower = callbacks(&kernel).follow(&task).await.unwrap();
    assert_eq!(follower.next().await.unwrap().unwrap().id, "2");
}
