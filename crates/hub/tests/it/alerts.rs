//! Alerts about what the journal says: storms of refused messages, and agents that are down.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_engine::Settings;
use switchboard_engine::clock::{Clock, SimulatedClock};
use switchboard_host::config::Config;
use switchboard_host::config::decimal::Decimal;
use switchboard_host::config::size::Count;
use switchboard_host::config::time_span::TimeSpan;

use crate::card_server::CardServer;
use crate::health::{counted, server, until, with_skill};
use crate::planner::moving;
use crate::running::{Running, START, folder};

const MINUTE: Duration = Duration::from_secs(60);

fn states(alerts: &Value, name: &str) -> Vec<String> {
    let of_name = alerts["items"].as_array().unwrap().iter().filter(|alert| alert["alert"] == name);
    of_name.map(|alert| alert["state"].as_str().unwrap().to_owned()).collect()
}

async fn refuse(running: &Running, target: &str) {
    let body = json!({ "message": "hello", "targets": [target] });
    assert_eq!(running.post("/api/dispatch", "bob", &body).await.0, 404);
}

/// Lets a time pass until the alert is so.
async fn passing(running: &Running, step: Duration, name: &str, wanted: &[&str]) {
    let waited = tokio::time::timeout(crate::HANG_GUARD, async {
        while states(&running.get("/api/alerts", "vic").await.1, name) != wanted {
            running.clock.advance(step);
        }
    });
    waited.await.unwrap();
}

#[tokio::test]
async fn ten_drops_of_a_key_are_a_storm_until_there_were_none_for_ten_minutes() {
    let (data, clock) = (folder(), SimulatedClock::at(START));
    let running = server(data.path(), &clock).await;
    for _ in 0..9 {
        refuse(&running, "nobody").await;
    }
    refuse(&running, "nobody-else").await;
    clock.advance(Duration::from_secs(10));
    assert_eq!(running.topics("dispatch.dropped.%23", 2).await, ["dispatch.dropped.target_unresolved"; 2]);
    // What is counted was written and read after the lines, so they have been looked at; and whoever wrote them has heard
    // so, and waits for his next time.
    running.send("bob", "echo", "hello").await;
    counted(&running, 1).await;
    assert_eq!(states(&running.get("/api/alerts", "vic").await.1, "drop_storm"), [""; 0], "nine are none");
    refuse(&running, "nobody").await;
    clock.advance(Duration::from_secs(10));
    running.topics("dispatch.dropped.%23", 3).await;
    let alerts = until(&running, "/api/alerts", "vic", |alerts| states(alerts, "drop_storm") == ["firing"]).await;
    assert_eq!(alerts["items"][0]["detail"]["drops"], 10, "{alerts}");
    // Each time what is counted shows that the drops were looked at too.
    clock.advance(9 * MINUTE);
    running.send("bob", "echo", "hello").await;
    counted(&running, 2).await;
    assert_eq!(states(&running.get("/api/alerts", "vic").await.1, "drop_storm"), ["firing"]);
    clock.advance(MINUTE);
    running.send("bob", "echo", "hello").await;
    counted(&running, 3).await;
    assert_eq!(states(&running.get("/api/alerts", "vic").await.1, "drop_storm"), ["resolved"]);
    let topics = running.topics("alert.drop_storm.%23", 2).await;
    assert_eq!(topics, ["alert.drop_storm.fired", "alert.drop_storm.resolved"]);
    running.stop().await;
}

#[tokio::test]
async fn a_flood_of_refused_messages_does_not_stop_health() {
    let (data, clock) = (folder(), SimulatedClock::at(START));
    let running = server(data.path(), &clock).await;
    for number in 0..300 {
        refuse(&running, &format!("{number:03}{}", "\u{1F400}".repeat(60))).await;
    }
    clock.advance(Duration::from_secs(10));
    running.topics("dispatch.dropped.%23", 50).await;
    running.send("bob", "echo", "hello").await;
    counted(&running, 1).await;
    running.stop().await;
    // What it keeps can be read again.
    let running = server(data.path(), &clock).await;
    running.send("bob", "echo", "fail").await;
    counted(&running, 2).await;
    running.stop().await;
}

