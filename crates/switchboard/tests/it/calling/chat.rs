//! `chat`: a conversation over a pipe, and over two runs with a file between them.

use serde_json::{Value, json};

use super::Fleet;

#[test]
fn a_conversation_goes_on_from_line_to_line_and_from_run_to_run() {
    let fleet = Fleet::new();
    let asked = fleet.workspace.run_with(&["chat", "guide", "--save", "talk.json"], "hello\n");
    assert_eq!(asked.code, Some(0), "{}", asked.stderr);
    assert!(asked.stdout.ends_with("state: input-required\n"), "{}", asked.stdout);
    let file = fleet.workspace.path().join("talk.json");
    let saved: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(saved["agent"], format!("http://{}/a2a/guide", fleet.server.address));

    let named = fleet.workspace.run_with(&["chat", "guide", "--save", "talk.json"], "Ada\n/task\n");
    assert!(named.stdout.contains("Ada"), "it knows what it has asked: {}", named.stdout);
    let context = format!("context: {}\n", saved["contextId"].as_str().unwrap());
    assert!(named.stderr.contains(&context), "{}", named.stderr);
    let other = fleet.run(&["chat", "echo", "--save", "talk.json", "--json"]);
    assert!(other.code == Some(1) && other.stdout.contains("holds a conversation with"), "{}", other.stdout);
    fleet.workspace.run_with(&["chat", "guide", "--save", "talk.json"], "/done\n");
    assert!(!file.exists(), "what is done is forgotten");
}

#[test]
fn after_a_task_has_ended_the_next_one_is_in_the_same_context() {
    let fleet = Fleet::new();
    let run = fleet.workspace.run_with(&["chat", "probe", "--json"], "hello\n\nask\nblue\n/quit\nnot said\n");
    let turns: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let states: Vec<&Value> = turns.iter().map(|turn| &turn["task"]["status"]["state"]).collect();
    assert_eq!(
        json!(states),
        json!(["TASK_STATE_COMPLETED", "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_COMPLETED"]),
        "{}",
        run.stdout
    );
    let ids: Vec<&Value> = turns.iter().map(|turn| &turn["task"]["id"]).collect();
    assert!(ids[0] != ids[1] && ids[1] == ids[2]);
    assert!(turns.iter().all(|turn| turn["task"]["contextId"] == turns[0]["task"]["contextId"]));
    let text = fleet.workspace.run_with(&["chat", "echo"], "one\n-\n");
    let turn = |text: &str, task: &str| {
        format!("artifact: echo\ntext:\n{text}\n\ntask: {task}\ncontext: ID2\nstate: completed\n")
    };
    let expected = turn("one", "ID1") + &turn("-", "ID3");
    assert_eq!((text.code, fleet.stable(&text.stdout)), (Some(0), expected), "no prompt where nobody types");
}
