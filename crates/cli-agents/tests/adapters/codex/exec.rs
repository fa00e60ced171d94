//! Recordings of `codex exec --json`.

use serde_json::json;
use switchboard_cli_agents::adapters::{Ending, Event, Exit, FailureKind, Permission, Scope, Step, Steps};

use super::{exec, feed, order, play, resuming, start};
use crate::replay::Recording;

const THREAD: &str = "01a1dd3e-aaea-7493-8cfb-246a1fe694fc";

#[test]
fn every_recording_is_told_as_it_was() {
    for name in [
        "429-exhausted",
        "401",
        "500-exhausted",
        "500-then-ok",
        "command",
        "command-100kB",
        "command-nonzero",
        "command-nosandbox",
        "command-readonly",
        "endpoint-dead",
        "endpoint-hang",
        "file-change",
        "mcp-refused",
        "plain",
        "reasoning",
        "resume-1",
        "resume-2",
        "resume-3-sigkill",
        "resume-4-after-kill",
        "resume-5-after-orphan-killed",
        "resume-unknown",
        "resume-unknown-trace",
        "sigint-stream",
        "sigterm-tool",
        "stdin-prompt",
        "stream-cut",
        "turn-failed-400",
        "turn-failed-event",
    ] {
        let played = play(&format!("codex-exec-{name}.txt"), exec(), &[]);
        insta::assert_snapshot!(format!("exec-{name}"), played.listed());
    }
}

#[test]
fn the_prompt_goes_in_and_the_input_is_closed_or_it_would_wait_for_more() {
    let recording = Recording::open("codex-exec-stdin-prompt.txt");
    let played = recording.play(exec().as_mut(), &[]);
    assert_eq!(played.steps[0], Step::Write(recording.written()[0].to_owned()));
    assert_eq!(played.steps[1], Step::CloseInput);
    assert_eq!(played.answer(), "Hello from fake LLM");
}

#[test]
fn an_item_called_error_is_a_warning_and_an_error_is_not_the_end() {
    let played = play("codex-exec-plain.txt", exec(), &[]);
    assert!(played.notices()[0].starts_with("Model metadata for `fake-model` not found"));
    assert_eq!(played.texts(), ["Hello from fake LLM"]);

    let played = play("codex-exec-429-exhausted.txt", exec(), &[]);
    assert!(played.notices()[1].starts_with("Reconnecting... 1/1"));
    assert_eq!(played.failure(), (FailureKind::Reported, "exceeded retry limit, last status: 429 Too Many Requests"));

    // A dead endpoint is tried for ever: nothing but notices, until the operator or the caller ends it.
    let played = play("codex-exec-endpoint-dead.txt", exec(), &[]);
    assert_eq!(played.notices().len(), 4);
    assert_eq!(played.failure(), (FailureKind::NoResult, "codex was ended by signal 15"));
}

#[test]
fn a_command_that_fails_is_a_failed_call_and_no_failed_turn() {
    let played = play("codex-exec-command-nonzero.txt", exec(), &[]);
    let call = |event: &&&Event| matches!(event, Event::ToolUse { .. } | Event::ToolResult { .. });
    let events = played.events();
    let calls: Vec<&&Event> = events.iter().filter(call).collect();
    let [Event::ToolUse { id, tool, input }, Event::ToolResult { id: same, tool: again, output, is_error }] =
        calls.as_slice()
    else {
        panic!("{calls:?}");
    };
    assert_eq!((id, tool.as_str()), (same, again.as_str()));
    assert_eq!((tool.as_str(), output.as_str(), *is_error), ("shell", "to-stderr\n", true));
    assert_eq!(input["command"], "/bin/bash -lc 'echo to-stderr >&2; exit 3'");
    assert!(played.answer().starts_with("Done."));
}

#[test]
fn what_the_read_only_sandbox_refuses_shows_only_in_the_answer() {
    let played = play("codex-exec-command-readonly.txt", exec(), &[]);
    assert!(!played.events().iter().any(|event| matches!(event, Event::ToolUse { .. })));
    assert!(played.answer().contains("Read-only file system"));
}

#[test]
fn a_line_of_102_kb_is_told_whole() {
    let played = play("codex-exec-command-100kB.txt", exec(), &[]);
    let output = played.events().into_iter().find_map(|event| match event {
        Event::ToolResult { output, .. } => Some(output.len()),
        _ => None,
    });
    assert_eq!(output, Some(101_000));
}

