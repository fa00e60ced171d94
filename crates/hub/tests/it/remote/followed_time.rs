//! How long a remote task was followed, which its deadline counts: nothing of it is lost when a stream ends, or when a server
//! is stopped in order.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use switchboard_a2a::{TaskId, Timestamp, Version};
use switchboard_engine::Seq;
use switchboard_engine::clock::SimulatedClock;
use switchboard_engine::event::Event;
use switchboard_engine::store::Store;
use switchboard_hub::remote::Saved;
use switchboard_store::{Options, SqliteStore};
use tokio::sync::Semaphore;

use super::far;
use super::owed::begun;
use super::script::{Reply, Scripted, card, frame, task};
use super::world::{all_sleep, caller, hub};
use crate::running::{Running, START, folder};

/// Less than the time after which it is saved anyway.
const FOLLOWED: Duration = Duration::from_secs(9 * 60);

/// What the log of a task says that it was followed.
async fn spent(store: &dyn Store, id: &TaskId) -> Option<Duration> {
    let row = store.row(id).await.unwrap().unwrap();
    let mut spent = None;
    for row in store.read(row.key, Seq(0), usize::MAX).await.unwrap() {
        for (_, line) in row.lines() {
            if let Event::Saved(saved) = Event::decode(line).unwrap()
                && let Some(Saved::Attached(attached)) = Saved::read(&saved)
            {
                spent = Some(Duration::from_millis(attached.spent_ms));
            }
        }
    }
    spent
}

/// The same while no server runs.
async fn spent_in(data: &Path, id: &str) -> Option<Duration> {
    let store = SqliteStore::open(data, Options::default()).unwrap();
    let spent = spent(&store, &TaskId::from(id)).await;
    store.close().await.unwrap();
    spent
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
    far::write_agents(files.path(), &remote);
    // Its time passes only where the test says so.
    let clock = SimulatedClock::at(START);
    let running = Running::of_workspace_at(data.path(), files.path(), &clock).await;
    let id = far::begin_and_name(&running, Duration::ZERO).await;
    clock.advance(FOLLOWED);
    running.stop().await;
    assert_eq!(spent_in(data.path(), &id).await, Some(FOLLOWED));
    // The next process goes on from there, and adds nothing of the time in between.
    clock.advance(FOLLOWED);
    let looks = remote.calls("GetTask").len();
    let running = Running::of_workspace_at(data.path(), files.path(), &clock).await;
    remote.called("GetTask", looks + 1).await;
    running.stop().await;
    assert_eq!(spent_in(data.path(), &id).await, Some(FOLLOWED));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_that_a_task_was_followed_is_saved_when_its_stream_ends() {
    let mut card = card(false);
    card["capabilities"]["streaming"] = true.into();
    let ends = Arc::new(Semaphore::new(0));
    let permit = Arc::clone(&ends);
    let remote = Scripted::with_card(card, move |asked, _| match asked.method() {
        "SendStreamingMessage" => {
            let first = vec![frame(None, json!({ "task": task("TASK_STATE_WORKING", "m") }))];
            Reply::Held(first, Arc::clone(&permit), Vec::new())
        }
        // Nothing else is answered, so the stream is not taken up again.
        _ => Reply::Closes,
    })
    .await;
    let here = tempfile::tempdir().unwrap();
    let clock = SimulatedClock::at(Timestamp(1_000));
    let front = tokio::task::block_in_place(|| {
        hub(here.path(), &remote.url(), |parts| {
            parts.clock = Arc::new(clock.clone());
            parts.callbacks = None;
        })
    });
    let id = begun(&caller(&front, Version::V1), "go").await;
    // Until its deadline, and until the time is saved anyway.
    all_sleep(&clock, 2).await;
    clock.advance(FOLLOWED);
    assert_eq!(spent(&*front.store, &id).await, Some(Duration::ZERO));
    ends.add_permits(1);
    let saved = async {
        loop {
            let spent = spent(&*front.store, &id).await;
            if spent != Some(Duration::ZERO) {
                return spent;
            }
        }
    };
    // No time passes meanwhile in which it would be saved anyway.
    assert_eq!(tokio::time::timeout(crate::HANG_GUARD, saved).await.expect("it is saved"), Some(FOLLOWED));
    tokio::task::block_in_place(|| front.kill());
}
