//! How long a remote task was followed, which its deadline counts: a server that is stopped in order loses none of it.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use switchboard_a2a::TaskId;
use switchboard_engine::Seq;
use switchboard_engine::clock::SimulatedClock;
use switchboard_engine::event::Event;
use switchboard_engine::store::Store;
use switchboard_hub::remote::Saved;
use switchboard_store::{Options, SqliteStore};

use super::script::{Reply, Scripted, task};
use crate::running::{Running, START, folder};

/// Less than the time after which it is saved anyway.
const FOLLOWED: Duration = Duration::from_secs(9 * 60);

/// What the log of a task says that it was followed.
async fn spent_ms(data: &Path, id: &str) -> Option<u64> {
    let store = SqliteStore::open(data, Options::default()).unwrap();
    let row = store.row(&TaskId::from(id)).await.unwrap().unwrap();
    let mut spent = None;
    for row in store.read(row.key, Seq(0), usize::MAX).await.unwrap() {
        for (_, line) in row.lines() {
            if let Event::Saved(saved) = Event::decode(line).unwrap()
                && let Some(Saved::Attached(attached)) = Saved::read(&saved)
            {
                spent = Some(attached.spent_ms);
            }
        }
    }
    store.close().await.unwrap();
    spent
}

/// Waits until the task here names its remote task: it is followed from before that on.
async fn until_named(running: &Running, id: &str) {
    let named = async {
        let path = format!("/a2a/far/tasks/{id}");
        while running.get(&path, "bob").await.1["metadata"]["switchboard/remote"] == Value::Null {}
    };
    tokio::time::timeout(crate::HANG_GUARD, named).await.expect("it is followed");
}

#[tokio::test]
async fn the_time_that_a_task_was_followed_survives_stops_in_between() {
    let remote = Scripted::start(false, |asked, _| match asked.method() {
        "SendMessage" => Reply::Result(json!({ "task": task("TASK_STATE_WORKING", "m") })),
        "GetTask" => Reply::Result(task("TASK_STATE_WORKING", "m")),
        _ => Reply::Error(-32601),
    })
    .await;
    let (data, files) = (folder(), folder());
    let agents = format!("agents:\n  - name: far\n    url: {}\n", remote.url());
    std::fs::write(files.path().join("agents.yaml"), agents).unwrap();
    // Its time passes only where the test says so.
    let clock = SimulatedClock::at(START);
    let running = Running::of_workspace_at(data.path(), files.path(), &clock).await;
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "go" }] });
    let sent = json!({ "message": message, "configuration": { "returnImmediately": true } });
    let (status, answer) = running.post("/a2a/far/message:send", "bob", &sent).await;
    assert_eq!(status, 200, "{answer}");
    let id = answer["task"]["id"].as_str().unwrap();
    until_named(&running, id).await;
    clock.advance(FOLLOWED);
    running.stop().await;
    let spent = u64::try_from(FOLLOWED.as_millis()).ok();
    assert_eq!(spent_ms(data.path(), id).await, spent);
    // The next process goes on from there, and adds nothing of the time in between.
    clock.advance(FOLLOWED);
    let looks = remote.calls("GetTask").len();
    let running = Running::of_workspace_at(data.path(), files.path(), &clock).await;
    remote.called("GetTask", looks + 1).await;
    running.stop().await;
    assert_eq!(spent_ms(data.path(), id).await, spent);
}
