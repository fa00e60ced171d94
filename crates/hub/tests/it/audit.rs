//! What operators and administrators have the hub do is in its journal, with the request and without secrets.

use serde_json::{Value, json};
use switchboard_engine::clock::SimulatedClock;

use crate::card_server::CardServer;
use crate::health::{counted, server};
use crate::running::{Running, START, folder};

async fn lines(running: &Running, topic: &str) -> Vec<Value> {
    let path = format!("/api/feed?from=oldest&pageSize=100&topic={topic}");
    let (_, page) = running.get(&path, "ann").await;
    page["items"].as_array().unwrap().clone()
}

#[tokio::test]
async fn every_act_of_an_administrator_names_its_key_and_its_request() {
    let (data, files) = (folder(), folder());
    std::fs::write(files.path().join("agents.yaml"), "agents: [{ name: echo, builtin: echo }]\n").unwrap();
    let far = CardServer::start(&["review"]).await;
    let running = Running::of_workspace(data.path(), files.path(), |_| {}).await;
    let item = json!({ "name": "far", "url": far.url });
    let changed = json!({ "name": "far", "url": far.url, "description": "of others" });
    let acts = [
        ("POST /api/a2a/probe", json!({ "url": far.url }), "agents.probe", 200),
        ("POST /api/agents", item, "agents.add", 201),
        ("PUT /api/agents/far", changed, "agents.update", 200),
        ("POST /api/agents/far:refresh", json!({}), "agents.refresh", 200),
        ("POST /publish", json!({ "topic": "release.published" }), "publish", 202),
        ("DELETE /api/agents/far", json!({}), "agents.remove", 204),
    ];
    for (number, (head, body, act, right)) in acts.iter().enumerate() {
        let id = format!("X-Request-Id: r-{number}");
        let (status, answer) = running.ask(head, "nan", &[&id], &body.to_string()).await;
        assert_eq!(status, *right, "{head}: {answer}");
        let lines = lines(&running, &format!("audit.{act}")).await;
        let payload = &lines[0]["payload"];
        assert_eq!((lines.len(), &payload["requestId"]), (1, &json!(format!("r-{number}"))), "{head}: {payload}");
        let named = [&payload["caller"], &payload["callerName"]];
        assert_eq!(named, [&json!("nan"), &json!("Nan's laptop")], "{head}: {payload}");
        assert!(payload["subject"].is_string() && payload.get("before").is_some(), "{head}: {payload}");
    }
    // Without an id of the client's the line has the one in the response and the log.
    let (status, answer) = running.post("/publish", "ann", &json!({ "topic": "release.published" })).await;
    assert_eq!(status, 202, "{answer}");
    let made = &lines(&running, "audit.publish").await[1]["payload"];
    assert!(made["requestId"].as_str().is_some_and(|id| !id.is_empty()), "{made}");
    running.stop().await;
}

#[tokio::test]
async fn before_and_after_of_a_registration_are_as_it_was_written() {
    let (data, files) = (folder(), folder());
    std::fs::write(files.path().join("agents.yaml"), "agents: [{ name: echo, builtin: echo }]\n").unwrap();
    let far = CardServer::start(&["review"]).await;
    let running = Running::of_workspace(data.path(), files.path(), |_| {}).await;
    let first = json!({ "name": "far", "url": far.url, "poll": "30s" });
    let second = json!({ "name": "far", "url": far.url, "poll": "60s", "headers": { "X-Team": "blue" } });
    assert_eq!(running.post("/api/agents", "ann", &first).await.0, 201);
    // The version says what is replaced, and is no part of the agent.
    let mut put = second.clone();
    put["version"] = json!(1);
    assert_eq!(running.ask("PUT /api/agents/far", "ann", &[], &put.to_string()).await.0, 200);
    running.stop().await;

    // A restart knows no more than what is stored.
    let running = Running::of_workspace(data.path(), files.path(), |_| {}).await;
    assert_eq!(running.ask("DELETE /api/agents/far", "ann", &[], "").await.0, 204);
    for (act, before, after) in
        [("add", &Value::Null, &first), ("update", &first, &second), ("remove", &second, &Value::Null)]
    {
        let lines = lines(&running, &format!("audit.agents.{act}")).await;
        let payload = &lines[0]["payload"];
        assert_eq!((&payload["before"], &payload["after"]), (before, after), "{act}: {payload}");
    }
    running.stop().await;
}

