//! Tasks that were canceled say nothing of their agent: they are no failures of it, and no successes.

use serde_json::{Value, json};
use switchboard_engine::clock::SimulatedClock;

use crate::health::{counted, server};
use crate::running::{Running, START, folder};

/// Begins a task that waits, and cancels it.
async fn cancel_one(running: &Running, agent: &str) {
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "wait" }],
        "metadata": { "skill": "acting" } });
    let body = json!({ "message": message, "configuration": { "returnImmediately": true } });
    let (status, answer) = running.post(&format!("/a2a/{agent}/message:send"), "bob", &body).await;
    assert_eq!(status, 200, "{answer}");
    let id = answer["task"]["id"].as_str().unwrap();
    let (status, canceled) = running.post(&format!("/a2a/{agent}/tasks/{id}:cancel"), "bob", &json!({})).await;
    assert_eq!((status, &canceled["status"]["state"]), (200, &json!("TASK_STATE_CANCELED")), "{canceled}");
}

#[tokio::test]
async fn six_tasks_that_their_caller_has_canceled_are_no_failures_of_their_agent() {
    let (data, clock) = (folder(), SimulatedClock::at(START));
    let running = server(data.path(), &clock).await;
    for _ in 0..6 {
        cancel_one(&running, "echo").await;
    }
    let health = counted(&running, 6).await;
    let echo = &health["agents"][0];
    assert_eq!((&echo["canceled"], &echo["successRate"]), (&json!(6), &Value::Null), "{echo}");
    assert_eq!((&echo["failureRate1h"], &echo["recentFailures"]), (&json!(0.0), &json!([])), "{echo}");
    assert_eq!(echo["orphanedSkills"], json!([]), "{echo}");
    running.send("bob", "echo", "hello").await;
    running.send("bob", "echo", "fail").await;
    let health = counted(&running, 8).await;
    let echo = &health["agents"][0];
    assert_eq!((&echo["successRate"], &echo["failureRate1h"]), (&json!(0.5), &json!(0.5)), "{echo}");
    // The projector has read all of it, and decides on alerts in the same transaction.
    let (_, alerts) = running.get("/api/alerts", "vic").await;
    assert_eq!(alerts["items"], json!([]), "{alerts}");
    let path = format!("/api/series?agent=echo&step=hour&from={START}&metric=");
    for (metric, expected) in [("failures", 1), ("canceled", 6), ("outcomes", 8)] {
        let (_, series) = running.get(&format!("{path}{metric}"), "vic").await;
        assert_eq!(series["points"][0]["value"], json!(expected), "{metric}: {series}");
    }
    running.stop().await;
}

#[tokio::test]
async fn a_task_that_has_told_nothing_before_its_end_does_not_say_how_long_it_was_queued() {
    let data = folder();
    let running = Running::in_folder(data.path()).await;
    running.send("bob", "echo", "hello").await;
    running.send("bob", "echo", "steps 1").await;
    let (_, page) = running.get("/api/invocations", "vic").await;
    let queued: Vec<bool> =
        page["items"].as_array().unwrap().iter().map(|outcome| outcome["queueMs"].is_u64()).collect();
    assert_eq!(queued, [true, false], "{page}");
    running.stop().await;
}
