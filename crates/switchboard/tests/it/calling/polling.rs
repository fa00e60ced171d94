//! Agents without streams are asked again and again, as often as is wished, until there is something to say.

use std::time::Duration;

use serde_json::{Value, json};

use super::{answering, card};
use crate::program::Workspace;
use crate::server::timed;

/// An agent without streams, whose task goes through these states, one a look.
fn slow(states: &'static [&'static str]) -> String {
    let mut left = states.iter();
    answering(move |here, heard| {
        if heard.path.ends_with("agent-card.json") {
            return (200, card(here, json!({ "capabilities": { "streaming": false } })));
        }
        let state = left.next().unwrap_or_else(|| states.last().unwrap());
        let task = json!({ "id": "t1", "contextId": "c1", "status": { "state": state } });
        let asked: Value = serde_json::from_str(&heard.body).unwrap();
        let result = if asked["method"] == "SendMessage" { json!({ "task": task }) } else { task };
        (200, json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result }))
    })
}

const WORKING: &str = "TASK_STATE_WORKING";

#[test]
fn a_task_is_looked_at_until_it_ends_or_asks() {
    let workspace = Workspace::new();
    for (last, state) in [("TASK_STATE_COMPLETED", "completed"), ("TASK_STATE_INPUT_REQUIRED", "input-required")] {
        let states: &'static [&str] =
            Box::leak(Box::new(["TASK_STATE_SUBMITTED", "TASK_STATE_UNSPECIFIED", WORKING, last]));
        let (run, took) = timed(|| workspace.run(&["send", &slow(states), "hi", "--poll-interval", "100ms"]));
        assert_eq!(run.stdout, format!("task: t1\ncontext: c1\nstate: {state}\n"), "{}", run.stderr);
        // A wait is a fifth shorter or longer, so that many callers do not ask at the same time.
        assert!(took >= Duration::from_millis(240), "three looks, a wait before each: {took:?}");
        let (run, _) = timed(|| {
            workspace.run(&["task", "get", &slow(states), "t1", "--wait", "--poll-interval", "20ms", "--json"])
        });
        assert_eq!((run.code, &run.json()["status"]["state"]), (Some(0), &json!(last)), "{}", run.stderr);
    }
}

#[test]
fn time_that_is_up_ends_it_and_streams_that_are_not_there_are_lines_nonetheless() {
    let workspace = Workspace::new();
    let run =
        workspace.run(&["send", &slow(&[WORKING]), "hi", "--poll-interval", "20ms", "--timeout", "500ms", "--json"]);
    assert_eq!((run.code, &run.json()["error"]["code"]), (Some(5), &json!("A2ACLI_ERR_TIMEOUT")), "{}", run.stderr);
    let ended = slow(&[WORKING, "TASK_STATE_COMPLETED"]);
    let run = workspace.run(&["send", &ended, "hi", "--stream", "-o", "json", "--poll-interval", "20ms"]);
    let lines: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.last().unwrap()["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED", "{}", run.stdout);
}
