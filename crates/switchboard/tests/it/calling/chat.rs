//! `chat`: a conversation over a pipe, and over two runs with a file between them.

use serde_json::{Value, json};

use super::Fleet;
use super::terminal::Terminal;

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
        format!("artifact: echo\ntext:\n  {text}\n\ntask: {task}\ncontext: ID2\nstate: completed\n")
    };
    let expected = turn("one", "ID1") + &turn("-", "ID3");
    assert_eq!((text.code, fleet.stable(&text.stdout)), (Some(0), expected), "no prompt where no user types");
}

#[test]
fn a_task_that_is_gone_does_not_end_the_conversation() {
    let fleet = Fleet::new();
    fleet.workspace.run_with(&["chat", "probe", "--save", "talk.json"], "ask\n");
    let file = fleet.workspace.path().join("talk.json");
    let mut saved: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let context = saved["contextId"].clone();
    saved["taskId"] = json!("01a00000-0000-7000-8000-000000000000");
    std::fs::write(&file, saved.to_string()).unwrap();
    let run = fleet.workspace.run_with(&["chat", "probe", "--save", "talk.json", "--json"], "hello\n");
    assert!(run.stderr.contains("the task that was open is gone"), "{}", run.stderr);
    let turn: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(
        (&turn["task"]["status"]["state"], &turn["task"]["contextId"]),
        (&json!("TASK_STATE_COMPLETED"), &context)
    );
}

#[test]
fn nothing_that_is_typed_is_lost_without_a_word() {
    let fleet = Fleet::new();
    std::fs::write(fleet.workspace.path().join("in"), b"one\n\xff\nhello\n").unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_switchboard"))
        .args(["chat", "echo"])
        .current_dir(fleet.workspace.path())
        .env_clear()
        .stdin(std::fs::File::open(fleet.workspace.path().join("in")).unwrap())
        .output()
        .unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("error: line 2 of standard input cannot be said: it is not text (UTF-8)"), "{told}");

    let unsaved = fleet.workspace.run_with(&["chat", "echo", "--save", "not/there/talk.json"], "hello\n");
    assert_eq!((unsaved.code, unsaved.stdout.as_str()), (Some(1), ""), "nothing is said: {}", unsaved.stderr);
    assert_eq!(fleet.run(&["task", "list", "echo", "--json"]).json()["totalSize"], 1, "the one of the first chat");

    let helped = fleet.workspace.run_with(&["chat", "echo", "-o", "json"], "/help\n//etc/hosts\n/bogus\nnot said\n");
    assert_eq!(helped.code, Some(2), "{}", helped.stderr);
    assert!(helped.stderr.starts_with("/done ends the conversation"), "{}", helped.stderr);
    let lines: Vec<Value> = helped.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["task"]["artifacts"][0]["parts"], json!([{ "text": "/etc/hosts" }]));
    assert_eq!((lines.len(), &lines[1]["error"]["message"]), (2, &json!("there is no command /bogus")));
}

#[test]
fn ctrl_c_at_the_prompt_is_told_to_the_shell() {
    let fleet = Fleet::new();
    let mut terminal = Terminal::run(&fleet.workspace, &["chat", "echo"]);
    terminal.until("> ");
    terminal.say("/bogus");
    terminal.until("there is no command /bogus");
    terminal.interrupt();
    let (screen, code) = terminal.end();
    assert_eq!(code, Some(130), "{screen}");
}
