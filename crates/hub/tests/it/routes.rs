//! Routes: what happens becomes a message or a POST, once and in order, and never goes round in circles.

mod definitions;
mod loops;
mod outages;
mod posts;
mod sends;

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use switchboard_engine::Settings;
use switchboard_engine::clock::SimulatedClock;
use switchboard_host::config::Config;
use switchboard_host::config::address::Network;
use switchboard_host::config::time_span::TimeSpan;
use switchboard_host::config::value::Scalar as _;

use crate::running::{Running, START};

/// What every server of these tests has: it writes what it reads at once, and may call this machine.
fn configure(config: &mut Config) {
    config.hub.projector.flush = TimeSpan::ZERO;
    config.webhooks.allowed_cidrs = vec![Network::from_text("127.0.0.0/8").unwrap()];
}

async fn server(data: &Path) -> Running {
    server_with(data, |_| {}).await
}

async fn server_with(data: &Path, change: impl FnOnce(&mut Config)) -> Running {
    let change = |config: &mut Config| {
        configure(config);
        change(config);
    };
    Running::with(data, SimulatedClock::at(START), change, Settings::default()).await
}

/// Registers a route.
async fn route(running: &Running, definition: Value) -> Value {
    let (status, answer) = running.post("/api/routes", "ann", &definition).await;
    assert_eq!(status, 201, "{answer}");
    answer["data"].clone()
}

/// A route as the list shows it.
async fn shown(running: &Running, name: &str, key: &str) -> Value {
    let (status, answer) = running.get(&format!("/api/routes?name={name}"), key).await;
    assert_eq!(status, 200, "{answer}");
    answer["data"]["items"][0].clone()
}

/// Waits until something is so. The clock goes on, so that jobs fall due.
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

/// The tasks that routes have begun, the oldest first, once there are so many, all have ended, and nothing is owed for that.
async fn sent(running: &Running, count: usize) -> Vec<Value> {
    until(running, async || {
        let (_, page) = running.get("/api/tasks?via=route&pageSize=100", "ann").await;
        let mut tasks = page["items"].as_array().unwrap().clone();
        tasks.reverse();
        (tasks.len() >= count && is_settled(running).await).then_some(tasks)
    })
    .await
}

/// Whether all tasks have ended, their ends were read, and no route owes anything.
async fn is_settled(running: &Running) -> bool {
    let (_, page) = running.get("/api/tasks?pageSize=100", "ann").await;
    let tasks = page["items"].as_array().unwrap();
    let have_ended =
        tasks.iter().all(|task| ["completed", "failed", "rejected"].contains(&task["state"].as_str().unwrap()));
    let of_agents = tasks.iter().filter(|task| !task["agent"].as_str().unwrap().starts_with('~')).count();
    let (_, health) = running.get("/api/health", "ann").await;
    let (_, page) = running.get("/api/routes?pageSize=100", "ann").await;
    let owes_nothing = page["data"]["items"].as_array().unwrap().iter().all(|route| route["owed"] == 0);
    have_ended && owes_nothing && health["totals"]["outcomes"] == json!(of_agents)
}

/// The first message of a task.
async fn first_message(running: &Running, task: &Value) -> Value {
    let id = task["taskId"].as_str().or(task["id"].as_str()).unwrap();
    let (_, page) = running.get(&format!("/api/feed?from=oldest&topic=task.received.%23&task={id}"), "ann").await;
    page["items"][0].clone()
}

/// Payloads of lines of the journal, once there are so many.
async fn lines(running: &Running, topic: &str, count: usize) -> Vec<Value> {
    until(running, async || {
        let (_, page) = running.get(&format!("/api/feed?from=oldest&topic={topic}"), "ann").await;
        let items = page["items"].as_array().unwrap();
        (items.len() >= count).then(|| items.iter().map(|item| item["payload"].clone()).collect())
    })
    .await
}

fn to_agent(name: &str, topic: &str, target: &str) -> Value {
    json!({ "name": name, "when": { "topic": topic }, "then": { "targets": [target] } })
}
