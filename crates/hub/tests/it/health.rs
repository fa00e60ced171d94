//! Health and alerts: what the projector adds up is what the log says, once, also after a restart.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_a2a::Timestamp;
use switchboard_engine::Settings;
use switchboard_engine::clock::SimulatedClock;
use switchboard_engine::store::hub::{HealthStep, HubStore};
use switchboard_host::config::Config;
use switchboard_host::config::decimal::Decimal;
use switchboard_host::config::models::{Model, ModelPrice};
use switchboard_host::config::size::Count;
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
    let asked = tokio::time::timeout(crate::HANG_GUARD, async {
        loop {
            let (status, answer) = running.get(path, key).await;
            assert_eq!(status, 200, "{answer}");
            if wanted(&answer) {
                return answer;
            }
            running.clock.advance(Duration::from_millis(1));
        }
    });
    asked.await.unwrap()
}

pub(crate) async fn counted(running: &Running, outcomes: u64) -> Value {
    until(running, "/api/health", "vic", |health| health["totals"]["outcomes"] == json!(outcomes)).await
}

pub(crate) fn with_skill(text: &str) -> Value {
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
    assert_eq!((&own["agents"][0]["failureRate1h"], &own["agents"][0]["orphanedSkills"]), (&json!(1.0), &Value::Null));
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
async fn the_largest_count_of_tokens_stays_the_largest_however_often_it_is_reported() {
    let (data, clock) = (folder(), SimulatedClock::at(START));
    let running = server(data.path(), &clock).await;
    let text = format!("spend {}", u64::MAX);
    let all = json!({ "message": text, "targets": ["echo", "other"], "wait": "30s" });
    let (status, root) = running.post("/api/dispatch", "ann", &all).await;
    assert_eq!(status, 200, "{root}");
    let (status, tree) = running.get(&format!("/api/tasks/{}/tree", root["id"].as_str().unwrap()), "ann").await;
    assert_eq!((status, &tree["total"]["inputTokens"]), (200, &json!(u64::MAX)), "{tree}");
    assert_eq!(tree["total"]["outputTokens"], 200, "{tree}");
    running.send("bob", "echo", &text).await;
    running.send("bob", "echo", "spend").await;
    let health = counted(&running, 4).await;
    assert_eq!(health["totals"]["inputTokens"], json!(u64::MAX), "{health}");
    assert_eq!(health["agents"][0]["inputTokens"], json!(u64::MAX), "{health}");
    running.stop().await;
}

#[tokio::test]
async fn tokens_cost_what_their_model_does_before_the_price_of_any() {
    let (data, clock) = (folder(), SimulatedClock::at(START));
    let change = |config: &mut Config| {
        config.hub.projector.flush = TimeSpan::ZERO;
        let price = ModelPrice { input: Decimal::new(0.25), output: Decimal::new(2.0) };
        let model = Model { model: Some("gpt-5-mini".to_owned()), price };
        config.models.0.insert("small".to_owned(), model);
    };
    let running = Running::with(data.path(), clock, change, Settings::default()).await;
    // 1,000 tokens read and 100 written; the last one says what it has cost.
    let expected = [
        ("model gpt-5-mini", json!(0.000_45), json!(true)),
        ("model small", json!(0.000_45), json!(true)),
        ("model another", json!(0.004_5), json!(true)),
        ("model", json!(0.004_5), json!(true)),
        ("model gpt-5-mini 0.5", json!(0.5), Value::Null),
    ];
    for (text, ..) in &expected {
        running.send("bob", "echo", text).await;
    }
    counted(&running, expected.len() as u64).await;
    let (_, page) = running.get("/api/feed?from=oldest&topic=outcome.%23", "vic").await;
    let items = page["items"].as_array().unwrap();
    assert_eq!(items.len(), expected.len(), "{page}");
    for (item, (text, cost, estimated)) in items.iter().zip(expected) {
        let outcome = &item["payload"];
        let rounded = (outcome["costUsd"].as_f64().unwrap() * 1e9).round() / 1e9;
        assert_eq!((json!(rounded), &outcome["estimated"]), (cost, &estimated), "{text}: {outcome}");
    }
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
    let tried = tokio::time::timeout(crate::HANG_GUARD, async {
        while running.unreadable.left() > 0 {
            clock.advance(Duration::from_secs(1));
            tokio::task::yield_now().await;
        }
    });
    tried.await.unwrap();
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

#[tokio::test]
async fn how_sure_agents_are_is_summed_and_failures_that_were_sure_are_counted() {
    let (data, clock) = (folder(), SimulatedClock::at(START));
    let running = server(data.path(), &clock).await;
    for text in ["sure 0.9 fail", "sure 0.3 fail", "sure 0.9", "hello"] {
        running.send_with("bob", "echo", with_skill(text), &[]).await;
    }
    running.send("cat", "echo", "sure 0.8 fail").await;
    counted(&running, 5).await;
    let summaries = async |query: &str, key: &str| {
        let (status, answer) = running.get(&format!("/api/confidence-summaries{query}"), key).await;
        assert_eq!((status, &answer["success"]), (200, &json!(true)), "{answer}");
        answer["data"].clone()
    };
    let of_skill = json!({
        "agent": "echo", "skill": "acting", "samples": 3, "averageConfidence": 0.7, "highConfFailures": 1, "successRate": 0.5,
    });
    let of_none = json!({
        "agent": "echo", "skill": "-", "samples": 1, "averageConfidence": 0.8, "highConfFailures": 1, "successRate": 0.0,
    });
    assert_eq!(summaries("", "vic").await, json!([of_none, of_skill]));
    assert_eq!(summaries("?minSamples=2", "vic").await, json!([of_skill]));
    assert_eq!(summaries("?skill=acting&agent=echo", "eva").await, json!([of_skill]));
    assert_eq!(summaries("?agent=other", "vic").await, json!([]));
    // A key without a role sees its own, and no skills.
    let mut own = of_none.clone();
    own.as_object_mut().unwrap().remove("skill");
    assert_eq!(summaries("", "cat").await, json!([own]));
    assert_eq!(running.get("/api/confidence-summaries?skill=acting", "cat").await.0, 403);
    running.stop().await;
}

#[tokio::test]
async fn callers_beyond_those_that_are_told_apart_are_counted_together() {
    let (data, clock) = (folder(), SimulatedClock::at(START));
    let change = |config: &mut Config| {
        config.hub.projector.flush = TimeSpan::ZERO;
        config.hub.health.callers = Count::new(1);
    };
    let running = Running::with(data.path(), clock.clone(), change, Settings::default()).await;
    for (ended, caller) in ["bob", "cat", "nan", "bob"].into_iter().enumerate() {
        running.send(caller, "echo", "hello").await;
        counted(&running, ended as u64 + 1).await;
    }
    let outcomes = async |caller: &str| {
        let (_, health) = running.get(&format!("/api/health?caller={caller}"), "vic").await;
        health["totals"]["outcomes"].as_u64().unwrap()
    };
    assert_eq!([outcomes("bob").await, outcomes("cat").await, outcomes("other").await], [2, 0, 2]);
    // It begins anew with each hour.
    clock.advance(60 * MINUTE);
    running.send("cat", "echo", "hello").await;
    counted(&running, 5).await;
    assert_eq!([outcomes("bob").await, outcomes("cat").await, outcomes("other").await], [2, 1, 2]);
    running.stop().await;
}

/// The files of a server as they are now: what one that is killed leaves behind.
pub(crate) fn left_behind(data: &std::path::Path) -> tempfile::TempDir {
    let copy = folder();
    for file in std::fs::read_dir(data).unwrap().map(Result::unwrap) {
        let name = file.file_name();
        // What SQLite shares between processes goes with the last one.
        if file.file_type().unwrap().is_file() && !name.to_string_lossy().ends_with("-shm") {
            std::fs::copy(file.path(), copy.path().join(name)).unwrap();
        }
    }
    copy
}

#[tokio::test]
async fn outcomes_that_were_not_written_when_the_process_was_killed_are_counted_by_the_next_one() {
    let (data, clock) = (folder(), SimulatedClock::at(START));
    // The clock stands still, so what is read is not written after a second, and nothing else is.
    let killed = Running::with(data.path(), clock.clone(), |_| {}, Settings::default()).await;
    for text in ["hello", "fail", "pay 2"] {
        killed.send("bob", "echo", text).await;
    }
    let (_, health) = killed.get("/api/health", "vic").await;
    assert_eq!(health["totals"]["outcomes"], 0, "{health}");
    let data = left_behind(data.path());
    let running = server(data.path(), &clock).await;
    let health = counted(&running, 3).await;
    let totals = &health["totals"];
    assert_eq!((&totals["successes"], &totals["costUsd"]), (&json!(2), &json!(2.0)), "{health}");
    running.stop().await;
    // Nothing of it counts twice.
    let running = server(data.path(), &clock).await;
    running.send("bob", "echo", "hello").await;
    counted(&running, 4).await;
    running.stop().await;
    killed.stop().await;
}
