//! Remote agents of a whole server: what is owed to them when they are not told.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use switchboard_engine::clock::SimulatedClock;

use super::far;
use super::script::{Reply, Scripted, task};
use super::world::passing;
use crate::running::{Running, START, folder};

const STEP: Duration = Duration::from_millis(100);

#[tokio::test]
async fn a_remote_task_is_canceled_though_the_server_stopped_before_it_had_read_of_the_end() {
    let is_deaf = Arc::new(AtomicBool::new(true));
    let deaf = Arc::clone(&is_deaf);
    let remote = Scripted::start(false, move |asked, _| match asked.method() {
        "SendMessage" => Reply::Result(json!({ "task": task("TASK_STATE_WORKING", "m") })),
        "GetTask" => Reply::Result(task("TASK_STATE_WORKING", "m")),
        "CancelTask" if deaf.load(Ordering::SeqCst) => Reply::Closes,
        "CancelTask" => Reply::Result(task("TASK_STATE_CANCELED", "m")),
        _ => Reply::Error(-32601),
    })
    .await;
    let (data, files) = (folder(), folder());
    far::write_agents(files.path(), &remote);
    let clock = SimulatedClock::at(START);
    let running = Running::of_workspace_at(data.path(), files.path(), &clock).await;
    running.unreadable.set(usize::MAX);
    let id = far::begin_and_name(&running, STEP).await;
    let head = format!("POST /a2a/far/tasks/{id}:cancel");
    let (status, canceled) = passing(&clock, STEP, running.ask(&head, "ann", &[], "{}")).await;
    assert_eq!((status, &canceled["status"]["state"]), (200, &json!("TASK_STATE_CANCELED")), "{canceled}");
    assert_ne!(canceled["metadata"]["switchboard/remote"]["state"], "TASK_STATE_CANCELED", "not by the remote");
    running.stop().await;
    let before = remote.calls("CancelTask").len();
    is_deaf.store(false, Ordering::SeqCst);
    let running = Running::of_workspace_at(data.path(), files.path(), &clock).await;
    passing(&clock, STEP, remote.called("CancelTask", before + 1)).await;
    // Another message is followed to its end in the meantime, and the job is not done twice.
    let other = far::begin_and_name(&running, STEP).await;
    let head = format!("POST /a2a/far/tasks/{other}:cancel");
    passing(&clock, STEP, running.ask(&head, "ann", &[], "{}")).await;
    let (_, page) = running.get("/api/feed?from=oldest&topic=remote.%23", "ann").await;
    assert_eq!(page["items"], json!([]), "nothing is left there");
    running.stop().await;
}
