//! What `/api/health` and the summaries show of agents: how long they take, what they never do well, and what it has cost.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_engine::clock::SimulatedClock;

use crate::health::{counted, server};
use crate::running::{Running, START, folder};

/// Has an agent work for so long.
async fn work_for(running: &Running, agent: &str, seconds: u64) {
    let long = json!({ "message": "wait", "targets": agent });
    let (status, accepted) = running.post("/api/dispatch", "bob", &long).await;
    assert_eq!(status, 202, "{accepted}");
    while running.get(accepted["pollUrl"].as_str().unwrap(), "bob").await.1["state"] != "working" {}
    running.clock.advance(Duration::from_secs(seconds));
    let enough = json!({ "message": "enough", "taskId": accepted["taskId"], "wait": "30s" });
    let (status, done) = running.post("/api/dispatch", "bob", &enough).await;
    assert_eq!((status, &done["status"]["state"]), (200, &json!("TASK_STATE_COMPLETED")), "{done}");
}

async fn tell(running: &Running, agent: &str, skill: &str, text: &str) {
    let message = json!({ "parts": [{ "text": text }], "metadata": { "skill": skill } });
    running.send_with("bob", agent, message, &[]).await;
}

#[tokio::test]
async fn half_of_the_durations_and_skills_without_a_success_are_shown() {
    let (data, clock) = (folder(), SimulatedClock::at(START));
    let running = server(data.path(), &clock).await;
    for seconds in [1, 10, 100] {
        work_for(&running, "echo", seconds).await;
    }
    for text in ["fail", "fail", "fail"] {
        tell(&running, "other", "moving", text).await;
    }
    tell(&running, "other", "acting", "fail").await;
    tell(&running, "other", "acting", "hello").await;
    let health = counted(&running, 8).await;
    let (echo, other) = (&health["agents"][0], &health["agents"][1]);
    assert_eq!((&echo["agent"], &other["agent"]), (&json!("echo"), &json!("other")), "{health}");
    // Within 5 %, as its sums have it.
    let half = echo["p50Ms"].as_u64().unwrap();
    assert!((9_500..=10_500).contains(&half), "{echo}");
    assert!((95_000..=105_000).contains(&echo["p95Ms"].as_u64().unwrap()), "{echo}");
    assert_eq!((&echo["orphanedSkills"], &other["orphanedSkills"]), (&json!([]), &json!(["moving"])), "{health}");
    let (_, of_skill) = running.get("/api/health?skill=moving", "vic").await;
    assert_eq!(of_skill["agents"][0]["orphanedSkills"], json!(["moving"]), "{of_skill}");
    // One success, and it is none any more.
    tell(&running, "other", "moving", "hello").await;
    let health = counted(&running, 9).await;
    assert_eq!(health["agents"][1]["orphanedSkills"], json!([]), "{health}");
    running.stop().await;
}

#[tokio::test]
async fn costs_are_summed_up_under_the_names_of_earlier_hubs_too() {
    let (data, clock) = (folder(), SimulatedClock::at(START));
    let running = server(data.path(), &clock).await;
    for text in ["pay 0.25", "pay 0.75", "fail"] {
        tell(&running, "echo", "acting", text).await;
    }
    counted(&running, 3).await;
    let (status, costs) = running.get("/api/cost-summaries?skill=acting", "vic").await;
    let summary = &costs["data"][0];
    let named = [&summary["agent"], &summary["skill"], &summary["sampleCount"], &summary["samples"]];
    assert_eq!((status, named), (200, [&json!("echo"), &json!("acting"), &json!(2), &json!(2)]), "{costs}");
    let average = ["avgTokensIn", "avgTokensOut", "avgCostUsd", "successRate"].map(|name| summary[name].as_f64());
    assert_eq!(average, [Some(10.0), Some(1.0), Some(0.5), Some(2.0 / 3.0)], "{costs}");
    assert!(summary["avgWallMs"].as_f64().is_some_and(|average| average >= 0.0), "{costs}");
    // Without a sample there is no average.
    tell(&running, "other", "acting", "fail").await;
    counted(&running, 4).await;
    let (_, costs) = running.get("/api/cost-summaries?agent=other&minSamples=0", "vic").await;
    let summary = &costs["data"][0];
    assert_eq!((&summary["sampleCount"], &summary["avgCostUsd"]), (&json!(0), &Value::Null), "{costs}");
    running.stop().await;
}
