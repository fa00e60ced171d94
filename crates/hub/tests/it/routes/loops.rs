//! Routes that would trigger themselves end: by what they have caused, by the chain, and by how many messages one task may
//! cause.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use switchboard_host::config::size::Count;
use switchboard_host::config::time_span::TimeSpan;

use super::{lines, route, sent, server, server_with, to_agent};
use crate::running::{Running, folder};

/// How many tasks have ended in each state.
fn states(tasks: &[Value]) -> BTreeMap<String, usize> {
    let mut states = BTreeMap::new();
    for task in tasks {
        *states.entry(task["state"].as_str().unwrap().to_owned()).or_insert(0) += 1;
    }
    states
}

#[tokio::test]
async fn a_route_is_not_triggered_by_what_it_has_caused() {
    let data = folder();
    let running = server(data.path()).await;
    route(&running, to_agent("again", "task.completed.#", "echo")).await;
    running.send("bob", "echo", "hello").await;
    running.send("bob", "other", "hello").await;
    assert_eq!(sent(&running, 2).await.len(), 2, "one for each, and none for what that has caused");

    // Two that trigger each other: there and back, and no further.
    assert_eq!(running.ask("DELETE /api/routes/again", "ann", &[], "").await.0, 204);
    route(&running, to_agent("there", "task.completed.echo", "other")).await;
    route(&running, to_agent("back", "task.completed.other", "echo")).await;
    running.send("bob", "echo", "hello").await;
    let tasks = sent(&running, 4).await;
    assert_eq!(tasks.len(), 4, "{tasks:?}");
    // Nor by its own lines: that it was registered, and that it could not send.
    route(&running, json!({ "name": "lines", "when": { "topic": "hub.route.#" }, "then": { "targets": ["nobody"] } }))
        .await;
    route(&running, to_agent("other", "never.happens", "echo")).await;
    let dropped = lines(&running, "hub.route.dropped.lines", 1).await;
    assert_eq!((dropped.len(), &dropped[0]["events"]), (1, &json!(1)));
    route(&running, to_agent("last", "never.happens", "echo")).await;
    let dropped = lines(&running, "hub.route.dropped.lines", 2).await;
    assert_eq!(dropped.iter().map(|line| line["events"].as_u64().unwrap()).sum::<u64>(), 2, "{dropped:?}");
    running.stop().await;
}

#[tokio::test]
async fn a_caller_cannot_hide_its_tasks_from_a_route() {
    let data = folder();
    let running = server(data.path()).await;
    route(&running, to_agent("watch", "task.completed.#", "other")).await;
    let message = json!({
        "parts": [{ "text": "hello" }],
        "metadata": { "switchboard/routes": ["watch"], "note": "kept" },
    });
    running.send_with("bob", "echo", message, &[]).await;
    assert_eq!(sent(&running, 1).await.len(), 1);
    running.stop().await;
}

#[tokio::test]
async fn routes_that_multiply_end_by_their_chain_and_by_their_count() {
    let data = folder();
    let running = server_with(data.path(), |config| {
        config.hub.routes.sends_per_root = Count::new(5);
        config.hub.routes.sends_within = TimeSpan::from_minutes(60);
    })
    .await;
    for number in 0..4 {
        route(&running, to_agent(&format!("r{number}"), "task.completed.#", "echo")).await;
    }
    running.send("bob", "other", "hello").await;
    // Four by the first task; what these cause is more than may be sent.
    let dropped = || async {
        let lines = lines(&running, "hub.route.dropped.%23", 1).await;
        lines.iter().map(|line| line["events"].as_u64().unwrap()).sum::<u64>()
    };
    let tasks = sent(&running, 5).await;
    assert_eq!(tasks.len(), 5, "{tasks:?}");
    assert!(dropped().await >= 1);
    let problem = lines(&running, "hub.route.dropped.%23", 1).await[0]["problem"].to_string();
    assert!(problem.contains("hub.routes.sendsPerRoot"), "{problem}");
    // Another task counts for itself.
    running.send("bob", "other", "hello").await;
    assert_eq!(sent(&running, 10).await.len(), 10);
    running.stop().await;

    // Without that limit the chain ends it: an agent may be in it so often.
    let data = folder();
    let running: Running =
        server_with(data.path(), |config| config.hub.routes.sends_per_root = Count::new(10_000)).await;
    for number in 0..3 {
        route(&running, to_agent(&format!("r{number}"), "task.completed.#", "echo")).await;
    }
    running.send("bob", "other", "hello").await;
    // 3 by the first; each of these 2, as its own route is left out; each of these 1, which the guard rejects.
    let tasks = sent(&running, 15).await;
    assert_eq!(states(&tasks), BTreeMap::from([("completed".to_owned(), 9), ("rejected".to_owned(), 6)]), "{tasks:?}");
    running.stop().await;
}
