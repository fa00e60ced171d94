//! Recordings of `codex app-server`.

use serde_json::{Value, json};
use switchboard_cli_agents::adapters::{
    Decision, Dialogue, Event, Exit, FailureKind, Order, Permission, Scope, Step, Steps,
};

use super::{app_server, decide, exec, feed, order, play, recording, resuming, start, written};
use crate::replay::Recording;

const DENY: Decision = Decision::Deny { reason: None };
const ALLOW: Decision = Decision::Allow;

/// What was written in a recording, as JSON.
fn recorded(recording: &Recording) -> Vec<Value> {
    recording.written().iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn prompted(prompt: &str) -> Order {
    Order { prompt: prompt.to_owned(), ..order(Permission::Ask) }
}

/// Feeds a recording's output up to and including the first line with these words.
fn feed_until(dialogue: &mut dyn Dialogue, lines: &mut impl Iterator<Item = String>, words: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    for line in lines {
        steps.extend(feed(dialogue, &line));
        if line.contains(words) {
            return steps;
        }
    }
    panic!("no line has {words}");
}

fn outputs(name: &str) -> impl Iterator<Item = String> {
    let lines: Vec<String> = recording(name).outputs().map(str::to_owned).collect();
    lines.into_iter()
}

#[test]
fn every_recording_is_told_as_it_was() {
    let (allow, deny, cancel) = (&[ALLOW][..], &[DENY][..], &[Decision::Choose("cancel".to_owned())][..]);
    for (name, decisions) in [
        ("401", &[][..]),
        ("approval-allow", allow),
        ("approval-allow-session", allow),
        ("approval-cancel", cancel),
        ("approval-deny", deny),
        ("file-change", allow),
        ("file-change-deny", deny),
        ("interrupt-pending-approval", &[]),
        ("interrupt-stream", &[]),
        ("mcp-approval", allow),
        ("mcp-asked", &[DENY, DENY]),
        ("mcp-read-only", &[]),
        ("plain", &[]),
        ("reasoning", &[]),
        ("resume", &[]),
        ("resume-unknown", &[]),
        ("rule-unasked", deny),
        ("sub-agent", allow),
        ("turn-failed", &[]),
    ] {
        let played = play(&format!("codex-appserver-{name}.txt"), app_server(), decisions);
        insta::assert_snapshot!(format!("app-server-{name}"), played.listed());
    }
}

#[test]
fn a_turn_is_ordered_as_it_was_in_the_recording() {
    let recording = recording("codex-appserver-plain.txt");
    let mut dialogue = start(&prompted("Hi. [[say Hello from fake LLM]]")).1;
    let played = recording.play(dialogue.as_mut(), &[]);
    let (mut ours, theirs) = (written(&played.steps), recorded(&recording));
    let config = json!({ "id": 5, "method": "config/read", "params": { "cwd": "/home/agent/project" } });
    assert_eq!(ours.remove(2), config);
    assert_eq!(ours.len(), theirs.len());
    assert_eq!(ours[0]["method"], "initialize");
    assert_eq!(ours[0]["params"]["clientInfo"]["name"], "switchboard");
    assert_eq!(ours[1], theirs[1]);
    let mut thread = theirs[2].clone();
    thread["params"]["approvalsReviewer"] = "user".into();
    let named = thread["params"].as_object_mut().unwrap().remove("cwd");
    assert_eq!((&ours[2], named), (&thread, Some(json!("/home/agent/project"))), "a folder that is named is trusted");
    assert_eq!(ours[3], theirs[3]);
    assert!(ours.iter().all(|message| message.get("jsonrpc").is_none()));
}

#[test]
fn text_that_came_in_pieces_is_not_told_again_as_a_whole() {
    let played = play("codex-appserver-plain.txt", app_server(), &[]);
    assert_eq!(played.texts(), ["Hello ", "from fake LLM"]);
    assert_eq!(played.events().iter().filter(|event| ***event == Event::TextEnd).count(), 1);
    assert_eq!(played.answer(), "Hello from fake LLM");
    let played = play("codex-appserver-reasoning.txt", app_server(), &[]);
    let thoughts = played.events().into_iter().filter_map(|event| match event {
        Event::Reasoning { text } => Some(text.as_str()),
        _ => None,
    });
    assert_eq!(thoughts.collect::<String>(), "deeply hidden thought");
}

#[test]
fn a_message_that_is_begun_anew_after_a_cut_is_another_message() {
    let (mut dialogue, mut lines) = (app_server(), outputs("codex-appserver-plain.txt"));
    feed_until(dialogue.as_mut(), &mut lines, r#""id":3"#);
    let mut piece = |item: &str, delta: &str| {
        let params = json!({ "itemId": item, "delta": delta });
        feed(dialogue.as_mut(), &json!({ "method": "item/agentMessage/delta", "params": params }).to_string())
    };
    let text = |text: &str| Step::Event(Event::Text { text: text.to_owned() });
    assert_eq!(piece("a", "Hel"), [text("Hel")]);
    assert_eq!(piece("b", "Hel"), [Step::Event(Event::TextEnd), text("Hel")]);
    assert_eq!(piece("b", "lo"), [text("lo")]);
}

#[test]
fn an_approval_is_answered_as_in_the_recording_though_its_id_is_0() {
    for (name, decision, is_error) in [
        ("codex-appserver-approval-allow.txt", ALLOW, false),
        ("codex-appserver-approval-deny.txt", Decision::Deny { reason: Some("no".to_owned()) }, true),
        ("codex-appserver-approval-cancel.txt", Decision::Choose("cancel".to_owned()), true),
        ("codex-appserver-file-change.txt", ALLOW, false),
        ("codex-appserver-file-change-deny.txt", DENY, true),
        ("codex-appserver-mcp-approval.txt", ALLOW, false),
        ("codex-appserver-sub-agent.txt", ALLOW, false),
    ] {
        let recording = recording(name);
        let played = recording.play(app_server().as_mut(), &[decision]);
        let answer = |lines: Vec<Value>| lines.into_iter().find(|line| line.get("result").is_some()).unwrap();
        assert_eq!(answer(written(&played.steps)), answer(recorded(&recording)), "{name}");
        let asked = played.events().into_iter().find_map(|event| match event {
            Event::ApprovalRequired(approval) => Some(approval.clone()),
            _ => None,
        });
        let asked = asked.unwrap();
        assert_eq!(asked.request, "0", "{name}");
        let result = played.events().into_iter().find_map(|event| match event {
            Event::ToolResult { tool, is_error, .. } if *tool == asked.tool => Some(*is_error),
            _ => None,
        });
        assert_eq!(result, Some(is_error), "{name}");
    }
}

#[test]
fn a_no_lets_the_turn_go_on_and_cancel_stops_it() {
    let played = play("codex-appserver-approval-deny.txt", app_server(), &[DENY]);
    assert!(played.answer().contains("rejected by user"), "{}", played.answer());
    let cancel = Decision::Choose("cancel".to_owned());
    let played = play("codex-appserver-approval-cancel.txt", app_server(), &[cancel]);
    assert_eq!(played.failure().0, FailureKind::Interrupted);
}

#[test]
fn an_interrupt_names_the_turn_and_the_end_says_so() {
    let name = "codex-appserver-interrupt-stream.txt";
    let (mut dialogue, mut lines) = (app_server(), outputs(name));
    feed_until(dialogue.as_mut(), &mut lines, "item/agentMessage/delta");
    let mut steps = Steps::default();
    dialogue.interrupt(&mut steps);
    dialogue.interrupt(&mut steps);
    let interrupt = recorded(&recording(name)).into_iter().find(|line| line["method"] == "turn/interrupt").unwrap();
    let ours = written(&steps.take());
    assert_eq!(ours.len(), 1);
    assert_eq!((&ours[0]["method"], &ours[0]["params"]), (&interrupt["method"], &interrupt["params"]));
    let rest = feed_until(dialogue.as_mut(), &mut lines, "turn/completed");
    let Some([.., Step::Event(Event::TextEnd), Step::Finish(ending)]) = Some(rest.as_slice()) else {
        panic!("{rest:?}")
    };
    assert!(format!("{ending:?}").contains("Interrupted"), "{ending:?}");
    assert!(lines.all(|line| feed(dialogue.as_mut(), &line).is_empty()), "nothing counts after the end");
}

#[test]
fn an_interrupt_is_kept_until_the_turn_has_a_name_and_no_turn_begins_after_it() {
    let mut steps = Steps::default();
    let (mut dialogue, mut lines) = (app_server(), outputs("codex-appserver-plain.txt"));
    feed_until(dialogue.as_mut(), &mut lines, r#""id":2"#);
    dialogue.interrupt(&mut steps);
    assert!(steps.take().is_empty());
    let rest = feed_until(dialogue.as_mut(), &mut lines, r#""id":3"#);
    assert_eq!(written(&rest)[0]["params"]["turnId"], "01a1dd3e-f91e-77d0-8c20-672eecd36e43");

    let (mut dialogue, mut lines) = (app_server(), outputs("codex-appserver-plain.txt"));
    dialogue.interrupt(&mut steps);
    assert!(matches!(steps.take().as_slice(), [Step::Finish(_)]));
    assert!(lines.all(|line| feed(dialogue.as_mut(), &line).is_empty()));
}

#[test]
fn a_question_that_is_open_at_the_end_is_withdrawn_and_never_answered() {
    let (mut dialogue, mut lines) = (app_server(), outputs("codex-appserver-interrupt-pending-approval.txt"));
    let asked = feed_until(dialogue.as_mut(), &mut lines, "requestApproval");
    assert!(matches!(asked.last(), Some(Step::Event(Event::ApprovalRequired(_)))));
    let ended = feed_until(dialogue.as_mut(), &mut lines, "turn/completed");
    let withdrawn = Step::Event(Event::ApprovalWithdrawn { request: "0".to_owned() });
    assert!(ended.contains(&withdrawn), "{ended:?}");
    assert!(matches!(ended.last(), Some(Step::Finish(_))));
    // In this recording the server says that it is resolved only now.
    assert!(lines.any(|line| line.contains("serverRequest/resolved")));
    assert!(decide(dialogue.as_mut(), "0", &ALLOW).is_empty());
}

#[test]
fn a_conversation_is_taken_up_without_its_history_and_its_usage_goes_on() {
    let thread = "01a1dd3e-f8e7-7650-9ce6-d8b193cfb2b5";
    let mut dialogue = start(&resuming(thread, prompted("More. [[say I was resumed.]]"))).1;
    let recording = recording("codex-appserver-resume.txt");
    let played = recording.play(dialogue.as_mut(), &[]);
    let ours = written(&played.steps);
    assert_eq!(ours[3]["method"], "thread/resume");
    assert_eq!(ours[3]["params"]["threadId"], thread);
    assert_eq!(ours[3]["params"]["cwd"], "/home/agent/project", "else it goes on where it was");
    assert_eq!(ours[3]["params"]["excludeTurns"], true);
    assert_eq!(ours[3]["params"]["approvalPolicy"], "untrusted");
    assert_eq!(ours[4], recorded(&recording)[3]);
    assert_eq!(played.texts().concat(), "I was resumed.");
    let usages: Vec<u64> = played
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::Usage(usage) => (usage.scope == Scope::Session).then_some(usage.input_tokens),
            _ => None,
        })
        .collect();
    assert_eq!(usages, [11, 22]);

    let unknown = play("codex-appserver-resume-unknown.txt", app_server(), &[]);
    assert_eq!(unknown.failure().0, FailureKind::UnknownSession);
}

#[test]
fn failures_say_what_they_are_about() {
    let played = play("codex-appserver-turn-failed.txt", app_server(), &[]);
    assert_eq!(played.failure(), (FailureKind::Reported, "fake 400"));
    let played = play("codex-appserver-401.txt", app_server(), &[]);
    assert_eq!(played.failure().0, FailureKind::NotLoggedIn);
    assert!(played.notices().iter().any(|notice| notice.starts_with("Reconnecting... 1/1 (unexpected status 401")));

    let end = |turn: Value| {
        let (mut dialogue, mut lines) = (app_server(), outputs("codex-appserver-plain.txt"));
        feed_until(dialogue.as_mut(), &mut lines, r#""id":3"#);
        let mut params = json!({ "threadId": "01a1dd3e-f8e7-7650-9ce6-d8b193cfb2b5", "turn": turn });
        params["turn"]["id"] = "01a1dd3e-f91e-77d0-8c20-672eecd36e43".into();
        let line = json!({ "method": "turn/completed", "params": params });
        serde_json::to_value(feed(dialogue.as_mut(), &line.to_string())).unwrap()
    };
    for (info, kind) in [
        (json!("unauthorized"), "not_logged_in"),
        (json!("usageLimitExceeded"), "limit"),
        (json!("contextWindowExceeded"), "limit"),
        (json!({ "httpConnectionFailed": { "httpStatusCode": 401 } }), "not_logged_in"),
        (json!({ "httpConnectionFailed": { "httpStatusCode": 503 } }), "reported"),
        (json!(null), "reported"),
    ] {
        let ended = end(json!({ "status": "failed", "error": { "message": "x", "codexErrorInfo": info } }));
        assert_eq!(ended[0]["finish"]["failed"]["kind"], kind, "{info}");
    }
    assert_eq!(end(json!({ "status": "melted" }))[0]["finish"]["failed"]["kind"], "reported");
}

#[test]
fn a_process_that_ends_without_a_word_is_no_result() {
    let (mut dialogue, mut steps) = (app_server(), Steps::default());
    let stderr = "ERROR codex_app_server: could not find bubblewrap\nError: failed to load configuration\n\nStack backtrace:\n   0: x\n";
    dialogue.ended(&Exit { code: Some(1), signal: None, stderr: stderr.to_owned() }, &mut steps);
    let ended = serde_json::to_value(steps.take()).unwrap();
    assert_eq!(
        ended[0]["finish"]["failed"],
        json!({ "kind": "no_result", "message": "codex exited with code 1: Error: failed to load configuration" })
    );
}

#[test]
fn a_process_that_lost_the_race_for_a_new_home_has_not_begun() {
    let stderr = "Error: failed to initialize sqlite state runtime under /home/agent/.codex: failed to initialize state \
                  runtime at /home/agent/.codex\n";
    let exit = Exit { code: Some(1), signal: None, stderr: stderr.to_owned() };
    let ends = |mut dialogue: Box<dyn Dialogue>| {
        let mut steps = Steps::default();
        dialogue.ended(&exit, &mut steps);
        serde_json::to_value(steps.take()).unwrap()[0]["finish"]["failed"]["kind"].clone()
    };
    assert_eq!(ends(app_server()), "not_ready");
    assert_eq!(ends(exec()), "not_ready");
    let (mut dialogue, mut lines) = (app_server(), outputs("codex-appserver-plain.txt"));
    feed_until(dialogue.as_mut(), &mut lines, r#""id":2"#);
    assert_eq!(ends(dialogue), "no_result", "the turn was ordered, and must not be ordered twice");
    let mut dialogue = exec();
    feed(dialogue.as_mut(), r#"{"type":"thread.started","thread_id":"0d9a8f6e-3b7c-4f58-8d51-5d6a2f4f4c10"}"#);
    assert_eq!(ends(dialogue), "no_result");
}

#[test]
fn agents_of_its_own_ask_and_work_and_neither_speak_nor_end_the_turn() {
    let played = play("codex-appserver-sub-agent.txt", app_server(), &[ALLOW]);
    let recording =
        std::fs::read_to_string(format!("{}/tests/captures/codex-appserver-sub-agent.txt", env!("CARGO_MANIFEST_DIR")));
    let ends = recording.unwrap().lines().filter(|line| line.contains(r#""method":"turn/completed""#)).count();
    assert_eq!(ends, 2, "one of them is the other agent's");
    let tools: Vec<&str> = played
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::ToolUse { tool, .. } => Some(tool.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(tools, ["spawn_agent", "wait", "shell"]);
    assert_eq!(played.events().iter().filter(|event| ***event == Event::TextEnd).count(), 1);
    assert_eq!(played.texts().concat(), played.answer());
}
