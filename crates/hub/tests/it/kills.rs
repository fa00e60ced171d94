//! What `kill -9` leaves of a registration and of an alert: each is whole or not there at all. What is in one transaction the
//! tests of the store show; here the kill is before it or behind it. And what a panic leaves of the projector.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use switchboard_engine::Settings;
use switchboard_engine::clock::{Clock, SimulatedClock};
use switchboard_engine::store::hub::{HubStore, PutRegistration};
use switchboard_host::config::Config;
use switchboard_host::config::time_span::TimeSpan;
use switchboard_store::SqliteStore;
use tempfile::TempDir;
use tokio::net::TcpListener;

use crate::card_server::CardServer;
use crate::health::{counted, left_behind, server, until};
use crate::running::{Running, START, folder};

/// Which agents are added, as the audit says.
async fn added(running: &Running) -> Vec<Value> {
    let (_, page) = running.get("/api/feed?from=oldest&topic=audit.agents.add", "ann").await;
    page["items"].as_array().unwrap().iter().map(|item| item["payload"]["subject"].clone()).collect()
}

async fn of_files(data: &Path, files: &TempDir) -> Running {
    Running::of_workspace_at(data, files.path(), &SimulatedClock::at(START)).await
}

#[tokio::test]
async fn a_registration_over_a_kill_is_whole_or_not_at_all() {
    let (data, files, far) = (folder(), folder(), CardServer::start(&["review"]).await);
    std::fs::write(files.path().join("agents.yaml"), "agents: [{ name: echo, builtin: echo }]\n").unwrap();
    let killed = of_files(data.path(), &files).await;
    // Killed while the agent that is to be registered is asked for its card.
    let before = {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let item = json!({ "name": "slow", "url": format!("http://{}", silent.local_addr().unwrap()) });
        let mut registering = std::pin::pin!(killed.post("/api/agents", "ann", &item));
        let asked = tokio::select! {
            asked = silent.accept() => asked.unwrap(),
            answered = &mut registering => panic!("nobody has answered for the agent: {answered:?}"),
        };
        let before = left_behind(data.path());
        drop((asked, silent));
        assert_ne!(registering.await.0, 201);
        before
    };
    // Killed once it is stored; and before its card is, which is stored after it.
    let item = json!({ "name": "far", "url": far.url });
    assert_eq!(killed.post("/api/agents", "ann", &item).await.0, 201);
    let (after, without_card) = (left_behind(data.path()), left_behind(data.path()));
    let store = SqliteStore::open(without_card.path(), switchboard_store::Options::default()).unwrap();
    let delete = PutRegistration {
        kind: "card".to_owned(),
        name: "far".to_owned(),
        expected_version: 1,
        owner: "local".into(),
        at: START,
        body: None,
        job: None,
        journal: Vec::new(),
    };
    store.put_registration(delete).await.unwrap();
    drop(store);

    let running = of_files(before.path(), &files).await;
    assert_eq!((running.get("/api/agents/slow", "ann").await.0, added(&running).await), (404, Vec::new()));
    running.stop().await;
    for left in [after, without_card] {
        let running = of_files(left.path(), &files).await;
        assert_eq!(added(&running).await, [json!("far")]);
        let shown = until(&running, "/api/agents/far", "ann", |shown| {
            running.clock.advance(Duration::from_secs(1));
            shown["skills"] != json!([])
        });
        let shown = tokio::time::timeout(crate::HANG_GUARD, shown).await.unwrap();
        assert_eq!((&shown["version"], &shown["skills"][0]["id"]), (&json!(1), &json!("review")), "{shown}");
        running.stop().await;
    }
    killed.stop().await;
}

/// How often the alert has fired, as the journal says.
async fn fired(running: &Running) -> usize {
    let (_, page) = running.get("/api/feed?from=oldest&topic=alert.agent_stuck.fired", "ann").await;
    page["items"].as_array().unwrap().len()
}

async fn is_firing(running: &Running) -> bool {
    let (_, alerts) = running.get("/api/alerts", "vic").await;
    let of_agent = |alert: &&Value| alert["alert"] == "agent_stuck";
    alerts["items"].as_array().unwrap().iter().filter(of_agent).any(|alert| alert["state"] == "firing")
}

#[tokio::test]
async fn an_alert_fires_once_over_a_kill_before_its_page_is_written_and_one_after_it() {
    let (data, clock) = (folder(), SimulatedClock::at(START));
    // The clock stands still, so the page is not written.
    let killed = Running::with(data.path(), clock.clone(), |_| {}, Settings::default()).await;
    for _ in 0..5 {
        killed.send("bob", "echo", "fail").await;
    }
    assert_eq!((is_firing(&killed).await, fired(&killed).await), (false, 0));
    let before = left_behind(data.path());

    let clock = SimulatedClock::at(clock.now());
    let killed_too = server(before.path(), &clock).await;
    counted(&killed_too, 5).await;
    assert_eq!((is_firing(&killed_too).await, fired(&killed_too).await), (true, 1));
    let after = left_behind(before.path());

    let running = server(after.path(), &SimulatedClock::at(clock.now())).await;
    assert_eq!((is_firing(&running).await, fired(&running).await), (true, 1));
    running.send("bob", "echo", "fail").await;
    counted(&running, 6).await;
    assert_eq!((is_firing(&running).await, fired(&running).await), (true, 1), "it fires already");
    running.stop().await;
    killed_too.stop().await;
    killed.stop().await;
}

#[tokio::test]
async fn a_page_that_the_projector_panics_over_is_read_again_and_counted_once() {
    let (data, clock) = (folder(), SimulatedClock::at(START));
    let change = |config: &mut Config| config.hub.projector.flush = TimeSpan::ZERO;
    // Without room in memory, every page is read from the store.
    let settings = Settings { feed_ring_bytes: 0, ..Settings::default() };
    let running = Running::with(data.path(), clock.clone(), change, settings).await;
    running.send("bob", "echo", "hello").await;
    counted(&running, 1).await;
    running.unreadable.set_panicking(2);
    running.send("bob", "echo", "fail").await;
    let panicking = async {
        while running.unreadable.left() > 0 {
            clock.advance(Duration::from_secs(1));
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(crate::HANG_GUARD, panicking).await.expect("it reads again");
    clock.advance(Duration::from_secs(1));
    let counting = counted(&running, 2);
    let health = tokio::time::timeout(crate::HANG_GUARD, counting).await.expect("it goes on");
    assert_eq!(health["agents"][0]["successes"], 1, "{health}");
    running.stop().await;
}