#[tokio::test]
async fn an_agent_that_is_down_again_is_told_and_one_that_is_back_after_a_restart_too() {
    let (data, files, clock) = (folder(), folder(), SimulatedClock::at(START));
    let far = CardServer::start(&["review"]).await;
    let agents = format!("agents:\n  - name: far\n    url: {}\n", far.url);
    std::fs::write(files.path().join("agents.yaml"), agents).unwrap();
    let second = Duration::from_secs(1);
    let running = Running::of_workspace_at(data.path(), files.path(), &clock).await;
    far.fail(true);
    passing(&running, second, "agent_down", &["firing"]).await;
    let (_, page) = running.get("/api/feed?from=oldest&topic=hub.agent.down.far", "ann").await;
    assert!(page["items"][0]["payload"]["node"].is_string(), "each node sees its own: {page}");
    far.fail(false);
    passing(&running, second, "agent_down", &["resolved"]).await;
    far.fail(true);
    // Again within the cooldown of the alert, which fires after it.
    until(&running, "/api/agents/far", "ann", |shown| {
        running.clock.advance(second);
        shown["probe"]["up"] == false
    })
    .await;
    passing(&running, second, "agent_down", &["firing"]).await;
    running.stop().await;

    far.fail(false);
    let running = Running::of_workspace_at(data.path(), files.path(), &clock).await;
    assert_eq!(states(&running.get("/api/alerts", "vic").await.1, "agent_down"), ["firing"]);
    passing(&running, second, "agent_down", &["resolved"]).await;
    passing(&running, second, "breaker_open", &["resolved"]).await;
    running.stop().await;
}

#[tokio::test]
async fn a_projector_that_cannot_read_is_behind_after_a_minute_until_it_has_caught_up() {
    let (data, clock) = (folder(), SimulatedClock::at(START));
    let change = |config: &mut Config| config.hub.projector.flush = TimeSpan::ZERO;
    // Without room in memory, every page is read from the store.
    let settings = Settings { feed_ring_bytes: 0, ..Settings::default() };
    let running = Running::with(data.path(), clock.clone(), change, settings).await;
    running.send("bob", "echo", "hello").await;
    counted(&running, 1).await;
    running.unreadable.set(usize::MAX);
    running.send("bob", "echo", "fail").await;
    let second = Duration::from_secs(1);
    passing(&running, second, "projector_behind", &["firing"]).await;
    assert!(clock.now().0 - START.0 >= 60_000, "it fires after a minute");
    let (_, alerts) = running.get("/api/alerts", "vic").await;
    assert_eq!(alerts["items"].as_array().map(Vec::len), Some(1), "{alerts}");
    running.unreadable.set(0);
    passing(&running, second, "projector_behind", &["resolved"]).await;
    let health = counted(&running, 2).await;
    assert_eq!(health["agents"][0]["successes"], 1, "{health}");
    let topics = running.topics("alert.projector_behind.%23", 2).await;
    assert_eq!(topics, ["alert.projector_behind.fired", "alert.projector_behind.resolved"]);
    running.stop().await;
}

