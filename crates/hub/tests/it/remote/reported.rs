//! What remote agents report of their work: it counts once, wherever it was told, and only if their cards declare it.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_a2a::extension::Payload;
use switchboard_a2a::extension::confidence::Confidence;
use switchboard_a2a::extension::cost::Cost;
use switchboard_engine::clock::SimulatedClock;

use super::far;
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

/// An agent that is polled and declares some extensions.
async fn polled(declared: &Value, first: Value, end: Value) -> Scripted {
    let mut card = card(false);
    card["capabilities"]["extensions"] = declared.clone();
    Scripted::with_card(card, move |asked, _| match asked.method() {
        "SendMessage" => Reply::Result(json!({ "task": first })),
        "GetTask" => Reply::Result(end.clone()),
        _ => Reply::Error(-32601),
    })
    .await
}

/// What the feed says has become of a task of an agent that reports on its artifact, with the task and its tree.
async fn outcome(declared: Value) -> (Value, Value, Value) {
    let (first, end) = (reporting("TASK_STATE_WORKING"), reporting("TASK_STATE_COMPLETED"));
    let remote = polled(&declared, first, end).await;
    ended(&remote, declared != json!([])).await
}

/// The same of any agent. What it declares is known here before it is asked.
async fn ended(remote: &Scripted, declares: bool) -> (Value, Value, Value) {
    let (data, files) = (folder(), folder());
    far::write_agents(files.path(), remote);
    let clock = SimulatedClock::at(START);
    let running = Running::of_workspace_at(data.path(), files.path(), &clock).await;
    // What it declares is known once its card was read.
    let known = async {
        let path = "/a2a/far/.well-known/agent-card.json";
        while declares && !running.get(path, "ann").await.1.to_string().contains(Cost::URI) {}
    };
    passing(&clock, STEP, known).await;
    let id = far::begin(&running).await;
    let has_ended =
        |task: &Value| ["TASK_STATE_COMPLETED", "TASK_STATE_FAILED"].iter().any(|end| task["status"]["state"] == *end);
    let task = far::until_task(&running, STEP, &id, has_ended).await;
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

#[tokio::test]
async fn what_another_switchboard_says_of_an_end_counts_though_its_task_is_polled() {
    let with = |state: &str, metadata: Value| {
        let mut task = task(state, "m");
        task["metadata"] = metadata;
        task
    };
    let used = |cost: f64| json!({ "inputTokens": 7, "outputTokens": 3, "costUsd": cost });
    let first = with("TASK_STATE_WORKING", json!({ "switchboard/usage": used(0.1) }));
    let mut usage = used(0.2);
    (usage["own"], usage["tree"]) = (used(0.2), used(0.5));
    let end = with("TASK_STATE_COMPLETED", json!({ "switchboard/usage": usage, "theirs": true }));
    let (outcome, done, tree) = ended(&polled(&json!([]), first.clone(), end).await, false).await;
    assert_eq!((&outcome["costUsd"], &outcome["outputTokens"]), (&json!(0.5), &json!(3)), "{outcome}");
    assert_eq!((&tree["own"]["costUsd"], &tree["total"]["costUsd"]), (&json!(0.5), &json!(0.5)), "{tree}");
    assert_eq!(
        (&done["metadata"]["switchboard/usage"]["costUsd"], &done["metadata"]["theirs"]),
        (&json!(0.5), &json!(true))
    );

    let why = json!({ "switchboard/reason": "rejected", "switchboard/reasonDetail": "delegation_depth" });
    let (_, failed, _) = ended(&polled(&json!([]), first, with("TASK_STATE_FAILED", why)).await, false).await;
    let metadata = &failed["metadata"];
    assert_eq!(metadata["switchboard/reasonDetail"], "delegation_depth", "{metadata}");
    assert_eq!(metadata["switchboard/reason"], "agent_error", "it is the agent here that has failed: {metadata}");
}
