//! Health and alerts: what the projector adds up is what the log says, once, also after a restart.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_a2a::Timestamp;
use switchboard_engine::Settings;
use switchboard_engine::clock::SimulatedClock;
use switchboard_engine::store::hub::{HealthStep, HubStore};
use switchboard_host::config::time_span::TimeSpan;
use switchboard_store::SqliteStore;

use crate::running::{Running, START, folder};

const MINUTE: Duration = Duration::from_secs(60);

/// A server whose projector writes each row at once.
pub(crate) async fn server(data: &std::path::Path, clock: &SimulatedClock) -> Running {
    let change = |config: &mut switchboard_host::config::Config| config.hub.projector.flush = TimeSpan::ZERO;
    Running::with(data, clock.clone(), change, Settings::default()).await
}

/// Asks until the answer is as wanted. The clock goes on a little: a reader waits a moment for rows of other writers.
pub(crate) async fn until(running: &Running, path: &str, key: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    loop {
        let (status, answer) = running.get(path, key).await;
        assert_eq!(status, 200, "{answer}");
        if wanted(&answer) {
            return answer;
        }
        running.clock.advance(Duration::from_millis(1));
    }
}

pub(crate) async fn counted(running: &Running, outcomes: u64) -> Value {
    until(running, "/api/health", "vic", |health| health["totals"]["outcomes"] == json!(outcomes)).await
}

fn with_skill(text: &str) -> Value {
    json!({ "parts": [{ "text": text }], "metadata": { "skill": "acting" } })
}

#[tokio::test]
async fn health_is_what_a_recount_of_the_log_finds_also_after_a_restart() {
    let (data, clock) = (folder(), SimulatedClock::at(START));
    let running = server(data.path(), &clock).await;
    for text in ["hello", "fail", "spend", "pay 0.25", "hello"] {
        running.send_with("bob", "echo", with_skill(text), &[]).await;
    }
    running.send("cat", "echo", "fail").await;
    let question = running.send("bob", "other", "ask").await;
    let health = counted(&running, 6).await;
    let echo = &health["agents"][0];
    assert_eq!(
        (&echo["agent"], &echo["successes"], &echo["successRate"]),
        (&json!("echo"), &json!(4), &json!(4.0 / 6.0))
    );
    // 1,000 tokens read and 100 written cost 0.0045 where the agent does not say; one outcome says what it has cost.
    assert_eq!((&echo["costUsd"], &echo["estimated"]), (&json!(0.2545), &json!(1)));
    assert_eq!((&echo["failureRate1h"], echo["recentFailures"].as_array().unwrap().len()), (&json!(2.0 / 6.0), 2));
    // Of a minute's work, the clock has passed none.
    assert!(echo["p95Ms"].as_u64().unwrap() < 60_000, "{echo}");

    let (_, page) = running.get("/api/feed?from=oldest&topic=outcome.%23&pageSize=100", "vic").await;
    let outcomes: Vec<&Value> = page["items"].as_array().unwrap().iter().map(|item| &item["payload"]).collect();
    let successes = outcomes.iter().filter(|outcome| outcome["success"] == json!(true)).count();
    let cost: f64 = outcomes.iter().filter_map(|outcome| outcome["costUsd"].as_f64()).sum();
    assert_eq!((outcomes.len(), successes, json!((cost * 1e9).round() / 1e9)), (6, 4, echo["costUsd"].clone()));

    // Each key sees its own part, and no more.
    let (_, of_skill) = running.get("/api/health?skill=acting", "vic").await;
    assert_eq!(of_skill["totals"]["outcomes"], 5);
    let echo = &of_skill["agents"][0];
    assert_eq!((&echo["failureRate1h"], echo["recentFailures"].as_array().unwrap().len()), (&json!(0.2), 1), "{echo}");
    let (_, of_cat) = running.get("/api/health?caller=cat", "vic").await;
    let echo = &of_cat["agents"][0];
    assert_eq!((&echo["failureRate1h"], &echo["recentFailures"]), (&json!(1.0), &Value::Null), "{echo}");
    let (_, own) = running.get("/api/health", "cat").await;
    assert_eq!((&own["totals"]["outcomes"], &own["agents"][0]["recentFailures"]), (&json!(1), &Value::Null));
    assert_eq!(running.get("/api/health?caller=bob", "cat").await.0, 403);
    assert_eq!(running.get("/api/health?window=2h", "vic").await.0, 400);
    let (_, costs) = running.get("/api/cost-summaries?agent=echo&minSamples=2", "vic").await;
    assert_eq!((&costs["data"][0]["samples"], &costs["data"][1]), (&json!(2), &Value::Null), "{costs}");
    running.stop().await;

    // What was counted is not counted again, and what was not is.
    let running = server(data.path(), &clock).await;
    let id = question["id"].as_str().unwrap();
    let answer = json!({ "parts": [{ "text": "go on" }], "taskId": id });
    running.send_with("bob", "other", answer, &[]).await;
    let health = counted(&running, 7).await;
    assert_eq!(health["agents"][1]["agent"], "other");
    let again = json!([health["agents"][0]["outcomes"], health["agents"][0]["costUsd"]]);
    assert_eq!(again, json!([6, 0.2545]));
    assert_eq!(health["agents"][0]["recentFailures"].as_array().unwrap().len(), 2);
    clock.advance(61 * MINUTE);
    let (_, hour) = running.get("/api/health?window=1h", "vic").await;
    assert_eq!(hour["totals"]["outcomes"], 0);
    let (_, day) = running.get("/api/health?window=24h", "vic").await;
    assert_eq!(day["totals"]["outcomes"], 7);
    clock.advance(24 * 60 * MINUTE);
    let (_, day) = running.get("/api/health", "vic").await;
    assert_eq!(day["totals"]["outcomes"], 0);
    running.stop().await;
}

