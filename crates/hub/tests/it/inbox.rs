//! The inbox: every question that waits, who sees it and may decide it, and what its agent gets.

mod ask_human;
mod decisions;
mod lists;
mod many;
mod questioner;
mod races;
mod remotes;
mod sight;
mod times;

use std::path::Path;

use serde_json::{Value, json};
use switchboard_engine::clock::SimulatedClock;
use switchboard_engine::{Hosted, Settings};
use switchboard_host::config::Config;
use switchboard_host::config::time_span::TimeSpan;

use switchboard_hub::tasks::ask::{ASK, Ask};

use crate::running::{Running, START, fanout};
use questioner::Questioner;

/// A server whose agents `echo` and `other` ask.
async fn server(data: &Path) -> Running {
    server_at(data, &SimulatedClock::at(START)).await
}

async fn server_at(data: &Path, clock: &SimulatedClock) -> Running {
    let change = |config: &mut Config| config.hub.projector.flush = TimeSpan::ZERO;
    Running::serving(data, agents(), clock.clone(), change, Settings::default()).await
}

fn agents() -> Vec<Hosted> {
    vec![Hosted::new("echo", Questioner), Hosted::new("other", Questioner), fanout(), Hosted::new(ASK, Ask)]
}

/// Has an agent ask; the id of the item.
async fn asked(running: &Running, key: &str, agent: &str, text: &str) -> String {
    let task = running.send(key, agent, text).await;
    let open = items(running, "ann", "?pageSize=100").await;
    let item = open.iter().find(|item| item["taskId"] == task["id"]);
    item.unwrap_or_else(|| panic!("it does not ask: {task}"))["id"].as_str().unwrap().to_owned()
}

async fn items(running: &Running, key: &str, query: &str) -> Vec<Value> {
    let (status, page) = running.get(&format!("/api/inbox{query}"), key).await;
    assert_eq!(status, 200, "{page}");
    page["items"].as_array().unwrap().clone()
}

async fn decide(running: &Running, key: &str, id: &str, decision: Value) -> (u16, Value) {
    running.post(&format!("/api/inbox/{id}:decide"), key, &decision).await
}

/// A message of a task's owner, over A2A. Nobody waits for what comes of it.
async fn say(running: &Running, key: &str, task: &str, text: &str) -> u16 {
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "taskId": task, "parts": [{ "text": text }] });
    let body = json!({ "message": message, "configuration": { "returnImmediately": true } });
    running.ask("POST /a2a/message:send", key, &[], &body.to_string()).await.0
}

/// What a task has ended with, once it has.
async fn ended(running: &Running, id: &str) -> Value {
    let id = id.rsplit_once('.').map_or(id, |(task, _)| task);
    let ended = tokio::time::timeout(crate::HANG_GUARD, async {
        loop {
            let (_, shown) = running.get(&format!("/api/tasks/{id}"), "ann").await;
            if ["completed", "failed", "rejected", "canceled"].contains(&shown["state"].as_str().unwrap()) {
                return shown;
            }
            tokio::task::yield_now().await;
        }
    });
    ended.await.unwrap()
}

/// The last words of a task that has ended.
fn words(task: &Value) -> &str {
    task["task"]["status"]["message"]["parts"][0]["text"].as_str().unwrap()
}

fn approve() -> Value {
    json!({ "decision": "approve" })
}
