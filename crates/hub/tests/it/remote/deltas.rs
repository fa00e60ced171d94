//! What a remote agent has changed outside of its task, where pushes and polls both say so.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use switchboard_a2a::extension::Payload;
use switchboard_a2a::extension::worldstate_delta::WorldstateDelta;
use switchboard_engine::clock::SimulatedClock;

use super::lost::push;
use super::script::{Reply, Scripted, card, task};
use super::world::passing;
use crate::running::{Running, START, folder};

const STEP: Duration = Duration::from_millis(100);

/// The task as it is in the end, and before that.
fn reported(state: &str) -> Value {
    let deltas = json!({ "deltas": [{ "domain": "board", "path": "open", "op": "inc", "value": -1 }] });
    let mut now = task(state, "m");
    now["artifacts"] = json!([{
        "artifactId": "a", "parts": [{ "text": "closed one" }], "metadata": { WorldstateDelta::URI: deltas },
    }]);
    now
}

#[tokio::test]
async fn a_change_that_pushes_and_polls_report_is_published_once() {
    let mut declares = card(false);
    let extensions = json!([{ "uri": WorldstateDelta::URI }]);
    declares["capabilities"] = json!({ "streaming": false, "pushNotifications": true, "extensions": extensions });
    let stage = Arc::new(AtomicUsize::new(0));
    let at = Arc::clone(&stage);
    let remote = Scripted::with_card(declares, move |asked, _| match (asked.method(), at.load(Ordering::SeqCst)) {
        ("SendMessage", _) => {
            let mut begun = task("TASK_STATE_WORKING", "m");
            begun["artifacts"] = json!([]);
            Reply::Result(json!({ "task": begun }))
        }
        ("GetTask", 0) => {
            let mut begun = task("TASK_STATE_WORKING", "m");
            begun["artifacts"] = json!([]);
            Reply::Result(begun)
        }
        ("GetTask", 1) => Reply::Result(reported("TASK_STATE_WORKING")),
        ("GetTask", _) => Reply::Result(reported("TASK_STATE_COMPLETED")),
        _ => Reply::Error(-32601),
    })
    .await;
    let (data, files, clock) = (folder(), folder(), SimulatedClock::at(START));
    let running = Running::of_workspace_at(data.path(), files.path(), &clock).await;
    let base = format!("http://{}", running.address);
    let agents = format!("agents:\n  - name: far\n    url: {}\n    callbackBase: {base}\n", remote.url());
    std::fs::write(files.path().join("agents.yaml"), agents).unwrap();
    running.reload_now.notify_one();
    let path = "/a2a/far/.well-known/agent-card.json";
    let known = async { while !running.get(path, "ann").await.1.to_string().contains(WorldstateDelta::URI) {} };
    passing(&clock, STEP, known).await;
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "go" }] });
    let body = json!({ "message": message, "configuration": { "returnImmediately": true } });
    let (status, answer) = running.post("/a2a/far/message:send", "ann", &body).await;
    assert_eq!(status, 200, "{answer}");
    let task_path = format!("/a2a/far/tasks/{}", answer["task"]["id"].as_str().unwrap());
    remote.called("SendMessage", 1).await;
    let sent = remote.calls("SendMessage").remove(0);
    let config = &sent.body["params"]["configuration"]["taskPushNotificationConfig"];
    let (url, token) = (config["url"].as_str().unwrap(), config["token"].as_str().unwrap());
    let artifact = reported("TASK_STATE_WORKING")["artifacts"][0].clone();
    let update =
        json!({ "artifactUpdate": { "taskId": "r", "contextId": "rc", "artifact": artifact, "lastChunk": true } });
    // It is pushed before and after it was found by a look, and with the end.
    stage.store(1, Ordering::SeqCst);
    assert!((200..300).contains(&push(url, token, &update).await));
    let told = async { while !running.get(&task_path, "ann").await.1.to_string().contains("closed one") {} };
    passing(&clock, STEP, told).await;
    assert!((200..300).contains(&push(url, token, &update).await));
    stage.store(2, Ordering::SeqCst);
    for _ in 0..2 {
        let end = json!({ "task": reported("TASK_STATE_COMPLETED") });
        assert!((200..300).contains(&push(url, token, &end).await));
    }
    let outcome =
        async { while running.get("/api/feed?from=oldest&topic=outcome.%23", "ann").await.1["items"] == json!([]) {} };
    passing(&clock, STEP, outcome).await;
    let (_, page) = running.get("/api/feed?from=oldest&topic=world.state.delta", "ann").await;
    let items = page["items"].as_array().unwrap();
    assert_eq!(items.len(), 1, "{page}");
    assert!(items[0]["payload"].to_string().contains("board"), "{page}");
    assert_eq!(remote.calls("SendMessage").len(), 1);
    running.stop().await;
}