#[tokio::test]
async fn alerts_fire_once_resolve_below_their_threshold_and_wait_before_they_fire_again() {
    let (data, clock) = (folder(), SimulatedClock::at(START));
    let running = server(data.path(), &clock).await;
    for _ in 0..5 {
        running.send_with("bob", "echo", with_skill("fail"), &[]).await;
    }
    running.send("bob", "other", "pay 51").await;
    let firing = |alerts: &Value| -> Vec<String> {
        let items = alerts["items"].as_array().unwrap().iter();
        let firing = items.filter(|alert| alert["state"] == "firing");
        firing
            .map(|alert| format!("{}:{}", alert["alert"].as_str().unwrap(), alert["subject"].as_str().unwrap()))
            .collect()
    };
    let all = ["agent_stuck:echo", "cost_over_budget:all", "skill_orphaned:echo/acting"];
    until(&running, "/api/alerts", "vic", |alerts| firing(alerts) == all).await;
    // A key of one agent does not see what the others cost.
    assert_eq!(firing(&running.get("/api/alerts", "eva").await.1), [all[0], all[2]]);
    assert_eq!(running.get("/api/alerts", "bob").await.0, 403);

    for _ in 0..10 {
        running.send_with("bob", "echo", with_skill("hello"), &[]).await;
    }
    until(&running, "/api/alerts", "vic", |alerts| firing(alerts) == all[..2]).await;
    counted(&running, 16).await;
    // Calm for ten minutes, and the agent is not stuck any more.
    clock.advance(11 * MINUTE);
    until(&running, "/api/alerts", "vic", |alerts| firing(alerts) == all[1..2]).await;
    for _ in 0..20 {
        running.send_with("bob", "echo", json!({ "parts": [{ "text": "fail" }] }), &[]).await;
    }
    let health = counted(&running, 36).await;
    assert!(health["agents"][0]["failureRate1h"].as_f64().unwrap() > 0.5, "{health}");
    assert_eq!(firing(&running.get("/api/alerts", "vic").await.1), all[1..2]);
    running.stop().await;

    // The state outlives the process, and each change is one line of the journal.
    let running = server(data.path(), &clock).await;
    assert_eq!(firing(&running.get("/api/alerts", "vic").await.1), all[1..2]);
    clock.advance(5 * MINUTE);
    until(&running, "/api/alerts", "vic", |alerts| firing(alerts) == all[..2]).await;
    let (_, page) = running.get("/api/feed?from=oldest&topic=alert.%23&pageSize=100", "vic").await;
    let topics: Vec<&str> =
        page["items"].as_array().unwrap().iter().map(|item| item["topic"].as_str().unwrap()).collect();
    let count = |topic: &str| topics.iter().filter(|other| **other == topic).count();
    let counts = ["agent_stuck.fired", "agent_stuck.resolved", "cost_over_budget.fired", "skill_orphaned.resolved"];
    assert_eq!(counts.map(|name| count(&format!("alert.{name}"))), [2, 1, 1, 1], "{topics:?}");
    running.stop().await;
}

#[tokio::test]
async fn a_page_that_cannot_be_read_is_read_again_and_counted_once() {
    let (data, clock) = (folder(), SimulatedClock::at(START));
    let change = |config: &mut switchboard_host::config::Config| config.hub.projector.flush = TimeSpan::ZERO;
    // Without room in memory, every page is read from the store.
    let settings = Settings { feed_ring_bytes: 0, ..Settings::default() };
    let running = Running::with(data.path(), clock.clone(), change, settings).await;
    running.send("bob", "echo", "hello").await;
    counted(&running, 1).await;
    running.unreadable.set(3);
    running.send("bob", "echo", "fail").await;
    while running.unreadable.left() > 0 {
        clock.advance(Duration::from_secs(1));
        tokio::task::yield_now().await;
    }
    clock.advance(Duration::from_secs(1));
    let health = counted(&running, 2).await;
    assert_eq!(health["agents"][0]["successes"], 1);
    running.stop().await;
}

#[tokio::test]
async fn sums_go_when_they_are_old_those_of_minutes_before_those_of_hours() {
    let (data, clock) = (folder(), SimulatedClock::at(START));
    for days in [3, 3, 399] {
        let running = server(data.path(), &clock).await;
        running.send("bob", "echo", "hello").await;
        counted(&running, 1).await;
        running.stop().await;
        clock.advance(days * 24 * 60 * MINUTE);
    }
    let days_of = |step| {
        let path = data.path().to_owned();
        async move {
            let store = SqliteStore::open(&path, switchboard_store::Options::default()).unwrap();
            let sums = store.health(step, Timestamp(0)).await.unwrap();
            let mut days: Vec<i64> = sums.iter().map(|sum| (sum.at.0 - START.0) / 86_400_000).collect();
            days.dedup();
            days
        }
    };
    assert_eq!((days_of(HealthStep::Minute).await, days_of(HealthStep::Hour).await), (vec![6], vec![0, 3, 6]));
    let running = server(data.path(), &clock).await;
    running.send("bob", "echo", "hello").await;
    counted(&running, 1).await;
    running.stop().await;
    assert_eq!((days_of(HealthStep::Minute).await, days_of(HealthStep::Hour).await), (vec![405], vec![6, 405]));
}
