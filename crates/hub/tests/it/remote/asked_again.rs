//! Remote agents that ask the same twice, and ones that still show the question that was just answered.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use switchboard_a2a::{SendRequest, Task, TaskState, Timestamp, Version};
use switchboard_client::{CallContext, Client};
use switchboard_engine::Seq;
use switchboard_engine::clock::SimulatedClock;
use switchboard_engine::event::Event;
use switchboard_engine::store::Store;
use switchboard_hub::registry::{BreakerSettings, BreakerState, CircuitBreaker, RequestOutcome, RequestSource};

use super::script::{Reply, Scripted, task};
use super::world::{caller, hub, passing, say};

/// A task that waits for an answer to the question of this id.
fn asking(id: &str) -> Value {
    let mut waiting = task("TASK_STATE_INPUT_REQUIRED", "m");
    waiting["status"]["message"] = json!({ "messageId": id, "role": "ROLE_AGENT", "parts": [{ "text": "ok?" }] });
    waiting
}

async fn finished(client: &Client, request: SendRequest) -> Task {
    let stream = client.stream(&CallContext::default(), request).await.unwrap();
    let finished = tokio::time::timeout(crate::HANG_GUARD, stream.finish()).await.expect("it ends");
    finished.unwrap().task().unwrap().clone()
}

fn answer_to(asked: &Task) -> SendRequest {
    let mut answer = say("yes");
    answer.message.task_id = Some(asked.id.clone());
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_is_asked_again_in_the_same_words_is_told_at_once() {
    let here = tempfile::tempdir().unwrap();
    let remote = Scripted::start(false, |asked, before| match (asked.method(), before) {
        ("SendMessage", 0) => Reply::Result(json!({ "task": asking("first") })),
        ("SendMessage", _) => Reply::Result(json!({ "task": asking("second") })),
        _ => Reply::Error(-32004),
    })
    .await;
    // Its time stands still, so nothing is tried again.
    let clock = SimulatedClock::at(Timestamp(1_000));
    let start = || hub(here.path(), &remote.url(), |parts| parts.clock = Arc::new(clock.clone()));
    let front = tokio::task::block_in_place(start);
    let client = caller(&front, Version::V1);
    let asked = finished(&client, say("go")).await;
    let again = finished(&client, answer_to(&asked)).await;
    assert_eq!((asked.status.state, again.status.state), (TaskState::InputRequired, TaskState::InputRequired));
    let row = front.store.row(&asked.id).await.unwrap().unwrap();
    let log = front.engine.log(&asked.id, row.key).after(Seq(0), usize::MAX).await.unwrap();
    let questions = log.iter().filter_map(|event| match Event::decode(&event.line) {
        Ok(Event::StatusUpdate(update)) if update.status.state.is_interrupted() => update.status.message,
        _ => None,
    });
    let questions: Vec<String> = questions.map(|question| question.message_id.to_string()).collect();
    assert_eq!(questions, ["first", "second"]);
    tokio::task::block_in_place(|| front.kill());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_still_shows_an_answered_question_is_asked_again_and_has_not_failed() {
    let here = tempfile::tempdir().unwrap();
    let remote = Scripted::start(false, |asked, _| match asked.method() {
        "SendMessage" => Reply::Result(json!({ "task": asking("first") })),
        // The outcome of this one is not recorded yet when it is called.
        "GetTask" => Reply::Stalls,
        _ => Reply::Error(-32004),
    })
    .await;
    let clock = SimulatedClock::at(Timestamp(1_000));
    let settings = BreakerSettings { failures: 2, open: Duration::from_secs(60) };
    let breaker_clock = SimulatedClock::at(Timestamp(1_000));
    let breaker = Arc::new(CircuitBreaker::new(settings, Arc::new(breaker_clock), |_| {}));
    let start = || {
        hub(here.path(), &remote.url(), |parts| {
            parts.clock = Arc::new(clock.clone());
            parts.breaker = Arc::clone(&breaker);
        })
    };
    let front = tokio::task::block_in_place(start);
    let client = caller(&front, Version::V1);
    let asked = finished(&client, say("go")).await;
    let _answering = client.stream(&CallContext::default(), answer_to(&asked)).await.unwrap();
    passing(&clock, Duration::from_secs(1), remote.called("GetTask", 1)).await;
    breaker.allow().unwrap().record(RequestSource::Probe, RequestOutcome::Failed);
    assert_eq!(breaker.state(), BreakerState::Closed, "a probe has failed, and the agent has not before");
    tokio::task::block_in_place(|| front.kill());
}
