//! The registry where the store fails, or does not have what it should.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use switchboard_engine::store::ServerStore;
use switchboard_engine::store::hub::PutRegistration;
use switchboard_host::config::Config;

use crate::card_server::CardServer;
use crate::counted_store::CountedStore;
use crate::running::{Running, START, folder};

async fn running(data: &std::path::Path, store: Arc<dyn ServerStore>) -> Running {
    Running::on_store(store, data, Config::default()).await
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
