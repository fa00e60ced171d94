//! `task list --all` and `task cancel ID`: what an operator sees and does about tasks that block each other.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::program::Workspace;
use crate::server::Server;

/// Asks, and ends once it is answered.
const PROGRAM: &str = r#"
read -r prompt
printf '{"kind":"approval_required","request":"r1","tool":"Bash","input":{"command":"ls"},"prompt":"Use Bash"}\n'
read -r answer
printf '{"kind":"done","answer":"ok"}\n'
"#;

/// Longer than all of it takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn workspace() -> Workspace {
    let path = std::env::var("PATH").unwrap();
    let workspace = Workspace::new().file("program.sh", PROGRAM).variable("PATH", &path);
    let program = workspace.path().join("program.sh").display().to_string();
    let agent = format!(
        "agents:\n  - {{ name: coder, cli: generic, command: [sh, {program:?}], output: jsonl, input: stdin, \
         approval: {{ events: true }}, cwd: ./work }}\n  - {{ name: probe, builtin: probe }}\n"
    );
    std::fs::create_dir(workspace.path().join("work")).unwrap();
    workspace.file("agents.yaml", agent)
}

fn key(workspace: &Workspace, name: &str) -> (String, String) {
    let made = workspace.run(&["keys", "create", "--name", name, "-o", "json"]).json();
    let text = |name: &str| made["key"][name].as_str().unwrap().to_owned();
    (text("id"), text("secret"))
}

