//! The receiving end: tokens, every dialect, what is stored and what only wakes, and restarts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use switchboard_a2a::{StreamResponse, TaskId, TaskState};
use switchboard_webhooks::{CallbackReceiver, ReceiveError, Received};
use tempfile::tempdir;

use crate::test_kernel::TestKernel;

/// A hang guard: what has not happened after so long never will. It says nothing about speed.
const HANG_GUARD: Duration = Duration::from_secs(300);

fn callbacks(kernel: &TestKernel) -> CallbackReceiver {
    CallbackReceiver::new(kernel.store.clone(), kernel.engine.secret(), Arc::new(kernel.clock.clone()))
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
    let body = br#"{"kind":"task","id":"r","contextId":"c","status":{"state":"completed"}}"#;
    let unknown = receive(&callbacks, &task, Some("x"), None, body).await;
    assert!(matches!(unknown, Err(ReceiveError::Unknown(_))), "nothing is expected yet");
    let token = callbacks.open(&task).await.unwrap();
    assert_eq!(token.len(), 43, "256 bits");
    for wrong in [None, Some(""), Some("x"), Some(&token[..42]), Some(&*format!("{token}x"))] {
        let refused = receive(&callbacks, &task, wrong, None, body).await;
        assert!(matches!(refused, Err(ReceiveError::Token)), "{wrong:?}: {refused:?}");
    }
    assert_eq!(receive(&callbacks, &task, Some(&token), None, body).await.unwrap(), Received::New);
    // A message that is sent again has to be the same, so the token is too, and no other task's.
    assert_eq!(callbacks.open(&task).await.unwrap(), token);
    assert_eq!(receive(&callbacks, &task, Some(&token), None, body).await.unwrap(), Received::Duplicate);
    let other = kernel.send("wait", None).await;
    assert_ne!(callbacks.open(&other).await.unwrap(), token);
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
        let ends = callbacks.ends(&task).await.unwrap();
        assert_eq!(ends.iter().map(state).collect::<Vec<_>>(), [Some(TaskState::Completed)], "{body}");
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
    // As deep as a task that this server would take as an answer, and one level deeper.
    for (levels, is_taken) in [(64, true), (65, false)] {
        let data = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let status = format!(r#"{{"state":"TASK_STATE_COMPLETED"}},"metadata":{{"own":{data}}}"#);
        let body = format!(r#"{{"task":{{"id":"r","contextId":"c","status":{status}}}}}"#);
        let received = receive(&callbacks, &task, Some(&token), None, body.as_bytes()).await;
        assert_eq!(received.is_ok(), is_taken, "{levels} levels: {received:?}");
    }
}

#[tokio::test]
async fn only_the_end_is_stored_and_everything_wakes() {
    let folder = tempdir().unwrap();
    let (task, token);
    {
        let kernel = TestKernel::open(folder.path()).await;
        let callbacks = callbacks(&kernel);
        task = kernel.finish("say a", None).await;
        token = callbacks.open(&task).await.unwrap();
        let heard = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&heard);
        callbacks.listen(move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
        });
        let watch = callbacks.watch(&task);
        let piece =
            r#"{"artifactUpdate":{"taskId":"r","contextId":"c","artifact":{"artifactId":"a","parts":[{"text":"x"}]}}}"#;
        for body in [&update("WORKING", "01"), piece, &update("INPUT_REQUIRED", "02")] {
            let told = receive(&callbacks, &task, Some(&token), Some("same"), body.as_bytes()).await.unwrap();
            assert_eq!(told, Received::Noticed);
            tokio::time::timeout(HANG_GUARD, watch.notified()).await.expect("it wakes");
        }
        assert!(callbacks.ends(&task).await.unwrap().is_empty(), "nothing but the end is kept");
        for expected in [Received::New, Received::Duplicate] {
            let told = receive(&callbacks, &task, Some(&token), None, update("COMPLETED", "03").as_bytes()).await;
            assert_eq!(told.unwrap(), expected);
        }
        tokio::time::timeout(HANG_GUARD, watch.notified()).await.expect("the end wakes");
        assert_eq!(heard.load(Ordering::Relaxed), 4, "all but the duplicate");
        kernel.engine.shutdown().await.unwrap();
    }
    let kernel = TestKernel::open(folder.path()).await;
    let callbacks = callbacks(&kernel);
    let ends = callbacks.ends(&task).await.unwrap();
    assert_eq!(ends.iter().map(state).collect::<Vec<_>>(), [Some(TaskState::Completed)]);
    assert_eq!(callbacks.open(&task).await.unwrap(), token, "after a restart too");
}

#[tokio::test]
async fn however_many_ends_were_told_the_newest_is_found() {
    let folder = tempdir().unwrap();
    let kernel = TestKernel::open(folder.path()).await;
    let callbacks = callbacks(&kernel);
    let task = kernel.send("wait", None).await;
    let token = callbacks.open(&task).await.unwrap();
    let told = |number: usize| {
        format!(r#"{{"task":{{"id":"r{number}","contextId":"c","status":{{"state":"TASK_STATE_COMPLETED"}}}}}}"#)
    };
    for number in 1..=1_100 {
        let received = receive(&callbacks, &task, Some(&token), None, told(number).as_bytes()).await;
        assert_eq!(received.unwrap(), Received::New, "{number}: nobody is told to come again");
    }
    let received = receive(&callbacks, &task, Some(&token), None, told(1_000).as_bytes()).await;
    assert_eq!(received.unwrap(), Received::Duplicate, "of an older one it is known that it has come");
    let ends = callbacks.ends(&task).await.unwrap();
    let ids: Vec<_> = ends
        .iter()
        .map(|end| match end {
            StreamResponse::Task(task) => task.id.as_str(),
            _ => "",
        })
        .collect();
    assert_eq!((ids[0], ids[1], ids.len()), ("r1100", "r1099", 64), "the newest first, and not without limit");
}
