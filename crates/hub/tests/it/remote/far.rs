//! A whole server of ours, with a remote agent that it calls `far`. The caller is `ann`.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::script::Scripted;
use super::world::passing;
use crate::running::Running;

/// Writes the workspace's file.
pub(super) fn write_agents(workspace: &Path, remote: &Scripted) {
    let agents = format!("agents:\n  - name: far\n    url: {}\n", remote.url());
    std::fs::write(workspace.join("agents.yaml"), agents).unwrap();
}

/// Begins a task, and returns its id.
pub(super) async fn begin(running: &Running) -> String {
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "go" }] });
    let body = json!({ "message": message, "configuration": { "returnImmediately": true } });
    let (status, answer) = running.post("/a2a/far/message:send", "ann", &body).await;
    assert_eq!(status, 200, "{answer}");
    answer["task"]["id"].as_str().unwrap().to_owned()
}

/// The same once the task names its remote task: it is followed from before that on.
pub(super) async fn begin_and_name(running: &Running, step: Duration) -> String {
    let id = begin(running).await;
    until_task(running, step, &id, |task| task["metadata"]["switchboard/remote"].is_object()).await;
    id
}

/// Turns the clock by steps until a task fits; with none its time stands still.
pub(super) async fn until_task(running: &Running, step: Duration, id: &str, fits: impl Fn(&Value) -> bool) -> Value {
    let path = format!("/a2a/far/tasks/{id}");
    let read = async {
        loop {
            let (_, task) = running.get(&path, "ann").await;
            if fits(&task) {
                return task;
            }
        }
    };
    passing(&running.clock, step, read).await
}