#[test]
fn changed_files_are_named_once_they_are_changed() {
    let played = play("codex-exec-file-change.txt", exec(), &[]);
    let changed = Event::FilesChanged { paths: vec!["/home/agent/project/two.txt".to_owned()] };
    let events = played.events();
    let at = events.iter().position(|event| **event == changed).unwrap();
    assert!(matches!(events[at - 1], Event::ToolResult { tool, is_error: false, .. } if tool == "apply_patch"));
}

#[test]
fn usage_counts_from_the_beginning_of_the_conversation() {
    for (name, input_tokens) in [("codex-exec-resume-1.txt", 11), ("codex-exec-resume-2.txt", 22)] {
        let played = play(name, exec(), &[]);
        let init = played.events()[0].clone();
        assert_eq!(init, Event::Init { session: Some(THREAD.to_owned()), model: Some("fake-model".to_owned()) });
        let usage = played.events().into_iter().find_map(|event| match event {
            Event::Usage(usage) => Some(*usage),
            _ => None,
        });
        let usage = usage.unwrap();
        assert_eq!((usage.scope, usage.input_tokens), (Scope::Session, input_tokens));
    }
}

#[test]
fn a_conversation_that_cannot_be_taken_up_says_why() {
    let unknown = "01a1dd03-0000-7be3-a9de-ed98f437e756";
    let resumed = |id: &str| start(&resuming(id, order(Permission::Allow))).1;
    for name in ["codex-exec-resume-unknown.txt", "codex-exec-resume-unknown-trace.txt"] {
        let played = play(name, resumed(unknown), &[]);
        let (kind, message) = played.failure();
        assert_eq!(kind, FailureKind::UnknownSession);
        assert!(message.contains("no rollout found for thread id"), "{message}");
    }
    // The process of an earlier turn lives on and holds it: it is not unknown, and must not be begun anew.
    let played = play("codex-exec-resume-4-after-kill.txt", resumed(THREAD), &[]);
    let (kind, message) = played.failure();
    assert_eq!(kind, FailureKind::Reported);
    assert!(message.contains("another codex process"), "{message}");
    assert_eq!(play("codex-exec-resume-5-after-orphan-killed.txt", resumed(THREAD), &[]).answer(), "resumed at last");
    // A new conversation in its place would have forgotten everything.
    let played = play("codex-exec-plain.txt", resumed(unknown), &[]);
    assert_eq!(played.failure().0, FailureKind::UnknownSession);
    assert!(played.texts().is_empty());
}

#[test]
fn failures_say_what_they_are_about() {
    for (name, kind, message) in [
        ("turn-failed-400", FailureKind::Reported, "fake 400"),
        (
            "turn-failed-event",
            FailureKind::Limit,
            "Codex ran out of room in the model's context window. Start a new thread or clear earlier history before retrying.",
        ),
        (
            "500-exhausted",
            FailureKind::Reported,
            "We’re currently experiencing high demand, which may cause temporary errors.",
        ),
        (
            "stream-cut",
            FailureKind::Reported,
            "stream disconnected before completion: stream closed before response.completed",
        ),
        (
            "401",
            FailureKind::NotLoggedIn,
            "unexpected status 401 Unauthorized: fake 401, url: http://127.0.0.1:18999/v1/responses; run `codex login` as the user who runs it",
        ),
    ] {
        let played = play(&format!("codex-exec-{name}.txt"), exec(), &[]);
        assert_eq!(played.failure(), (kind, message), "{name}");
    }
    let mut dialogue = exec();
    let rejected = |attempt: u32| {
        let error = "unexpected status 401 Unauthorized: no, url: http://127.0.0.1:1";
        json!({"type": "error", "message": format!("Reconnecting... {attempt}/5 ({error})")}).to_string()
    };
    let item =
        json!({"type": "item.completed", "item": {"id": "1", "type": "agent_message", "text": "Hi"}}).to_string();
    for line in [rejected(1), item, rejected(1)] {
        let steps = feed(dialogue.as_mut(), &line);
        assert!(
            !steps.iter().any(|step| matches!(step, Step::Finish(_))),
            "one may be a token that expired: {steps:?}"
        );
    }
    let steps = feed(dialogue.as_mut(), &rejected(2));
    let Some(Step::Finish(Ending::Failed(failure))) = steps.last() else { panic!("{steps:?}") };
    let expected = "unexpected status 401 Unauthorized: no, url: http://127.0.0.1:1; run `codex login` as the user who \
                    runs it";
    assert_eq!((failure.kind, failure.message.as_str()), (FailureKind::NotLoggedIn, expected));
    let mut dialogue = exec();
    let steps = feed(
        dialogue.as_mut(),
        r#"{"type":"turn.failed","error":{"message":"Missing environment variable: `OPENAI_API_KEY`."}}"#,
    );
    let [Step::Finish(ending)] = steps.as_slice() else { panic!("{steps:?}") };
    assert!(format!("{ending:?}").contains("NotLoggedIn"), "{ending:?}");
}

