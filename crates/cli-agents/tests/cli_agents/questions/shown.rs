//! What a question shows of a call.

use serde_json::{Value, json};
use switchboard_cli_agents::adapters::ChoiceKind;

use super::{PROMPT_CHARACTERS, Questions};
use crate::harness::*;

/// What is shown of each end of a prompt that is not shown whole.
const EXCERPT_CHARACTERS: usize = 4_000;

#[test]
fn long_input_is_shown_in_part_and_of_a_long_command_both_ends() {
    let questions = Questions::new(&[("edit_first", ChoiceKind::Other)]);
    questions.change(|question| question.input = json!({"content": "ö".repeat(256 << 10)}));
    let data = question(&questions.asked());
    assert!(data.get("input").is_none());
    assert!(data["inputBeginning"].as_str().unwrap().ends_with("ö…"));

    let whole = format!("ö{}", "x".repeat(PROMPT_CHARACTERS - 1));
    questions.change(|question| (question.input, question.prompt) = (Value::Null, whole.clone()));
    let asked = questions.asked();
    assert!(status_text(&asked).starts_with(&format!("Approve: {whole}?\nAnswer y ")));
    assert!(question(&asked).get("omittedCharacters").is_none());

    let long = format!("begin{}; touch EVIL", "ö".repeat(PROMPT_CHARACTERS));
    let omitted = long.chars().count() - 2 * EXCERPT_CHARACTERS;
    questions.change(|question| question.prompt = long);
    let asked = questions.asked();
    let (begin, end) = ("ö".repeat(EXCERPT_CHARACTERS - 5), "ö".repeat(EXCERPT_CHARACTERS - 12));
    assert_eq!(
        status_text(&asked),
        format!(
            "Approve: begin{begin}\n  | «{omitted} characters left out»\n  | {end}; touch EVIL?\n\
             This is not all of it: {omitted} characters are left out, so a plain y is not taken. Answer allow \
             incomplete (this once), always incomplete (every Bash of this task) or n, with a reason if you like. It \
             also takes edit_first incomplete (edit_first)."
        )
    );
    let data = question(&asked);
    assert_eq!(data["omittedCharacters"], omitted);
    let ids: Vec<&str> =
        data["options"].as_array().unwrap().iter().map(|option| option["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["allow incomplete", "always incomplete", "deny", "edit_first incomplete"]);
}

#[test]
fn what_a_prompt_does_not_say_about_a_call_is_shown_with_it() {
    let questions = Questions::new(&[]);
    for (prompt, input, shown) in [
        ("Use Bash", json!({"command": "rm -rf ~"}), "Use Bash?\n  command: rm -rf ~"),
        ("mcp__x__y: harmless", json!({"query": "harmless", "script": "rm -rf ~"}), {
            "mcp__x__y: harmless?\n  script: rm -rf ~"
        }),
        ("Edit a.rs", json!({"file_path": "/p/a.rs", "old_string": "x", "new_string": "evil()\n}"}), {
            "Edit a.rs?\n  file_path: /p/a.rs\n  old_string: x\n  new_string: evil()\n  | }"
        }),
        ("Show files", json!({"command": "sh"}), "Show files?\n  command: sh"),
        ("Run ls", json!({"command": "ls"}), "Run ls?"),
        ("run: ls", json!({"command": "ls"}), "run: ls?"),
        ("ls", json!({"title": "ls"}), "ls?"),
        ("Run ls (List)", json!({"command": "ls"}), "Run ls (List)?\n  command: ls"),
        ("Run ls", json!({"command": "ls", "sandbox": "ls"}), "Run ls?\n  command: ls\n  sandbox: ls"),
        ("Run ls; rm x", json!({"command": "ls"}), "Run ls; rm x?\n  command: ls"),
        ("Please explain rm -rf ~", json!({"command": "rm -rf ~"}), {
            "Please explain rm -rf ~?\n  command: rm -rf ~"
        }),
        ("Which?\n- A: one\n- B", json!({"question": "Which?", "options": ["A", "B"]}), {
            "Which?\n  | - A: one\n  | - B?\n  question: Which?\n  options.0: A\n  options.1: B"
        }),
        ("Fix 2 files", json!({"files": 2}), "Fix 2 files?\n  files: 2"),
        ("Is it true", json!({"force": true}), "Is it true?\n  force: true"),
        (r#"mcp__x__y: {"n":1}"#, json!({"n": 1}), r#"mcp__x__y: {"n":1}?"#),
        ("Go", json!({}), "Go?"),
        ("Go", json!(null), "Go?"),
        ("Go", json!("rm -rf ~"), "Go?\n  input: rm -rf ~"),
        ("Go", json!({"a": {"b": [1, {}]}, "c": "", "d": " x"}), {
            "Go?\n  a.b.0: 1\n  a.b.1: {}\n  c: \"\"\n  d: \" x\""
        }),
        ("Go", json!({"a: ls\nb": "\u{202e}"}), "Go?\n  \"a: ls\\nb\": \\u{202e}"),
    ] {
        questions.change(|question| {
            question.tool = prompt.split([':', ' ']).next().unwrap().to_owned();
            (question.prompt, question.input) = (prompt.to_owned(), input.clone());
        });
        assert_eq!(questions.shown(), shown, "{prompt} {input}");
    }
}

#[test]
fn a_title_that_speaks_of_a_member_does_not_hide_it() {
    let questions = Questions::new(&[]);
    let command = "npm test # dangerouslyDisableSandbox must not be true here";
    let unsandboxed = json!({"command": command, "dangerouslyDisableSandbox": true});
    let removes = json!({"command": "rm -rf ~"});
    for (title, input, member) in [
        (format!("Bash: {command}").as_str(), &unsandboxed, "dangerouslyDisableSandbox: true"),
        ("List files. Not run, for reference only:\n- rm -rf ~: skipped", &removes, "command: rm -rf ~"),
        ("Show the git log\nrm -rf ~\nis what this avoids", &removes, "command: rm -rf ~"),
        ("Show help\nRun rm -rf ~ (example)", &removes, "command: rm -rf ~"),
        ("Show help\nBash: rm -rf ~", &removes, "command: rm -rf ~"),
        ("Run rm -rf ~\nis what this avoids", &removes, "command: rm -rf ~"),
        (r#"Explain {"command":"rm -rf ~"}"#, &removes, "command: rm -rf ~"),
    ] {
        questions.change(|question| (question.prompt, question.input) = (title.to_owned(), input.clone()));
        let shown = questions.shown();
        assert!(shown.lines().any(|line| line == format!("  {member}")), "{shown}");
    }
}

#[test]
fn members_share_the_room_of_the_prompt_and_what_is_left_out_counts() {
    let questions = Questions::new(&[]);
    let long = "x".repeat(PROMPT_CHARACTERS);
    let input = |input: Value| questions.change(|question| question.input = input);
    questions.change(|question| question.prompt = "Edit".to_owned());
    input(json!({"old": long, "new": format!("{long}; touch EVIL"), "more": 7}));
    let asked = questions.words();
    assert!(asked.contains("\n  old: xx") && asked.contains("\n  new: xx"), "{asked}");
    assert!(asked.contains("x; touch EVIL\n  more: 7\nThis is not all of it: "), "{asked}");
    assert!(asked.chars().count() < PROMPT_CHARACTERS + 1_000);
    input(json!({"old": &long[..PROMPT_CHARACTERS - "Editold: ".len()]}));
    assert!(!questions.is_incomplete());
    input(json!({"old": &long[..PROMPT_CHARACTERS - "Editold:".len()]}));
    assert!(questions.is_incomplete());
    input(json!(vec![0; 10_000]));
    let asked = questions.asked();
    assert!(status_text(&asked).lines().count() <= 1_002);
    assert!(question(&asked)["omittedCharacters"].as_u64().unwrap() >= 9_000);

    // What is left out of a prompt says nothing about members.
    let filler = "x ".repeat(PROMPT_CHARACTERS);
    questions.change(|question| question.prompt = format!("{filler} rm -rf ~ {filler}"));
    input(json!({"command": "rm -rf ~"}));
    assert!(questions.words().contains("\n  command: rm -rf ~\n"));
}

#[test]
fn long_labels_are_shown_whole_or_take_no_plain_yes() {
    let questions = Questions::new(&[("later", ChoiceKind::Other)]);
    let label = format!("{}and delete everything", "Wait ".repeat(100));
    let labels = |label: &str, tool: &str| {
        questions.change(|question| {
            question.choices[0].label = label.to_owned();
            question.tool = tool.to_owned();
        });
    };
    labels(&label, &label);
    let asked = questions.words();
    assert!(asked.contains(&format!("later ({label})")), "{asked}");
    assert!(asked.contains(&format!("every {label} of this task")), "{asked}");
    assert!(!questions.is_incomplete());
    labels(&label.repeat(10), "Bash");
    assert!(questions.is_incomplete());
    labels("later", &label.repeat(10));
    assert!(questions.is_incomplete());
}
