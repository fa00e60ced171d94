//! Channels: bursts are handed on once, what comes meanwhile waits, and nothing that is said in a chat does more than that.

mod bursts;
mod files;
mod hostile;
mod kills;
mod limits;
mod mailbox;
mod questions;

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use switchboard_engine::Settings;
use switchboard_engine::clock::SimulatedClock;
use switchboard_host::config::Config;
use switchboard_host::config::agent_name::AgentName;
use switchboard_host::config::value::Scalar as _;

use crate::running::{Running, START};

/// A server where `echo` gets what nothing else is said about.
async fn server(data: &Path) -> Running {
    server_with(data, |_| {}).await
}

async fn server_with(data: &Path, change: impl FnOnce(&mut Config)) -> Running {
    let change = |config: &mut Config| {
        config.hub.roles.helm = AgentName::from_text("echo").ok();
        change(config);
    };
    Running::with(data, SimulatedClock::at(START), change, Settings::default()).await
}

/// Says something in the channel `C1` of Slack, and returns task and conversation.
async fn say(running: &Running, key: &str, text: &str) -> (String, String) {
    tell(running, key, &json!({ "channel": "C1", "user": "ann", "text": text })).await
}

async fn tell(running: &Running, key: &str, message: &Value) -> (String, String) {
    let (status, answer) = running.post("/api/channels/slack/messages", key, message).await;
    assert_eq!(status, 202, "{answer}");
    let text = |member: &str| answer[member].as_str().unwrap().to_owned();
    (text("taskId"), text("contextId"))
}

/// Waits until something is so, while the clock goes on.
async fn until<T>(running: &Running, found: impl AsyncFn() -> Option<T>) -> T {
    let asked = tokio::time::timeout(crate::HANG_GUARD, async {
        loop {
            if let Some(found) = found().await {
                return found;
            }
            running.clock.advance(Duration::from_millis(100));
            tokio::task::yield_now().await;
        }
    });
    asked.await.unwrap()
}

/// The same while the clock stands still.
async fn at_once<T>(found: impl AsyncFn() -> Option<T>) -> T {
    let asked = tokio::time::timeout(crate::HANG_GUARD, async {
        loop {
            if let Some(found) = found().await {
                return found;
            }
            tokio::task::yield_now().await;
        }
    });
    asked.await.unwrap()
}

async fn task(running: &Running, key: &str, id: &str) -> Value {
    let (status, shown) = running.get(&format!("/api/tasks/{id}"), key).await;
    assert_eq!(status, 200, "{shown}");
    shown["task"].clone()
}

fn state(task: &Value) -> &str {
    task["status"]["state"].as_str().unwrap()
}

/// The task once it is in a state.
async fn in_state(running: &Running, key: &str, id: &str, wanted: &str) -> Value {
    until(running, async || {
        let task = task(running, key, id).await;
        (state(&task) == wanted).then_some(task)
    })
    .await
}

async fn completed(running: &Running, key: &str, id: &str) -> Value {
    in_state(running, key, id, "TASK_STATE_COMPLETED").await
}

/// The tasks of agents that channels have begun, the oldest first.
async fn calls(running: &Running, key: &str) -> Vec<Value> {
    let (_, page) = running.get("/api/tasks?via=channel&pageSize=100", key).await;
    let mut tasks = page["items"].as_array().unwrap().clone();
    tasks.retain(|task| task["agent"] != "~channel");
    tasks.reverse();
    tasks
}

/// The newest of them, once there are so many.
async fn call(running: &Running, key: &str, count: usize) -> String {
    until(running, async || {
        let calls = calls(running, key).await;
        let newest = calls.get(count - 1)?;
        newest["taskId"].as_str().map(str::to_owned)
    })
    .await
}

/// What was said to the agents, a text for each call.
async fn heard(running: &Running, key: &str) -> Vec<String> {
    let mut texts = Vec::new();
    for call in calls(running, key).await {
        texts.push(words(&task(running, key, call["taskId"].as_str().unwrap()).await["history"][0]));
    }
    texts
}

fn words(message: &Value) -> String {
    let parts = message["parts"].as_array().cloned().unwrap_or_default();
    parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
}

/// Tells a task of an agent something, as its owner does over A2A.
async fn answer(running: &Running, key: &str, agent: &str, id: &str, text: &str) {
    running.send_with(key, agent, json!({ "taskId": id, "parts": [{ "text": text }] }), &[]).await;
}

/// What waits in a conversation.
async fn waiting(running: &Running, key: &str, context: &str) -> Vec<String> {
    let (status, answer) = running.get(&format!("/api/mailbox/{context}"), key).await;
    assert_eq!(status, 200, "{answer}");
    texts(&answer)
}

fn texts(answer: &Value) -> Vec<String> {
    let messages = answer["data"]["messages"].as_array().unwrap();
    messages.iter().map(|message| message["text"].as_str().unwrap().to_owned()).collect()
}
