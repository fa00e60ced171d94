//! What of a task is shown as its answer: nothing twice, a question always, and in a chat only what is new.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::{Heard, answering, card};
use crate::program::{Run, Workspace};

/// An agent that answers every message with the next of these results.
fn scripted(results: Vec<Value>) -> String {
    let next = AtomicUsize::new(0);
    answering(move |here, heard: &Heard| {
        if heard.path.ends_with("agent-card.json") {
            return (200, card(here, json!({})));
        }
        let result = results.get(next.fetch_add(1, Ordering::Relaxed)).cloned().unwrap_or_default();
        let asked: Value = serde_json::from_str(&heard.body).unwrap();
        (200, json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "task": result } }))
    })
}

fn task(state: &str, artifacts: Value, said: Value) -> Value {
    let message = json!({ "messageId": "m", "role": "ROLE_AGENT", "parts": said });
    let message = if said.is_null() { said } else { message };
    json!({
        "id": "t", "contextId": "c", "artifacts": artifacts,
        "status": { "state": format!("TASK_STATE_{state}"), "message": message },
    })
}

fn artifact(parts: Value) -> Value {
    json!([{ "artifactId": "a", "parts": parts }])
}

fn sent(task: Value) -> Run {
    let run = Workspace::new().run(&["send", &scripted(vec![task]), "hi"]);
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    run
}

#[test]
fn a_message_that_repeats_an_artifact_is_not_shown_again() {
    for (made, said, is_shown) in [
        ("hello", "hello", false),
        ("a\nb", "a b", false),
        ("I look.\n\nFixed both.", "Fixed both.", false),
        ("hello", "hello\n\nThe whole answer is in the artifact \"echo\".", false),
        ("one two three", "one two…\n(The whole answer is in the artifact assistant-response.)", false),
        ("piano", "no", true),
        ("", "hello", true),
        ("the poem", "I wrote it", true),
        ("ab", "abc", true),
    ] {
        let run = sent(task("COMPLETED", artifact(json!([{ "text": made }])), json!([{ "text": said }])));
        assert_eq!(run.stdout.contains("message:\n"), is_shown, "{made:?} {said:?}: {}", run.stdout);
    }
}

#[test]
fn a_question_is_shown_although_an_artifact_says_something_like_it() {
    let question = "Approve: rm -rf . /build?\nAnswer y, always or n.";
    let forged = "Approve: rm -rf ./build?\nAnswer y, always or n.";
    let pointing = format!("{forged}\n(The whole answer is in the artifact \";rm -rf ~");
    for (state, said, is_shown) in [
        ("INPUT_REQUIRED", question, true),
        ("AUTH_REQUIRED", question, true),
        ("INPUT_REQUIRED", &pointing, true),
        ("COMPLETED", forged, false),
    ] {
        let run = sent(task(state, artifact(json!([{ "text": forged }])), json!([{ "text": said }])));
        assert_eq!(run.stdout.contains("message:\n"), is_shown, "{state} {said:?}: {}", run.stdout);
    }
}

#[test]
fn the_options_of_an_open_question_are_shown() {
    let data = |value: Value| json!([{ "text": "Go?" }, { "data": value }]);
    let offers = json!([{ "id": "allow", "label": "Allow\u{1b} once" }, "later", { "id": "x", "more": 1 }]);
    let asked = sent(task("INPUT_REQUIRED", json!([]), data(json!({ "options": offers, "tool": "t" }))));
    assert!(asked.stdout.contains("options:\n  allow  Allow once\n  later\n  x\n\n"), "{}", asked.stdout);
    // Without what a terminal does not show, these would be a yes.
    let hidden = json!([" y", { "id": "y\u{a0}" }, "\u{202e}y", "a\nb", "", "later"]);
    let asked = sent(task("INPUT_REQUIRED", json!([]), data(json!({ "options": hidden }))));
    assert!(asked.stdout.contains("options:\n  later\n\n"), "{}", asked.stdout);
    let commands: Vec<&str> = asked.stderr.lines().filter(|line| line.contains("--task-id t ")).collect();
    assert!(matches!(commands[..], [command] if command.ends_with("--task-id t later")), "{}", asked.stderr);
    for (state, value) in [("COMPLETED", json!({ "options": offers })), ("INPUT_REQUIRED", json!({ "options": 7 }))] {
        let run = sent(task(state, json!([]), data(value)));
        assert!(!run.stdout.contains("options:"), "{state}: {}", run.stdout);
    }
}

#[test]
fn a_chat_shows_only_what_is_new_of_an_artifact() {
    let file = json!({ "raw": "cmVwb3J0", "filename": "r.txt", "mediaType": "text/plain" });
    let one = json!({ "text": "one" });
    for (parts, shown) in [
        (json!([{ "text": "one\n\ntwo" }]), "artifact: a\ntext:\n  two\n\ntask: t\n"),
        (json!([{ "text": "one\n" }]), "task: t\n"),
        (json!([{ "text": "another" }]), "artifact: a\ntext:\n  another\n\ntask: t\n"),
        (json!([one, file]), "artifact: a\nfile: r.txt, text/plain, 6 bytes\ntask: t\n"),
    ] {
        let first = task("INPUT_REQUIRED", artifact(json!([one])), Value::Null);
        let agent = scripted(vec![first, task("COMPLETED", artifact(parts.clone()), Value::Null)]);
        let run = Workspace::new().run_with(&["chat", &agent], "go\non\n");
        let first = "artifact: a\ntext:\n  one\n\ntask: t\ncontext: c\nstate: input-required\n";
        let expected = format!("{first}{shown}context: c\nstate: completed\n");
        assert_eq!((run.code, run.stdout.as_str()), (Some(0), expected.as_str()), "{parts}: {}", run.stderr);
    }
    // Another task may have artifacts of the same name.
    let again = || task("COMPLETED", artifact(json!([one])), Value::Null);
    let run = Workspace::new().run_with(&["chat", &scripted(vec![again(), again()])], "go\non\n");
    assert_eq!(run.stdout.matches("text:\n  one\n").count(), 2, "{}", run.stdout);
}
