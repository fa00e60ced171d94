//! Messages that do not arrive, or that may have arrived: what is said of them, and what is owed for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use switchboard_a2a::{SendRequest, Task, TaskState, Timestamp, Version};
use switchboard_client::{CallContext, Client};
use switchboard_engine::clock::{Clock, SimulatedClock};
use switchboard_engine::store::Store;
use switchboard_engine::store::feed::Position;
use switchboard_hub::jobs::{CANCEL_KIND, CancelJobs, JobRunner, JobSettings};
use switchboard_hub::registry::{BreakerSettings, BreakerState, CircuitBreaker};

use super::owed::{One, owe, owed};
use super::script::{Reply, Scripted, task};
use super::world::{caller, hub, hub_with_grace, passing, say};

const SECOND: Duration = Duration::from_secs(1);

fn word(task: &Task, key: &str) -> Option<String> {
    task.metadata.as_ref().unwrap().get(key).map(|word| word.as_str().trim_matches('"').to_owned())
}

async fn finished(client: Client, request: SendRequest) -> Task {
    let stream = client.stream(&CallContext::default(), request).await.unwrap();
    stream.finish().await.unwrap().task().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_has_gone_is_waited_for_and_counts_as_away_though_its_card_is_known() {
    let here = tempfile::tempdir().unwrap();
    let remote =
        Scripted::start(false, |_, _| Reply::Result(json!({ "task": task("TASK_STATE_COMPLETED", "m") }))).await;
    let clock = SimulatedClock::at(Timestamp(1_000));
    let opened = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&opened);
    let front = tokio::task::block_in_place(|| {
        hub(here.path(), &remote.url(), |parts| {
            parts.clock = Arc::new(clock.clone());
            let settings = BreakerSettings { failures: 4, open: SECOND };
            parts.breaker = Arc::new(CircuitBreaker::new(settings, Arc::new(clock.clone()), move |state| {
                if state == BreakerState::Open {
                    count.fetch_add(1, Ordering::SeqCst);
                }
            }));
        })
    });
    let client = caller(&front, Version::V1);
    let first = passing(&clock, SECOND, finished(client.clone(), say("go"))).await;
    assert_eq!(first.status.state, TaskState::Completed);
    remote.stop().await;
    let two = futures_util::future::join(finished(client.clone(), say("go")), finished(client.clone(), say("go")));
    let (second, third) = passing(&clock, SECOND, two).await;
    for task in [second, third] {
        assert_eq!(task.status.state, TaskState::Failed);
        assert_eq!(word(&task, "switchboard/reasonDetail").as_deref(), Some("unavailable"), "{task:?}");
        assert_eq!(word(&task, "switchboard/retryAfterMs").as_deref(), Some("60000"));
        let row = switchboard_engine::store::Store::row(&*front.store, &task.id).await.unwrap().unwrap();
        let events = front.engine.log(&task.id, row.key).after(switchboard_engine::Seq(0), usize::MAX).await.unwrap();
        let saved = events.iter().rev().find_map(|event| match switchboard_engine::event::Event::decode(&event.line) {
            Ok(switchboard_engine::event::Event::Saved(value)) => Some(value.as_str().to_owned()),
            _ => None,
        });
        assert!(saved.as_deref().is_some_and(|saved| saved.contains("unsent")), "nothing is owed there: {saved:?}");
    }
    assert!(opened.load(Ordering::SeqCst) > 0, "a known card is no answer of the agent");
    tokio::task::block_in_place(|| front.kill());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_whose_connection_was_lost_is_not_sent_again_in_silence() {
    let here = tempfile::tempdir().unwrap();
    let is_away = Arc::new(AtomicBool::new(true));
    let away = Arc::clone(&is_away);
    let remote = Scripted::start(false, move |asked, _| match asked.method() {
        "SendMessage" => Reply::Closes,
        // The search for the task fails at first as well.
        "ListTasks" if away.swap(false, Ordering::SeqCst) => Reply::Closes,
        _ => Reply::Error(-32601),
    })
    .await;
    let clock = SimulatedClock::at(Timestamp(1_000));
    let front =
        tokio::task::block_in_place(|| hub(here.path(), &remote.url(), |parts| parts.clock = Arc::new(clock.clone())));
    let task = passing(&clock, SECOND, finished(caller(&front, Version::V1), say("go"))).await;
    assert_eq!(word(&task, "switchboard/reasonDetail").as_deref(), Some("send_unknown"), "{task:?}");
    let said = task.status.message.as_ref().unwrap().joined_text();
    assert!(said.contains("the connection to front was lost"), "{said}");
    assert_eq!(remote.calls("SendMessage").len(), 1);
    tokio::task::block_in_place(|| front.kill());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_was_perhaps_sent_is_looked_for_a_minute_before_it_counts_as_orphaned() {
    for arrives in [true, false] {
        let has_arrived = Arc::new(AtomicBool::new(false));
        let is_there = Arc::clone(&has_arrived);
        let message_id = Arc::new(parking_lot::Mutex::new(String::new()));
        let remote = Scripted::start(false, move |asked, _| match asked.method() {
            "SendMessage" => {
                *message_id.lock() = asked.body["params"]["message"]["messageId"].as_str().unwrap().to_owned();
                Reply::Stalls
            }
            "ListTasks" => {
                let task = task("TASK_STATE_WORKING", &message_id.lock());
                let tasks = if is_there.load(Ordering::SeqCst) { vec![task] } else { Vec::new() };
                Reply::Result(json!({ "tasks": tasks, "nextPageToken": "", "pageSize": 50, "totalSize": 1 }))
            }
            "CancelTask" => Reply::Result(task("TASK_STATE_CANCELED", "m")),
            _ => Reply::Error(-32601),
        })
        .await;
        let here = tempfile::tempdir().unwrap();
        let start = || hub_with_grace(here.path(), &remote.url(), Duration::from_millis(20), |_| {});
        let (front, parts) = tokio::task::block_in_place(start);
        let client = caller(&front, Version::V1);
        let mut stream = client.stream(&CallContext::default(), say("go")).await.unwrap();
        stream.next().await.unwrap();
        let id = stream.task_id().unwrap();
        remote.called("SendMessage", 1).await;
        client.cancel(&CallContext::default(), &id, None).await.unwrap();
        let job = owed(&front, &id).await.expect("it has perhaps arrived");
        let clock = SimulatedClock::at(Timestamp(1_000));
        let shared: Arc<dyn Clock> = Arc::new(clock.clone());
        let (engine, store) = (front.engine.clone(), front.store.clone());
        let remotes = Arc::new(One(parts));
        let cancel = CancelJobs {
            engine,
            remotes,
            store: store.clone(),
            clock: Arc::clone(&shared),
            settings: JobSettings::default(),
        };
        let runner = JobRunner::new(store.clone(), shared).with(CANCEL_KIND, Arc::new(cancel));
        owe(&*store, job).await;
        let orphaned = async || {
            let rows = store.read_all(Position::default(), 10_000, usize::MAX).await.unwrap().rows;
            rows.iter().filter(|row| format!("{row:?}").contains("remote.orphaned.front")).count()
        };
        assert_eq!(runner.run_due().await.unwrap(), 1);
        assert!(!remote.calls("ListTasks").is_empty(), "it is looked for at once");
        assert_eq!((remote.calls("CancelTask").len(), orphaned().await), (0, 0), "it may still be on its way");
        has_arrived.store(arrives, Ordering::SeqCst);
        clock.advance(30 * SECOND);
        assert_eq!(runner.run_due().await.unwrap(), 1);
        if arrives {
            assert_eq!(remote.calls("CancelTask")[0].body["params"]["id"], "r");
        } else {
            assert_eq!(orphaned().await, 0, "not before the minute is over");
            clock.advance(30 * SECOND);
            assert_eq!(runner.run_due().await.unwrap(), 1);
        }
        assert_eq!((remote.calls("CancelTask").len(), orphaned().await), (arrives.into(), (!arrives).into()));
        clock.advance(3_600 * SECOND);
        assert_eq!(runner.run_due().await.unwrap(), 0, "nothing is left to do");
        drop(runner);
        tokio::task::block_in_place(|| front.kill());
    }
}
