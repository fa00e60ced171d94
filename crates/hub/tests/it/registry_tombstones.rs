//! Agents that are gone while tasks or jobs name them.

use std::time::Duration;

use serde_json::json;
use switchboard_engine::Directory;
use switchboard_engine::clock::SimulatedClock;

use crate::card_server::CardServer;
use crate::running::{Running, START, folder};

const ECHO: &str = "  - { name: echo, builtin: echo }\n";

/// Has the files read until something is so; the clock goes on meanwhile.
async fn until(running: &Running, condition: impl AsyncFn() -> bool) {
    let waited = tokio::time::timeout(crate::HANG_GUARD, async {
        while !condition().await {
            running.reload_now.notify_one();
            running.clock.advance(Duration::from_secs(1));
            running.get("/api/agents", "ann").await;
        }
    });
    waited.await.unwrap();
}

#[tokio::test]
async fn an_agent_that_the_files_drop_serves_its_tasks_over_a_restart() {
    let (data, files, clock) = (folder(), folder(), SimulatedClock::at(START));
    let write = |agents: &str| std::fs::write(files.path().join("agents.yaml"), format!("agents:\n{agents}")).unwrap();
    write(&format!("{ECHO}  - {{ name: guide, builtin: guide }}\n"));
    let running = Running::of_workspace_at(data.path(), files.path(), &clock).await;
    let task = running.send("ann", "guide", "hello").await;
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    write(ECHO);
    until(&running, async || running.registry.roster().entry("guide").is_none()).await;
    running.stop().await;

    let running = Running::of_workspace_at(data.path(), files.path(), &clock).await;
    assert!(running.registry.find(&"guide".into()).is_some(), "its task still needs it");
    assert_eq!(running.get("/api/agents/guide", "ann").await.0, 404, "but it is gone");
    let (_, live) = running.get("/api/tasks?agent=guide&state=input_required", "ann").await;
    assert_eq!(live["items"].as_array().unwrap().len(), 1, "{live}");
    running.engine.cancel_any(&task["id"].as_str().unwrap().into()).await.unwrap();
    until(&running, async || running.registry.find(&"guide".into()).is_none()).await;
    running.stop().await;
    let running = Running::of_workspace_at(data.path(), files.path(), &clock).await;
    assert!(running.registry.find(&"guide".into()).is_none(), "nothing names it any more");
    running.stop().await;
}

#[tokio::test]
async fn another_address_under_the_name_of_a_removed_agent_has_not_its_skills() {
    let (data, files, clock) = (folder(), folder(), SimulatedClock::at(START));
    std::fs::write(files.path().join("agents.yaml"), format!("agents:\n{ECHO}")).unwrap();
    let far = CardServer::start(&["review"]).await;
    let running = Running::of_workspace_at(data.path(), files.path(), &clock).await;
    let item = json!({ "name": "far", "url": far.url });
    assert_eq!(running.post("/api/agents", "ann", &item).await.0, 201);
    let long = json!({ "name": "far", "url": far.url, "description": "é".repeat(40_000) });
    let (status, answer) = running.ask("PUT /api/agents/far", "ann", &[], &long.to_string()).await;
    assert_eq!(status, 200, "the audit does not repeat all of it: {answer}");
    assert_eq!(running.ask("DELETE /api/agents/far", "ann", &[], "").await.0, 204);
    running.stop().await;

    let running = Running::of_workspace_at(data.path(), files.path(), &clock).await;
    let nobody = json!({ "name": "far", "url": "http://127.0.0.1:9" });
    let (status, answer) = running.post("/api/agents?force=true", "ann", &nobody).await;
    assert_eq!(status, 201, "{answer}");
    let (_, shown) = running.get("/api/agents/far", "ann").await;
    assert_eq!(shown["skills"], json!([]), "{shown}");
    running.stop().await;
    let running = Running::of_workspace_at(data.path(), files.path(), &clock).await;
    let (_, shown) = running.get("/api/agents/far", "ann").await;
    assert_eq!((&shown["source"], &shown["skills"]), (&json!("registration"), &json!([])), "{shown}");
    running.stop().await;
}
