//! The declarations of real programs, against what these said.

use serde_json::{Value, json};
use switchboard_cli_agents::adapters::{Adapter, Ending, Exit, FailureKind, OrderError, Permission, Session, Step};

use super::{AIDER, GOOSE, QWEN, allowed, arguments, read, refused, with};
use crate::generic::{exited, failure, steps, text};
use crate::replay::Recording;

fn played(yaml: &str, recording: &str) -> Value {
    let (_, mut dialogue) = read(yaml).start(&allowed(|_| ())).unwrap();
    serde_json::to_value(Recording::open(recording).play(&mut *dialogue, &[]).steps).unwrap()
}

#[test]
fn goose_is_started_and_understood() {
    let goose = read(GOOSE);
    assert!(goose.about().capabilities.resume && goose.about().capabilities.chosen_session);
    let (launch, _) = goose.start(&allowed(|order| order.model = Some("m-1".to_owned()))).unwrap();
    let name = "--name=6f1c2a0e-0000-4000-8000-000000000001";
    assert_eq!(launch.args, ["run", "--output-format=stream-json", "--model", "m-1", name, "--text=fix it"]);
    assert_eq!(launch.env, [("GOOSE_MODE".to_owned(), "auto".to_owned())]);
    assert!(!launch.input);
    let resumed = arguments(&goose, |order| order.session = Session::Resume("s".to_owned()));
    assert_eq!(resumed, ["run", "--output-format=stream-json", "--resume", "--name=s", "--text=fix it"]);

    assert_eq!(
        played(GOOSE, "declared-goose-tool.txt"),
        json!([
            {"event": {"kind": "reasoning", "text": "a shell call"}},
            {"event": {"kind": "text", "text": "I will "}},
            {"event": {"kind": "text", "text": "look."}},
            {"event": {"kind": "text_end"}},
            {"event": {"kind": "tool_use", "id": "call_1", "tool": "developer__shell", "input": {"command": "ls"}}},
            {"event": {"kind": "notice", "text": "running ls"}},
            {"event": {"kind": "notice", "text": "half"}},
            {"event": {"kind": "tool_result", "id": "call_1", "tool": "developer__shell", "output": "a.txt\nb.txt",
                       "is_error": false}},
            {"event": {"kind": "tool_use", "id": "call_2", "tool": "developer__shell", "input": {"command": "rm /"}}},
            {"event": {"kind": "tool_result", "id": "call_2", "tool": "developer__shell",
                       "output": "refused by the user", "is_error": true}},
            {"event": {"kind": "text", "text": "Two files."}},
            {"event": {"kind": "text_end"}},
            {"finish": {"done": {"answer": "Two files."}}},
        ])
    );
    assert_eq!(
        played(GOOSE, "declared-goose-error.txt"),
        json!([
            {"event": {"kind": "text", "text": "Let me"}},
            {"event": {"kind": "text_end"}},
            {"finish": {"failed": {"kind": "reported", "message": "Authentication failed: 401"}}},
        ])
    );
}

#[test]
fn qwen_code_is_started_and_understood() {
    let qwen = read(QWEN);
    assert!(qwen.about().capabilities.resume && !qwen.about().capabilities.chosen_session);
    let args = arguments(&qwen, |order| {
        order.prompt = "--yolo".to_owned();
        order.args = vec!["--debug".to_owned()];
    });
    assert_eq!(args, ["--output-format=stream-json", "--approval-mode=yolo", "--debug", "--prompt=--yolo"]);
    let denied = arguments(&qwen, |order| order.permissions.default = Permission::Deny);
    assert!(denied.contains(&"--approval-mode=plan".to_owned()), "{denied:?}");
    let error = refused(&qwen, |order| order.permissions.default = Permission::Ask).to_string();
    assert_eq!(error, "permissions.default: Qwen Code cannot be run with ask: write allow or deny");
    let error = refused(&qwen, |order| order.permissions.deny = vec!["shell".to_owned()]).to_string();
    assert!(error.contains("single tools cannot be allowed or denied"), "{error}");
}

#[test]
fn what_qwen_code_said_is_understood() {
    let input = json!({"command": "echo hello", "description": "say hello", "is_background": false});
    assert_eq!(
        played(QWEN, "declared-qwen-tool.txt"),
        json!([
            {"event": {"kind": "init", "session": "646a479d-d500-4ea0-9059-60a44dddfb2c", "model": "fake-model"}},
            {"event": {"kind": "tool_use", "id": "call_1", "tool": "run_shell_command", "input": input}},
            {"event": {"kind": "tool_result", "id": "call_1", "tool": "run_shell_command", "output": "hello",
                       "is_error": false}},
            {"event": {"kind": "text", "text": "The tool has answered."}},
            {"event": {"kind": "text_end"}},
            {"event": {"kind": "usage", "scope": "session", "input_tokens": 200, "cached_tokens": 0,
                       "output_tokens": 14, "reasoning_tokens": 0}},
            {"finish": {"done": {"answer": "The tool has answered."}}},
        ])
    );
    let last = |recording| played(QWEN, recording).as_array().unwrap().last().unwrap()["finish"].clone();
    assert_eq!(last("declared-qwen-resume.txt"), json!({"done": {"answer": "Hello there."}}));
    for (recording, kind, message) in [
        ("declared-qwen-refused.txt", "refused", "run_shell_command"),
        ("declared-qwen-400.txt", "reported", "[API Error: 400 bad model]"),
        ("declared-qwen-limit.txt", "limit", "Reached max session turns"),
    ] {
        assert_eq!(last(recording), json!({"failed": {"kind": kind, "message": message}}), "{recording}");
    }
    let unknown = &last("declared-qwen-unknown.txt")["failed"];
    assert_eq!(unknown["kind"], "unknown_session");
    let message = unknown["message"].as_str().unwrap();
    assert!(message.starts_with("Qwen Code exited with code 1: No saved session found with ID"), "{message}");
}