#[tokio::test]
async fn a_cost_over_the_budget_is_over_it_until_it_is_below_nine_tenths() {
    let (data, clock) = (folder(), SimulatedClock::at(START));
    let running = server(data.path(), &clock).await;
    let hours = |count: u32| count * 60 * MINUTE;
    for (ended, cost) in [(1, 4), (2, 6)] {
        running.send("bob", "other", &format!("pay {cost}")).await;
        counted(&running, ended).await;
        clock.advance(hours(6));
    }
    running.send("bob", "other", "pay 41").await;
    until(&running, "/api/alerts", "vic", |alerts| states(alerts, "cost_over_budget") == ["firing"]).await;
    // What was first is out of the window: 47 are below the budget and above nine tenths of it.
    clock.advance(hours(13));
    running.send("bob", "echo", "hello").await;
    let health = counted(&running, 3).await;
    assert_eq!(health["totals"]["costUsd"], 47.0, "{health}");
    assert_eq!(states(&running.get("/api/alerts", "vic").await.1, "cost_over_budget"), ["firing"]);
    clock.advance(hours(6));
    running.send("bob", "echo", "hello").await;
    let health = counted(&running, 3).await;
    assert_eq!(health["totals"]["costUsd"], 41.0, "{health}");
    assert_eq!(states(&running.get("/api/alerts", "vic").await.1, "cost_over_budget"), ["resolved"]);
    running.stop().await;
}

#[tokio::test]
async fn thresholds_that_an_operator_has_set_are_those_at_which_alerts_fire() {
    let (data, clock) = (folder(), SimulatedClock::at(START));
    let change = |config: &mut Config| {
        config.hub.projector.flush = TimeSpan::ZERO;
        let alerts = &mut config.hub.health.alerts;
        (alerts.failure_rate, alerts.stuck_outcomes, alerts.orphan_outcomes) =
            (Decimal::new(0.2), Count::new(3), Count::new(2));
        (alerts.daily_usd, alerts.drift_observations) = (Decimal::new(1.0), Count::new(1));
        (alerts.calm, alerts.drops) = (TimeSpan::from_minutes(2), Count::new(2));
        (alerts.drop_window, alerts.cooldown) = (TimeSpan::from_minutes(3), TimeSpan::from_minutes(1));
    };
    let running = Running::with(data.path(), clock.clone(), change, Settings::default()).await;
    for message in [with_skill("fail"), with_skill("fail"), moving("change 1"), moving("change -1"), moving("pay 2")] {
        running.send_with("bob", "echo", message, &[]).await;
    }
    counted(&running, 5).await;
    let (_, alerts) = running.get("/api/alerts", "vic").await;
    let fired: Vec<(&str, &str)> = alerts["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|alert| (alert["alert"].as_str().unwrap(), alert["state"].as_str().unwrap()))
        .collect();
    for expected in [
        ("agent_stuck", "firing"),
        ("skill_orphaned", "firing"),
        ("cost_over_budget", "firing"),
        ("effect_drift", "resolved"),
    ] {
        assert!(fired.contains(&expected), "{expected:?} is not in {fired:?}");
    }
    refuse(&running, "nobody").await;
    refuse(&running, "nobody").await;
    clock.advance(Duration::from_secs(10));
    until(&running, "/api/alerts", "vic", |alerts| states(alerts, "drop_storm") == ["firing"]).await;
    // Calm for two minutes, of which the first one is noticed with what comes in it.
    for _ in 0..15 {
        running.send("bob", "echo", "hello").await;
    }
    counted(&running, 20).await;
    clock.advance(2 * MINUTE);
    running.send("bob", "echo", "hello").await;
    counted(&running, 21).await;
    let (_, alerts) = running.get("/api/alerts", "vic").await;
    assert_eq!(
        (states(&alerts, "agent_stuck"), states(&alerts, "drop_storm")),
        (vec!["resolved".into()], vec!["firing".into()])
    );
    clock.advance(MINUTE);
    running.send("bob", "echo", "hello").await;
    counted(&running, 22).await;
    assert_eq!(states(&running.get("/api/alerts", "vic").await.1, "drop_storm"), ["resolved"]);
    // Within the cooldown of its last time it would not fire.
    for _ in 0..9 {
        running.send("bob", "echo", "fail").await;
    }
    until(&running, "/api/alerts", "vic", |alerts| states(alerts, "agent_stuck") == ["firing"]).await;
    running.stop().await;
}
