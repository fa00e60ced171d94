//! The registry where the store fails, or does not have what it should.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use switchboard_engine::store::ServerStore;
use switchboard_engine::store::hub::PutRegistration;
use switchboard_host::config::Config;

use crate::card_server::{CardServer, Nobody};
use crate::counted_store::CountedStore;
use crate::registry_tombstones::{remotes, until};
use crate::running::{Running, START, folder};

async fn running(data: &std::path::Path, store: Arc<dyn ServerStore>) -> Running {
    Running::on_store(store, data, Config::default()).await
}

/// The names of agents that have rows, which are registrations and tombstones.
async fn agent_rows(store: &dyn ServerStore) -> Vec<String> {
    let rows = store.registrations("agent", "", 9).await.unwrap();
    rows.into_iter().map(|row| row.name).collect()
}

/// Whether an agent is among the definitions of the files as the next process will know them.
async fn is_known_to_the_next(store: &dyn ServerStore, name: &str) -> bool {
    let rows = store.registrations("served", "", 9).await.unwrap();
    let row = rows.iter().find(|row| row.name == "definitions").unwrap();
    let items: serde_json::Value = serde_json::from_slice(&row.body).unwrap();
    items.get(name).is_some()
}

#[tokio::test]
async fn a_tombstone_that_could_not_be_written_is_written_later_or_by_the_next_process() {
    for restarts in [false, true] {
        let (data, nobody) = (folder(), Nobody::start());
        let workspace = data.path().join("workspace");
        std::fs::create_dir(&workspace).unwrap();
        let write = |agents: &str| {
            let echo = "  - { name: echo, builtin: echo }\n";
            std::fs::write(workspace.join("agents.yaml"), format!("agents:\n{echo}{agents}")).unwrap();
        };
        write(&format!("  - {{ name: far, url: \"{}\" }}\n", nobody.url()));
        let (mut store, mut counts) = CountedStore::open(data.path());
        let mut running = Running::on_store(store.clone(), data.path(), Config::default()).await;
        counts.fail_agent_rows(true);
        write("");
        until(&running, async || running.registry.roster().entry("far").is_none()).await;
        assert!(counts.failed_rows() > 0);
        assert_eq!(agent_rows(&*store).await, [] as [&str; 0]);
        assert!(is_known_to_the_next(&*store, "far").await, "its definition is not lost");
        if restarts {
            running.stop().await;
            drop(store);
            (store, counts) = CountedStore::open(data.path());
            running = Running::on_store(store.clone(), data.path(), Config::default()).await;
            assert_eq!(remotes(&running), ["far"], "its tasks find it");
            assert_eq!(agent_rows(&*store).await, ["far"]);
        } else {
            counts.fail_agent_rows(false);
        }
        // Nothing names it, so that it is forgotten then.
        let is_forgotten = async || {
            !is_known_to_the_next(&*store, "far").await
                && counts.agent_rows() > 0
                && agent_rows(&*store).await.is_empty()
        };
        until(&running, is_forgotten).await;
        running.stop().await;
    }
}

#[tokio::test]
async fn the_tombstone_of_an_agent_that_cannot_be_served_is_deleted_once_nothing_names_it() {
    let data = folder();
    let (store, _) = CountedStore::open(data.path());
    // Its certificate is gone with its file.
    let item = json!({ "name": "far", "url": "http://127.0.0.1:1", "tls": { "cert": "gone.pem", "key": "gone.key" } });
    let body = json!({ "item": item, "removed": true, "file": true });
    let tombstone = PutRegistration {
        kind: "agent".to_owned(),
        name: "far".to_owned(),
        expected_version: 0,
        owner: "ann".into(),
        at: START,
        body: Some(Bytes::from(body.to_string())),
        job: None,
        journal: Vec::new(),
    };
    store.put_registration(tombstone).await.unwrap();
    let running = Running::on_store(store.clone(), data.path(), Config::default()).await;
    assert_eq!(remotes(&running), [] as [&str; 0], "it cannot be served");
    assert_eq!(agent_rows(&*store).await, ["far"]);
    until(&running, async || agent_rows(&*store).await.is_empty()).await;
    running.stop().await;
}