fn begin(server: &Server, agent: &str, text: &str, key: &str) -> String {
    let body = json!({
        "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": text }] },
        "configuration": { "returnImmediately": true },
    });
    let answer = server.post(&format!("/a2a/{agent}/message:send"), key, &body.to_string()).json();
    answer["task"]["id"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// The live tasks, once they are as the test waits for.
fn listed(workspace: &Workspace, is_so: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let began = Instant::now();
    loop {
        let listed = workspace.run(&["task", "list", "--all", "-o", "json"]).json();
        let tasks = listed["tasks"].as_array().unwrap().clone();
        if is_so(&tasks) {
            return tasks;
        }
        assert!(began.elapsed() < PATIENCE, "{tasks:?}");
    }
}

#[test]
fn an_operator_finds_the_task_that_blocks_a_repository_and_stops_it() {
    let workspace = workspace();
    let ((ann, ann_key), (bob, bob_key)) = (key(&workspace, "ann"), key(&workspace, "bob"));
    let server = Server::start(&workspace);
    let first = begin(&server, "coder", "rename\nthe \u{1b}[31mmodule", &ann_key);
    listed(&workspace, |tasks| tasks[0]["state"] == "input-required");
    let second = begin(&server, "coder", "add a test", &bob_key);
    // What blocks it is known a moment before the status that says so is stored.
    let is_blocked = |task: &Value| task["state"] == "working" && task.get("blockedBy").is_some();
    let tasks = listed(&workspace, |tasks| tasks.len() == 2 && is_blocked(&tasks[1]));

    assert_eq!((&tasks[0]["id"], &tasks[0]["caller"]), (&json!(first), &json!(ann)));
    assert_eq!(
        (&tasks[1]["id"], &tasks[1]["caller"], &tasks[1]["agent"]),
        (&json!(second), &json!(bob), &json!("coder"))
    );
    assert_eq!((&tasks[1]["state"], &tasks[1]["text"]), (&json!("working"), &json!("add a test")));
    let blocker = &tasks[1]["blockedBy"];
    assert_eq!((&blocker["taskId"], &blocker["caller"]), (&json!(first), &json!(ann)));
    assert!(blocker["asksSince"].is_string() && blocker["since"].is_string(), "{blocker}");
    assert_eq!(blocker["cancel"], format!("switchboard task cancel {first}"));
    assert_eq!(blocker["answer"], format!("switchboard send coder --task-id {first} ANSWER"));

    // The caller of the waiting task learns which agent, and nothing of the other caller.
    let waiting = server.get(&format!("/a2a/coder/tasks/{second}"), &bob_key).json().to_string();
    assert!(waiting.contains("Waiting: agent coder works in this repository since"), "{waiting}");
    assert!(!waiting.contains(&first) && !waiting.contains(&ann), "{waiting}");

    let text = workspace.run(&["task", "list", "--all"]);
    let lines: Vec<&str> = text.stdout.lines().collect();
    assert!(lines[0].starts_with("TASK ") && lines[0].ends_with("TEXT"), "{}", text.stdout);
    assert!(lines[1].contains(&first) && lines[1].ends_with("rename the [31mmodule"), "{}", text.stdout);
    assert!(lines[2].contains(&format!("{first} (coder, asks for ")), "{}", text.stdout);
    let folder = workspace.path().display().to_string();
    let elsewhere = workspace.run(&["task", "list", "--all", "--workspace", &folder]);
    let answers = elsewhere.stdout.lines().find_map(|line| line.split_once("answers with: switchboard ")).unwrap().1;
    assert_eq!(answers, format!("send --workspace {folder} coder --task-id {first} ANSWER"));
    let stops = lines.last().unwrap().split("is stopped with: switchboard ").nth(1).unwrap();
    assert_eq!(
        workspace.run(&["task", "list", "--all", "--status", "working", "-o", "json"]).json()["tasks"]
            .as_array()
            .map(Vec::len),
        Some(1)
    );

    // As it is printed.
    let stopped = workspace.run(&stops.split_whitespace().collect::<Vec<_>>());
    assert_eq!((stopped.code, stopped.stdout), (Some(0), format!("task: {first}\nstate: canceled\n")));
    let tasks = listed(&workspace, |tasks| tasks.len() == 1 && tasks[0]["state"] == "input-required");
    assert_eq!((&tasks[0]["id"], tasks[0].get("blockedBy")), (&json!(second), None), "the next one has the repository");
    let stopped = workspace.run(&["task", "cancel", &second, "-o", "json"]).json();
    assert_eq!(stopped, json!({ "id": second, "state": "canceled" }));
    assert_eq!(workspace.run(&["task", "list", "--all"]).stdout, "there are no live tasks\n");
    server.stop();
}

#[test]
fn a_task_that_cannot_be_stopped_says_why_and_what_to_do() {
    let workspace = workspace();
    let nothing = workspace.run(&["task", "list", "--all"]);
    assert!(nothing.code == Some(1) && nothing.stderr.contains("there is no data in"), "{}", nothing.stderr);
    let server = Server::start(&workspace);
    let ended = server.message("probe", "send", "done", "").json()["task"]["id"].as_str().unwrap().to_owned();
    for (id, problem, code) in [
        (ended.as_str(), format!("task {ended} cannot be canceled: it is already completed"), "TaskNotCancelableError"),
        ("0190", "no task 0190".to_owned(), "TaskNotFoundError"),
    ] {
        let refused = workspace.run(&["task", "cancel", id]);
        let next = "next: switchboard task list --all shows those that have not ended\n";
        assert_eq!((refused.code, refused.stderr), (Some(1), format!("error: {problem}\n{next}")));
        assert!(refused.stdout.is_empty());
        // A command that is printed finds the same server.
        let data = workspace.path().join(".switchboard").display().to_string();
        let refused = workspace.run(&["task", "cancel", "--data-dir", &data, id]);
        let next = format!("next: switchboard task list --data-dir {data} --all shows those that have not ended\n");
        assert_eq!((refused.code, refused.stderr), (Some(1), format!("error: {problem}\n{next}")));
        let refused = workspace.run(&["task", "cancel", id, "-o", "json"]);
        let error = &refused.json()["error"];
        assert_eq!((refused.code, &error["code"], &error["message"]), (Some(1), &json!(code), &json!(problem)));
    }
    server.stop();
    for command in [&["task", "list", "--all"][..], &["task", "cancel", &ended]] {
        let refused = workspace.run(command);
        assert_eq!(refused.code, Some(1));
        assert!(refused.stderr.contains("no server runs on the data directory"), "{}", refused.stderr);
        assert!(refused.stderr.contains("next: switchboard serve starts one"), "{}", refused.stderr);
    }
}
