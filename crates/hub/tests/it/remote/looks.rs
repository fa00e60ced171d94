//! What time does to a remote task that is followed: when it is looked at beside a silent stream, and which of it counts
//! against its deadline.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use switchboard_a2a::{Message, Role, Task, TaskState, Timestamp, Version};
use switchboard_client::{CallContext, Client};
use switchboard_engine::clock::SimulatedClock;
use switchboard_hub::registry::{BreakerSettings, BreakerState, CircuitBreaker, RequestOutcome, RequestSource};
use switchboard_hub::remote::RemoteParts;
use tokio::sync::Semaphore;

use super::crashes::ended;
use super::owed::begun;
use super::script::{Reply, Scripted, card, frame, task};
use super::world::{Running, all_sleep, caller, hub, passing, say};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);
/// What sleeps while a task is followed: until its deadline, the next poll, and the next time that is saved.
const SLEEPERS: usize = 3;

fn front(folder: &Path, remote: &Scripted, clock: &SimulatedClock, change: impl FnOnce(&mut RemoteParts)) -> Running {
    tokio::task::block_in_place(|| {
        hub(folder, &remote.url(), |parts| {
            parts.clock = Arc::new(clock.clone());
            change(parts);
        })
    })
}

/// Lets time pass until one of the sleepers is woken; how long that took.
async fn until_woken(clock: &SimulatedClock) -> Duration {
    all_sleep(clock, SLEEPERS).await;
    let mut passed = Duration::ZERO;
    while clock.sleepers() == SLEEPERS {
        clock.advance(SECOND);
        passed += SECOND;
    }
    passed
}

fn asking() -> Value {
    let mut waiting = task("TASK_STATE_INPUT_REQUIRED", "m");
    waiting["status"]["message"] = serde_json::to_value(Message::text(Role::Agent, "ok?")).unwrap();
    waiting
}

async fn asked(client: &Client) -> Task {
    let stream = client.stream(&CallContext::default(), say("go")).await.unwrap();
    let task = stream.finish().await.unwrap().task().unwrap().clone();
    assert_eq!(task.status.state, TaskState::InputRequired);
    task
}

fn streaming_and_pushing() -> Value {
    let mut card = card(false);
    card["capabilities"]["streaming"] = true.into();
    card["capabilities"]["pushNotifications"] = true.into();
    card
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_task_is_looked_at_twice_a_minute_unless_its_agent_is_left_alone() {
    let here = tempfile::tempdir().unwrap();
    let permit = Arc::new(Semaphore::new(0));
    let remote = Scripted::with_card(streaming_and_pushing(), move |asked, _| match asked.method() {
        "SendStreamingMessage" => {
            let first = vec![frame(None, json!({ "task": task("TASK_STATE_WORKING", "m") }))];
            Reply::Held(first, Arc::clone(&permit), Vec::new())
        }
        "GetTask" => Reply::Result(task("TASK_STATE_WORKING", "m")),
        _ => Reply::Error(-32601),
    })
    .await;
    let clock = SimulatedClock::at(Timestamp(1_000));
    // The breaker's own time stands still.
    let breakers = SimulatedClock::at(Timestamp(1_000));
    let settings = BreakerSettings { failures: 2, open: SECOND };
    let breaker = Arc::new(CircuitBreaker::new(settings, Arc::new(breakers.clone()), |_| {}));
    let front = front(here.path(), &remote, &clock, |parts| parts.breaker = Arc::clone(&breaker));
    begun(&caller(&front, Version::V1), "go").await;
    for look in 1..=3 {
        let waited = until_woken(&clock).await;
        assert!((24 * SECOND..=37 * SECOND).contains(&waited), "a fifth more or less: {waited:?}");
        remote.called("GetTask", look).await;
    }
    (0..2).for_each(|_| breaker.allow().unwrap().record(RequestSource::Probe, RequestOutcome::Failed));
    assert_eq!(breaker.state(), BreakerState::Open);
    for _ in 0..3 {
        until_woken(&clock).await;
    }
    // One that is half open waits for a trial whose outcome is told, which that of a look is not.
    all_sleep(&clock, SLEEPERS).await;
    breakers.advance(SECOND);
    until_woken(&clock).await;
    all_sleep(&clock, SLEEPERS).await;
    breaker.allow().expect("the trial is left").record(RequestSource::Probe, RequestOutcome::Answered);
    until_woken(&clock).await;
    remote.called("GetTask", 4).await;
    assert_eq!(remote.calls("GetTask").len(), 4, "it was left alone in between");
    tokio::task::block_in_place(|| front.kill());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_that_a_task_waits_for_an_answer_does_not_count_against_its_deadline() {
    let here = tempfile::tempdir().unwrap();
    let remote = Scripted::start(false, |asked, before| match (asked.method(), before) {
        ("SendMessage", 0) => Reply::Result(json!({ "task": asking() })),
        ("SendMessage", _) | ("GetTask", _) => Reply::Result(match asked.method() {
            "GetTask" => task("TASK_STATE_WORKING", "m"),
            _ => json!({ "task": task("TASK_STATE_WORKING", "m") }),
        }),
        _ => Reply::Error(-32601),
    })
    .await;
    let clock = SimulatedClock::at(Timestamp(1_000));
    let front = front(here.path(), &remote, &clock, |_| {});
    let client = caller(&front, Version::V1);
    let waits = asked(&client).await;
    clock.advance(48 * HOUR);
    let mut answer = say("yes");
    answer.message.task_id = Some(waits.id.clone());
    let _answered = client.stream(&CallContext::default(), answer).await.unwrap();
    all_sleep(&clock, SLEEPERS).await;
    clock.advance(23 * HOUR);
    // What was woken sleeps again, and the deadline was not.
    all_sleep(&clock, SLEEPERS).await;
    let still = client.get(&CallContext::default(), &waits.id, None).await.unwrap();
    assert_eq!(still.status.state, TaskState::Working, "a day is allowed");
    clock.advance(HOUR);
    let late = passing(&clock, SECOND, ended(&client, &waits.id)).await;
    let reason = late.metadata.as_ref().unwrap().get("switchboard/reason").and_then(|reason| reason.as_text());
    assert_eq!((late.status.state, reason.as_deref()), (TaskState::Failed, Some("timed_out")), "{late:?}");
    tokio::task::block_in_place(|| front.kill());
}
