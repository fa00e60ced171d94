//! Crashes, jobs that are claimed twice, and several nodes: a time of a ceremony has one task.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;
use switchboard_engine::store::ServerStore;
use switchboard_engine::store::hub::{HubStore, NewJob, PutRegistration};
use switchboard_host::config::Config;
use switchboard_store::{Durability, Options, SqliteStore};

use super::{HOUR, MINUTE, after, configure, create, runs, server, server_at, telling, told, until};
use crate::counted_store::CountedStore;
use crate::health::left_behind;
use crate::running::{Running, START, folder};

fn options() -> Options {
    Options { durability: Durability::Process, max_queue_delay: HOUR, ..Options::default() }
}

/// Stores a ceremony of a caller whose key is not there any more, due at once.
pub(super) async fn register_for_nobody(data: &Path) {
    let store = SqliteStore::open(data, options()).unwrap();
    let definition = json!({ "id": "orphan", "schedule": "0 * * * *", "targets": ["echo"] });
    let put = PutRegistration {
        kind: "ceremony".to_owned(),
        name: "orphan".to_owned(),
        expected_version: 0,
        owner: "gone".into(),
        at: START,
        body: Some(Bytes::from(definition.to_string())),
        job: Some(NewJob {
            name: "fire:orphan".to_owned(),
            kind: "fire".to_owned(),
            run_at: START,
            body: Bytes::from(json!({ "at": START }).to_string()),
        }),
        journal: Vec::new(),
    };
    store.put_registration(put).await.unwrap();
}

#[tokio::test]
async fn a_run_that_was_killed_between_claim_and_fire_comes_after_the_restart_once() {
    let data = folder();
    let running = server(data.path()).await;
    create(&running, "bob", telling("hourly", "0 * * * *")).await;
    running.stop().await;
    let store = SqliteStore::open(data.path(), options()).unwrap();
    let claimed = store.claim_jobs(after(HOUR), 9).await.unwrap();
    assert_eq!(claimed.iter().map(|claimed| claimed.job.name.as_str()).collect::<Vec<_>>(), ["fire:hourly"]);
    drop(store);
    let running = server_at(data.path(), after(HOUR), |_| {}).await;
    assert_eq!(told(&running, "hourly", 1).await, ["2027-01-15T09:00:00.000Z"]);
    running.stop().await;
}

#[tokio::test]
async fn a_run_that_was_killed_after_it_was_sent_is_the_same_task_after_the_restart() {
    let data = folder();
    let (store, counts) = CountedStore::open(data.path());
    let mut config = Config::default();
    configure(&mut config);
    let running = Running::on_store(store, data.path(), config).await;
    create(&running, "bob", telling("hourly", "0 * * * *")).await;
    counts.keep_ends(true);
    running.clock.advance(HOUR);
    let before = runs(&running, "hourly", 1).await;
    // Killed here, where the message is sent and the job not moved on.
    let killed = left_behind(data.path());
    let restarted = server_at(killed.path(), after(HOUR + MINUTE), |_| {}).await;
    let fired = super::lines(&restarted, "ceremony.hourly.fired", 1).await;
    assert_eq!(fired[0]["taskId"], before[0]["taskId"], "the one that was sent");
    assert_eq!(runs(&restarted, "hourly", 1).await.len(), 1);
    restarted.clock.turn_to(after(2 * HOUR));
    assert_eq!(told(&restarted, "hourly", 2).await, ["2027-01-15T09:00:00.000Z", "2027-01-15T10:00:00.000Z"]);
    restarted.stop().await;
    // The same in a process that goes on, and tells it once.
    counts.keep_ends(false);
    assert_eq!(super::lines(&running, "ceremony.hourly.fired", 1).await.len(), 1);
    assert_eq!(runs(&running, "hourly", 1).await.len(), 1);
    running.stop().await;
}

#[tokio::test]
async fn two_nodes_run_each_time_once() {
    let data = folder();
    let stores = SqliteStore::open_nodes(data.path(), options(), 2).unwrap();
    let mut nodes = Vec::new();
    for store in stores {
        let mut config = Config::default();
        configure(&mut config);
        let store: Arc<dyn ServerStore> = Arc::new(store);
        nodes.push(Running::on_store(store, data.path(), config).await);
    }
    // The other node hears of it when it claims the job.
    create(&nodes[0], "bob", telling("often", "* * * * *")).await;
    create(&nodes[1], "bob", telling("second", "* * * * *")).await;
    for minute in 1..=8 {
        for node in &nodes {
            node.clock.turn_to(after(minute * MINUTE));
        }
        for (id, node) in [("often", 0), ("second", 1)] {
            until(&nodes[node], async || {
                nodes[1 - node].clock.advance(std::time::Duration::from_millis(100));
                let (_, page) = nodes[node].get(&format!("/api/ceremonies/{id}/runs"), "ann").await;
                let items = page["data"]["items"].as_array().unwrap();
                (items.len() >= minute as usize && items.iter().all(|run| run["state"] == "completed")).then_some(())
            })
            .await;
        }
    }
    for (id, node) in [("often", 0), ("second", 1)] {
        let times = told(&nodes[node], id, 8).await;
        let right: Vec<String> = (1..=8).map(|minute| after(minute * MINUTE).to_string()).collect();
        assert_eq!(times, right, "{id}");
    }
    for node in nodes {
        node.stop().await;
    }
}