#[test]
fn what_an_inner_agent_says_is_not_for_the_caller() {
    assert_eq!(
        played(QWEN, "declared-qwen-inner.txt"),
        json!([
            {"event": {"kind": "init", "session": "s-1", "model": "qwen3-coder-plus"}},
            {"event": {"kind": "reasoning", "text": "one file"}},
            {"event": {"kind": "text", "text": "Reading it."}},
            {"event": {"kind": "text_end"}},
            {"event": {"kind": "tool_use", "id": "t1", "tool": "agent", "input": {"path": "a.txt"}}},
            {"event": {"kind": "tool_result", "id": "t1", "tool": "agent", "output": "hello", "is_error": false}},
            {"event": {"kind": "notice", "text": "a warning that is no JSON"}},
            {"event": {"kind": "text", "text": "It says hello."}},
            {"event": {"kind": "text_end"}},
            {"event": {"kind": "usage", "scope": "session", "input_tokens": 1850, "cached_tokens": 800,
                       "output_tokens": 28, "reasoning_tokens": 0}},
            {"finish": {"done": {"answer": "It says hello."}}},
        ])
    );
}

#[test]
fn an_end_without_words_is_looked_up() {
    let yaml = with("exits: [{ code: 41, kind: notLoggedIn }, { stderr: too long, kind: limit }]");
    let ended = |code: i32, stderr: &str, interrupted: bool| {
        let (_, mut dialogue) = read(&yaml).start(&allowed(|_| ())).unwrap();
        steps(&mut *dialogue, |dialogue, steps| {
            if interrupted {
                dialogue.interrupt(steps);
            }
            dialogue.ended(&Exit { stderr: stderr.to_owned(), ..exited(code) }, steps);
        })
    };
    assert_eq!(failure(&ended(41, "", false)).0, FailureKind::NotLoggedIn);
    assert_eq!(failure(&ended(1, "context is too long\nsee the log", false)).0, FailureKind::Limit);
    assert_eq!(failure(&ended(1, "", false)).0, FailureKind::Reported);
    assert_eq!(failure(&ended(41, "", true)).0, FailureKind::Interrupted);
    assert_eq!(ended(0, "too long", false), [Step::Finish(Ending::Done { answer: None })]);
}

#[test]
fn aider_speaks_text_and_its_exit_code_is_its_result() {
    let aider = read(AIDER);
    assert_eq!(aider.about().binary.version_args, ["--version"]);
    let (launch, mut dialogue) = aider.start(&allowed(|_| ())).unwrap();
    assert_eq!(launch.args, ["--yes-always", "--no-stream", "--no-pretty", "--message=fix it"]);
    let told = steps(&mut *dialogue, |dialogue, steps| dialogue.line("\u{1b}[1mApplied edit\u{1b}[0m", steps));
    assert_eq!(told, [text("Applied edit\n")]);
    let ended = steps(&mut *dialogue, |dialogue, steps| dialogue.ended(&exited(0), steps));
    assert_eq!(ended.last(), Some(&Step::Finish(Ending::Done { answer: Some("Applied edit".to_owned()) })));
    let (_, mut dialogue) = aider.start(&allowed(|_| ())).unwrap();
    let ended = steps(&mut *dialogue, |dialogue, steps| dialogue.ended(&exited(1), steps));
    assert_eq!(failure(&ended), (FailureKind::Reported, "Aider exited with code 1"));

    let error = refused(&aider, |order| order.permissions.default = Permission::Ask).to_string();
    assert_eq!(error, "permissions.default: Aider cannot be run with ask: write allow");
    let error = refused(&aider, |order| order.session = Session::Resume("s".to_owned())).to_string();
    assert_eq!(error, "Aider cannot take up a conversation again: begin a new one");
    let error = refused(&aider, |order| order.effort = Some("high".to_owned())).to_string();
    assert_eq!(error, "Aider has no argument for effort: remove effort");
    assert_eq!(refused(&aider, |order| order.prompt = String::new()), OrderError::NoPrompt);
}

#[test]
fn the_examples_in_the_documentation_can_be_read() {
    let page = include_str!("../../../../../docs/cli-agents/programs.md");
    let examples = page.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let titles = examples
        .filter(|example| example.starts_with("# adapters/"))
        .map(|example| read(example).about().title.clone());
    assert_eq!(titles.collect::<Vec<_>>(), ["Aider", "goose"]);
}