#[tokio::test]
async fn an_agent_can_be_registered_again_after_its_tombstone_could_not_be_deleted() {
    let (data, far) = (folder(), CardServer::start(&["review"]).await);
    let (store, counts) = CountedStore::open(data.path());
    let running = running(data.path(), store).await;
    let item = json!({ "name": "far", "url": far.url });
    assert_eq!(running.post("/api/agents", "ann", &item).await, (201, json!({ "name": "far", "version": 1 })));
    assert_eq!(running.ask("DELETE /api/agents/far", "ann", &[], "").await.0, 204);
    counts.fail_rows(true);
    let refused = async {
        while counts.failed_rows() == 0 {
            running.clock.advance(Duration::from_secs(1));
            running.get("/api/agents", "ann").await;
        }
    };
    tokio::time::timeout(crate::HANG_GUARD, refused).await.expect("it is to be forgotten");
    // What fails as a whole leaves the version as it is known.
    assert_eq!(running.post("/api/agents", "ann", &item).await.0, 503);
    counts.fail_rows(false);
    let (status, answer) = running.post("/api/agents", "ann", &item).await;
    assert!(status == 201 && answer["version"].as_u64() > Some(2), "{status}: {answer}");
    running.stop().await;
}

#[tokio::test]
async fn a_registration_that_cannot_be_read_is_replaced_by_the_next_of_its_name() {
    let (data, far) = (folder(), CardServer::start(&["review"]).await);
    let (store, _) = CountedStore::open(data.path());
    let unreadable = PutRegistration {
        kind: "agent".to_owned(),
        name: "far".to_owned(),
        expected_version: 0,
        owner: "ann".into(),
        at: START,
        body: Some(Bytes::from_static(b"not of this version")),
        job: None,
        journal: Vec::new(),
    };
    assert_eq!(store.put_registration(unreadable).await.unwrap(), 1);
    let running = running(data.path(), store).await;
    let item = json!({ "name": "far", "url": far.url });
    assert_eq!(running.post("/api/agents", "ann", &item).await, (201, json!({ "name": "far", "version": 2 })));
    running.stop().await;
}

#[tokio::test]
async fn changes_of_agents_are_in_the_journal_in_their_order_though_it_could_not_be_written_for_a_while() {
    let (data, far) = (folder(), CardServer::start(&["review"]).await);
    let (store, counts) = CountedStore::open(data.path());
    let running = running(data.path(), store).await;
    counts.fail_journal();
    let item = json!({ "name": "far", "url": far.url, "serve": false });
    assert_eq!(running.post("/api/agents", "ann", &item).await.0, 201, "it is registered all the same");
    let changed = json!({ "name": "far", "url": far.url, "serve": false, "description": "another" });
    assert_eq!(running.ask("PUT /api/agents/far", "ann", &[], &changed.to_string()).await.0, 200);
    counts.mend_journal();
    assert_eq!(running.ask("DELETE /api/agents/far", "ann", &[], "").await.0, 204);
    let words = ["added", "changed", "removed"].map(|word| format!("hub.agent.{word}.far"));
    assert_eq!(running.topics("hub.agent.%23", 3).await, words);

    // Without another change they are written after a while.
    counts.fail_journal();
    assert_eq!(running.post("/api/agents", "ann", &item).await.0, 201);
    counts.mend_journal();
    let written = async {
        loop {
            running.clock.advance(Duration::from_secs(1));
            let (_, page) = running.get("/api/feed?from=oldest&topic=hub.agent.%23", "ann").await;
            if page["items"].as_array().unwrap().len() == 4 {
                return;
            }
        }
    };
    tokio::time::timeout(crate::HANG_GUARD, written).await.expect("they are written");
    running.stop().await;
}

#[tokio::test]
async fn a_registration_that_is_nested_too_deep_is_refused_and_the_server_goes_on() {
    let (data, far) = (folder(), CardServer::start(&[]).await);
    let (store, _) = CountedStore::open(data.path());
    let running = running(data.path(), store).await;
    let nested = format!("{}{}", "[".repeat(60), "]".repeat(60));
    let body = format!(r#"{{"name": "far", "url": "{}", "skills": {nested}}}"#, far.url);
    let (status, refusal) = running.ask("POST /api/agents", "ann", &[], &body).await;
    assert_eq!(status, 400, "{refusal}");
    assert!(refusal.to_string().contains("is nested deeper than 24 levels"), "{refusal}");
    assert_eq!(running.get("/api/agents", "ann").await.0, 200);
    running.stop().await;
}
