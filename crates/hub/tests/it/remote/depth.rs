//! A chain of tasks that goes back and forth between two servers, each of whose agents calls the next one on the other.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_engine::clock::SimulatedClock;

use super::world::passing;
use crate::running::{Running, START, folder};

const STEP: Duration = Duration::from_millis(100);

/// Agents of one server that lead to those of another one, and the last that answers.
fn agents(here: &str, from: usize, there: &Running, next: impl Fn(usize) -> String, last: usize) -> String {
    let entry = |number: usize| {
        let url = format!("http://{}/a2a/{}", there.address, next(number));
        format!("  - name: {here}{number}\n    url: {url}\n    headers: {{ Authorization: Bearer ann }}\n")
    };
    format!("agents:\n{}", (from..=last).map(entry).collect::<String>())
}

/// Sends to an agent and waits for the end; time passes.
pub(super) async fn ended(running: &Running, clock: &SimulatedClock, agent: &str) -> Value {
    let message = json!({ "messageId": agent, "role": "ROLE_USER", "parts": [{ "text": "go" }] });
    let body = json!({ "message": message, "configuration": { "returnImmediately": true } });
    let (status, answer) = running.post(&format!("/a2a/{agent}/message:send"), "ann", &body).await;
    assert_eq!(status, 200, "{answer}");
    let path = format!("/tasks/{}", answer["task"]["id"].as_str().unwrap());
    let over = async {
        loop {
            let (_, task) = running.get(&path, "ann").await;
            let state = task["status"]["state"].as_str().unwrap();
            if ["COMPLETED", "FAILED", "CANCELED", "REJECTED"].iter().any(|end| state.ends_with(end)) {
                return task;
            }
        }
    };
    passing(clock, STEP, over).await
}

#[tokio::test]
async fn a_chain_over_two_servers_is_twelve_deep_and_the_thirteenth_task_is_rejected_before_it_starts() {
    let (data, files, clock) = ([folder(), folder()], [folder(), folder()], SimulatedClock::at(START));
    let write = |index: usize, agents: &str| std::fs::write(files[index].path().join("agents.yaml"), agents).unwrap();
    let last = "  - name: a7\n    builtin: echo\n";
    write(0, &format!("agents:\n{last}"));
    let first = Running::of_workspace_at(data[0].path(), files[0].path(), &clock).await;
    write(1, &agents("b", 1, &first, |number| format!("a{}", number + 1), 6));
    let second = Running::of_workspace_at(data[1].path(), files[1].path(), &clock).await;
    write(0, &format!("{}{last}", agents("a", 1, &second, |number| format!("b{number}"), 6)));
    first.reload_now.notify_one();
    first.topics("hub.agent.added.%23", 6).await;

    // From b1 the last one, a7, is the twelfth; from a1 it is the thirteenth.
    let twelve = ended(&second, &clock, "b1").await;
    assert_eq!(twelve["status"]["state"], "TASK_STATE_COMPLETED", "{twelve}");
    let thirteen = ended(&first, &clock, "a1").await;
    assert_eq!(thirteen["status"]["state"], "TASK_STATE_REJECTED", "{thirteen}");
    let (_, page) = first.get("/api/tasks?agent=a7", "ann").await;
    let states: Vec<&str> =
        page["items"].as_array().unwrap().iter().map(|item| item["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["rejected", "completed"], "{page}");
    let dropped = async { first.topics("dispatch.dropped.hops", 1).await };
    assert_eq!(passing(&clock, STEP, dropped).await, ["dispatch.dropped.hops"]);
    first.stop().await;
    second.stop().await;
}
