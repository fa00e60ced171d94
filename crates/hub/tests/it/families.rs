//! Tasks and those that have called them, where no turn is left to look after the others.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_engine::Settings;
use switchboard_engine::clock::SimulatedClock;

use crate::remote::passing;
use crate::running::{Running, START, folder};

const STEP: Duration = Duration::from_millis(100);

async fn start(data: &std::path::Path, clock: &SimulatedClock) -> Running {
    Running::with(data, clock.clone(), |_| {}, Settings::default()).await
}

/// A task and its children, once it fits.
async fn tree(running: &Running, id: &str, fits: impl Fn(&Value) -> bool) -> Value {
    let path = format!("/api/tasks/{id}/tree");
    let read = async {
        loop {
            let (status, tree) = running.get(&path, "ann").await;
            assert_eq!(status, 200, "{tree}");
            if fits(&tree) {
                return tree;
            }
        }
    };
    passing(&running.clock, STEP, read).await
}

fn all_are(children: &Value, state: &str) -> bool {
    children.as_array().unwrap().iter().all(|child| child["state"] == state)
}

#[tokio::test]
async fn a_fan_out_that_waits_goes_on_after_a_restart_when_its_children_are_answered() {
    let (data, clock) = (folder(), SimulatedClock::at(START));
    let running = start(data.path(), &clock).await;
    let asked = json!({ "message": "ask", "targets": ["echo", "other"], "wait": "30s" });
    let (status, parent) = running.post("/api/dispatch", "ann", &asked).await;
    assert_eq!((status, &parent["status"]["state"]), (200, &json!("TASK_STATE_INPUT_REQUIRED")), "{parent}");
    let parent = parent["id"].as_str().unwrap().to_owned();
    running.stop().await;
    // Nothing of it is in memory from here on.
    let running = start(data.path(), &clock).await;
    let before = tree(&running, &parent, |tree| tree["children"].as_array().unwrap().len() == 2).await;
    assert!(all_are(&before["children"], "input_required"), "{before}");
    for child in before["children"].as_array().unwrap() {
        let id = child["task"].as_str().unwrap();
        let answer = json!({ "message": "so", "taskId": id, "wait": "30s" });
        let (status, answered) = running.post("/api/dispatch", "ann", &answer).await;
        assert_eq!((status, &answered["status"]["state"]), (200, &json!("TASK_STATE_COMPLETED")), "{answered}");
    }
    let after = tree(&running, &parent, |tree| tree["state"] == "completed").await;
    assert!(all_are(&after["children"], "completed"), "{after}");
    running.stop().await;
}

#[tokio::test]
async fn what_a_failed_task_has_called_is_canceled() {
    let (data, clock) = (folder(), SimulatedClock::at(START));
    let running = start(data.path(), &clock).await;
    let parent = running.send("ann", "echo", "leave").await;
    assert_eq!(parent["status"]["state"], "TASK_STATE_FAILED", "{parent}");
    let ended =
        |tree: &Value| !tree["children"].as_array().unwrap().is_empty() && all_are(&tree["children"], "canceled");
    tree(&running, parent["id"].as_str().unwrap(), ended).await;
    running.stop().await;
}
