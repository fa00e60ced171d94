//! What the store refuses for ever is not told to be tried again, and what is done is answered as done.

use serde_json::json;
use switchboard_host::config::Config;
use switchboard_host::config::size::Size;

use crate::card_server::CardServer;
use crate::counted_store::CountedStore;
use crate::running::{Running, folder};

#[tokio::test]
async fn a_line_that_the_store_never_takes_is_refused_by_its_member_and_not_for_now() {
    let data = folder();
    // This store takes lines of 64 KiB, whatever the setting says.
    let (store, _) = CountedStore::open(data.path());
    let mut config = Config::default();
    config.hub.journal.line = Size::from_kibibytes(256);
    config.hub.messages.size = Size::from_kibibytes(256);
    let running = Running::on_store(store, data.path(), config).await;
    let long = json!({ "topic": "release.published", "payload": { "log": "x".repeat(100 << 10) } });
    let (status, refusal) = running.post("/publish", "ann", &long).await;
    let told = (status, &refusal["code"], &refusal["problems"][0]["key"]);
    assert_eq!(told, (413, &json!("REQUEST_TOO_LARGE"), &json!("payload")), "{refusal}");
    assert_eq!(refusal["problems"][0]["right"], "at most 65536", "{refusal}");
    let long = json!({ "message": "x".repeat(100 << 10) });
    let (status, refusal) = running.post("/api/operator/message", "bob", &long).await;
    let told = (status, &refusal["code"], &refusal["problems"][0]["key"]);
    assert_eq!(told, (413, &json!("REQUEST_TOO_LARGE"), &json!("message")), "{refusal}");
    running.stop().await;
}

#[tokio::test]
async fn a_look_at_a_very_long_address_is_in_the_audit_with_its_beginning() {
    let (data, files) = (folder(), folder());
    std::fs::write(files.path().join("agents.yaml"), "agents: [{ name: echo, builtin: echo }]\n").unwrap();
    let far = CardServer::start(&["review"]).await;
    let running = Running::of_workspace(data.path(), files.path(), |_| {}).await;
    // With what stands beside it the line would be longer than lines may be.
    let url = format!("{}/{}", far.url, "x".repeat(65_450 - far.url.len()));
    let (status, answer) = running.post("/api/a2a/probe", "ann", &json!({ "url": url })).await;
    assert_eq!(status, 200, "{answer}");
    let (_, page) = running.get("/api/feed?from=oldest&topic=audit.agents.probe", "ann").await;
    let subject = page["items"][0]["payload"]["subject"].as_str().unwrap();
    assert!(url.starts_with(subject) && subject.len() <= 1024, "{} bytes", subject.len());
    running.stop().await;
}

#[tokio::test]
async fn what_is_done_is_answered_as_done_though_the_audit_cannot_be_written() {
    let data = folder();
    let (store, counts) = CountedStore::open(data.path());
    let running = Running::on_store(store, data.path(), Config::default()).await;
    let task = running.send("bob", "echo", "ask").await;
    let path = format!("/api/tasks/{}:cancel", task["id"].as_str().unwrap());
    counts.fail_journal();
    let (status, stopped) = running.post(&path, "ann", &json!({})).await;
    assert_eq!((status, &stopped["status"]["state"]), (200, &json!("TASK_STATE_CANCELED")), "{stopped}");
    // What is one write with its line is not done.
    let (status, refusal) = running.post("/publish", "ann", &json!({ "topic": "release.published" })).await;
    assert_eq!((status, &refusal["code"]), (503, &json!("UNAVAILABLE")), "{refusal}");
    running.stop().await;
}