#[tokio::test]
async fn what_comes_from_outside_is_journaled_without_its_secrets() {
    let (data, files) = (folder(), folder());
    std::fs::write(files.path().join("agents.yaml"), "agents: [{ name: echo, builtin: echo }]\n").unwrap();
    let short = |config: &mut switchboard_host::config::Config| {
        config.hub.journal.line = switchboard_host::config::size::Size::from_kibibytes(1);
    };
    let running = Running::of_workspace(data.path(), files.path(), short).await;
    let long = json!({ "topic": "release.published", "payload": { "log": "x".repeat(1024) } });
    let (status, refusal) = running.post("/publish", "ann", &long).await;
    let right = refusal["problems"][0]["right"].as_str().unwrap_or_default();
    assert_eq!((status, right.contains("hub.journal.line")), (400, true), "{refusal}");
    let payload = json!({ "apiKey": "hush", "log": "sent Authorization: Bearer hush", "version": 2 });
    let line = json!({ "topic": "release.published", "payload": payload });
    assert_eq!(running.post("/publish", "ann", &line).await.0, 202);
    let message = json!({ "message": "I log in with password=hush at https://me:hush@host/", "topic": "token=hush" });
    assert_eq!(running.post("/api/operator/message", "bob", &message).await.0, 202);
    let wrong = "agents: [{ name: echo, builtin: 'https://me:hush@host/' }]\n";
    std::fs::write(files.path().join("agents.yaml"), wrong).unwrap();
    running.reload_now.notify_one();
    running.topics("hub.config.refused", 1).await;
    let drop = json!({ "message": "hi", "targets": "token=hush" });
    assert_eq!(running.post("/api/dispatch", "nan", &drop).await.0, 404);
    running.clock.advance(std::time::Duration::from_secs(10));
    running.topics("dispatch.dropped.%23", 1).await;
    let dropped = &lines(&running, "dispatch.dropped.*").await[0]["payload"];
    let named = [&dropped["caller"], &dropped["callerName"], &dropped["key"]];
    assert_eq!(named, [&json!("nan"), &json!("Nan's laptop"), &json!("token=***")], "{dropped}");
    for topic in ["release.published", "operator.message", "hub.config.refused", "dispatch.dropped.*"] {
        let found = lines(&running, topic).await;
        assert!(!found.is_empty() && !json!(found).to_string().contains("hush"), "{found:?}");
    }
    let published = &lines(&running, "release.published").await[0]["payload"];
    let shown = json!({ "apiKey": "***", "log": "sent Authorization: Bearer ***", "version": 2 });
    assert_eq!(*published, shown);
    running.stop().await;

    // What an agent says to have changed.
    let data = folder();
    let running = server(data.path(), &SimulatedClock::at(START)).await;
    running.send("bob", "echo", "change 1 token=hush").await;
    counted(&running, 1).await;
    let told = &lines(&running, "world.state.delta").await[0]["payload"];
    assert_eq!(told["deltas"][0]["path"], "token=***", "{told}");
    running.stop().await;
}

#[tokio::test]
async fn an_accepted_card_is_in_the_audit_with_its_etag() {
    let (data, files) = (folder(), folder());
    std::fs::write(files.path().join("agents.yaml"), "agents: [{ name: echo, builtin: echo }]\n").unwrap();
    let far = CardServer::start(&["review"]).await;
    let running = Running::of_workspace(data.path(), files.path(), |_| {}).await;
    let item = json!({ "name": "far", "url": far.url, "cardChanges": "hold" });
    assert_eq!(running.post("/api/agents", "ann", &item).await.0, 201);
    far.offer(&["deploy"]);
    let (_, shown) = running.post("/api/agents/far:refresh", "ann", &json!({})).await;
    let etag = &shown["held"]["etag"];
    assert!(etag.is_string(), "{shown}");
    // Another one is refused with the one that is held.
    let (status, refusal) = running.post("/api/agents/far:accept", "ann", &json!({ "etag": "other" })).await;
    assert_eq!((status, &refusal["code"], &refusal["version"]), (412, &json!("VERSION"), etag), "{refusal}");
    let (status, refusal) = running.post("/api/agents/echo:accept", "ann", &json!({ "etag": "other" })).await;
    assert_eq!((status, refusal.get("version")), (412, Some(&Value::Null)), "none is held: {refusal}");
    let body = json!({ "etag": etag }).to_string();
    let (status, answer) = running.ask("POST /api/agents/far:accept", "nan", &["X-Request-Id: r-1"], &body).await;
    assert_eq!(status, 200, "{answer}");
    let lines = lines(&running, "audit.agents.accept").await;
    let line = &lines[0]["payload"];
    assert_eq!((lines.len(), &line["subject"], &line["agent"]), (1, &json!("far"), &json!("far")), "{line}");
    let named = [&line["caller"], &line["callerName"], &line["requestId"]];
    assert_eq!(named, [&json!("nan"), &json!("Nan's laptop"), &json!("r-1")], "{line}");
    assert_eq!(line["after"], json!({ "etag": etag }), "{line}");
    running.stop().await;
}
