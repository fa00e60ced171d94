//! What remote agents report of their work: it counts once, wherever it was told, and only if their cards declare it.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_a2a::extension::Payload;
use switchboard_a2a::extension::confidence::Confidence;
use switchboard_a2a::extension::cost::Cost;
use switchboard_engine::clock::SimulatedClock;

use super::script::{Reply, Scripted, card, task};
use super::world::passing;
use crate::running::{Running, START, folder};

const STEP: Duration = Duration::from_millis(100);

/// A task with a report on its artifact.
fn reporting(state: &str) -> Value {
    let mut task = task(state, "m");
    task["artifacts"][0]["metadata"] = json!({
        Cost::URI: { "costUsd": 0.5, "usage": { "input_tokens": 7, "output_tokens": 3 } },
        Confidence::URI: { "confidence": 0.9, "success": false },
    });
    task
}

/// What the feed says has become of a task of such an agent, with the task and its tree.
async fn outcome(declared: Value) -> (Value, Value, Value) {
    let mut card = card(false);
    let declares = declared != json!([]);
    card["capabilities"]["extensions"] = declared;
    let remote = Scripted::with_card(card, |asked, _| match asked.method() {
        "SendMessage" => Reply::Result(json!({ "task": reporting("TASK_STATE_WORKING") })),
        "GetTask" => Reply::Result(reporting("TASK_STATE_COMPLETED")),
        _ => Reply::Error(-32601),
    })
    .await;
    let (data, files) = (folder(), folder());
    let agents = format!("agents:\n  - name: far\n    url: {}\n", remote.url());
    std::fs::write(files.path().join("agents.yaml"), agents).unwrap();
    let clock = SimulatedClock::at(START);
    let running = Running::of_workspace_at(data.path(), files.path(), &clock).await;
    // What it declares is known once its card was read.
    let known = async {
        let path = "/a2a/far/.well-known/agent-card.json";
        while declares && !running.get(path, "ann").await.1.to_string().contains(Cost::URI) {}
    };
    passing(&clock, STEP, known).await;
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "go" }] });
    let sent = json!({ "message": message, "configuration": { "returnImmediately": true } });
    let (status, answer) = running.post("/a2a/far/message:send", "ann", &sent).await;
    assert_eq!(status, 200, "{answer}");
    let id = answer["task"]["id"].as_str().unwrap();
    let ended = async {
        loop {
            let (_, task) = running.get(&format!("/a2a/far/tasks/{id}"), "ann").await;
            if task["status"]["state"] == "TASK_STATE_COMPLETED" {
                return task;
            }
        }
    };
    let task = passing(&clock, STEP, ended).await;
    let (_, page) = running.get("/api/feed?from=oldest&topic=outcome.%23", "ann").await;
    let (_, tree) = running.get(&format!("/api/tasks/{id}/tree"), "ann").await;
    running.stop().await;
    (page["items"][0]["payload"].clone(), task, tree)
}

#[tokio::test]
async fn what_an_agent_reports_before_its_end_counts_if_its_card_declares_it() {
    let declared = json!([{ "uri": Cost::URI }, { "uri": Confidence::URI }]);
    let (outcome, task, tree) = outcome(declared).await;
    assert_eq!((&outcome["costUsd"], &outcome["inputTokens"]), (&json!(0.5), &json!(7)), "{outcome}");
    assert_eq!((&outcome["confidence"], &outcome["success"]), (&json!(0.9), &json!(false)), "{outcome}");
    assert!(outcome["queueMs"].is_u64(), "{outcome}");
    assert_eq!(task["metadata"]["switchboard/usage"]["costUsd"], 0.5, "{task}");
    assert_eq!((&tree["own"]["costUsd"], &tree["total"]["outputTokens"]), (&json!(0.5), &json!(3)), "{tree}");
}

#[tokio::test]
async fn what_no_card_declares_is_not_believed() {
    let (outcome, task, _) = outcome(json!([])).await;
    assert_eq!((&outcome["costUsd"], &outcome["confidence"]), (&Value::Null, &Value::Null), "{outcome}");
    assert_eq!((&outcome["success"], &task["metadata"]["switchboard/usage"]), (&json!(true), &Value::Null), "{task}");
}