#[test]
fn an_end_without_a_word_is_no_result_unless_it_was_told_to_stop() {
    let played = play("codex-exec-sigterm-tool.txt", exec(), &[]);
    assert_eq!(played.failure().0, FailureKind::NoResult);
    let played = play("codex-exec-endpoint-hang.txt", exec(), &[]);
    assert_eq!(played.failure().0, FailureKind::NoResult);
    let played = play("codex-exec-sigint-stream.txt", exec(), &[]);
    assert_eq!(played.failure(), (FailureKind::NoResult, "codex exited with code 1"));

    let (mut dialogue, mut steps) = (exec(), Steps::default());
    dialogue.interrupt(&mut steps);
    assert!(steps.take().is_empty(), "its input is closed");
    dialogue.ended(&Exit { code: Some(1), ..Exit::default() }, &mut steps);
    let steps = steps.take();
    assert!(format!("{steps:?}").contains("Interrupted"), "{steps:?}");
}

#[test]
fn a_tool_that_is_refused_for_want_of_a_question_says_how_to_allow_it() {
    let refused = "codex refused mcp__notes__add_note because it cannot ask here";
    let allowed = play("codex-exec-mcp-refused.txt", exec(), &[]);
    assert!(allowed.notices().iter().any(|notice| notice.starts_with(refused)), "{:?}", allowed.notices());
    let denied = play("codex-exec-mcp-refused.txt", start(&order(Permission::Deny)).1, &[]);
    assert!(!denied.notices().iter().any(|notice| notice.starts_with(refused)), "{:?}", denied.notices());
}

#[test]
fn what_no_recording_has_is_understood_as_well() {
    let mut dialogue = exec();
    let mut told = |line: &str| serde_json::to_string(&feed(dialogue.as_mut(), line)).unwrap();
    let plan = |item: &str, done: bool| {
        format!(
            r#"{{"type":"item.{item}","item":{{"id":"p","type":"todo_list","items":[{{"text":"one","completed":{done}}},{{"text":"two","completed":false}}]}}}}"#
        )
    };
    assert_eq!(told(&plan("started", false)), r#"[{"event":{"kind":"notice","text":"plan: [ ] one; [ ] two"}}]"#);
    assert_eq!(told(&plan("updated", true)), r#"[{"event":{"kind":"notice","text":"plan: [x] one; [ ] two"}}]"#);
    assert_eq!(told(&plan("completed", true)), "[]", "it says nothing new");

    let search = |stage: &str, query: &str| {
        format!(
            r#"{{"type":"item.{stage}","item":{{"id":"w","type":"web_search","query":"{query}","action":{{"type":"other"}}}}}}"#
        )
    };
    assert_eq!(told(&search("started", "")), "[]");
    let searched = told(&search("completed", "rust a2a"));
    assert!(searched.contains(r#""tool":"web_search","input":{"query":"rust a2a"}"#), "{searched}");

    let moved = told(
        r#"{"type":"item.completed","item":{"id":"m","type":"file_change","status":"completed","changes":[{"path":"/a","kind":{"type":"update","move_path":"/b"}}]}}"#,
    );
    assert!(moved.contains(r#""kind":"files_changed","paths":["/a","/b"]"#), "{moved}");
    let failed = told(
        r#"{"type":"item.completed","item":{"id":"f","type":"file_change","status":"failed","changes":[{"path":"/a","kind":"delete"}]}}"#,
    );
    assert!(
        failed.contains(r#""output":"failed: delete /a","is_error":true"#) && !failed.contains("files_changed"),
        "{failed}"
    );
}
