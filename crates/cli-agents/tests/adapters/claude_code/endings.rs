//! How turns end.

use serde_json::json;
use switchboard_cli_agents::adapters::{Exit, Failure, Permission, Scope};

use super::*;

#[test]
fn a_tool_without_an_approval_fails_the_turn_although_all_else_says_success() {
    let name = "claude-tool-denied-no-prompt-tool.txt";
    let played = play(name, &[]);
    let message = "refused without a question to the caller: Bash: touch noprompt && echo tool ran; look at claude's own \
                   settings and at permissions of this agent";
    assert_eq!(played.failure(), (FailureKind::Refused, message));
    assert!(played.notices()[0].starts_with("Bash: touch in '/home/agent/project/noprompt' needs approval."));

    // What the operator has refused beforehand is no failure.
    let deny = Permissions { deny: vec!["Ba*".to_owned()], ..Permissions::default() };
    let nothing = Permissions { default: Permission::Deny, ..Permissions::default() };
    for permissions in [deny, nothing] {
        let (_, mut dialogue) = start(&Order { permissions, ..order() }).unwrap();
        let played = play_to(dialogue.as_mut(), name, &[]);
        assert!(matches!(played.ending(), Ending::Done { .. }), "{:?}", played.ending());
    }
}

#[test]
fn a_refusal_of_another_call_does_not_excuse_one_without_a_decision() {
    let mut dialogue = dialogue();
    let request = json!({"subtype": "can_use_tool", "tool_name": "Bash", "input": {}, "tool_use_id": "asked"});
    hear(dialogue.as_mut(), &[json!({"type": "control_request", "request_id": "q", "request": request})]);
    dialogue.decide("q", &deny("no"), &mut Steps::default());
    let denial = |call: &str| json!({"tool_name": "Bash", "tool_use_id": call, "tool_input": {"command": call}});
    let result = |calls: &[&str]| {
        let denials: Vec<Value> = calls.iter().map(|call| denial(call)).collect();
        json!({"permission_denials": denials, "subtype": "success", "is_error": false, "type": "result"})
    };
    match hear(dialogue.as_mut(), &[result(&["asked", "unasked"])]).as_slice() {
        [Step::Finish(Ending::Failed(failure))] => {
            assert_eq!(failure.kind, FailureKind::Refused);
            assert!(failure.message.starts_with("refused without a question to the caller: Bash: unasked; look at"));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn failures_of_the_models_service_are_reported_in_the_programs_words() {
    for (name, begins) in [
        ("claude-400.txt", "API Error: 400 fake 400"),
        ("claude-429-exhausted.txt", "API Error: "),
        ("claude-500-exhausted.txt", "API Error: 500 fake 500. This is a server-side issue"),
        ("claude-endpoint-dead.txt", "API Error: "),
    ] {
        let played = play(name, &[]);
        let (kind, message) = played.failure();
        assert_eq!(kind, FailureKind::Reported, "{name}");
        assert!(message.starts_with(begins), "{name}: {message}");
    }
}

#[test]
fn a_program_that_is_not_logged_in_is_told_with_what_to_do() {
    let login = "run `claude` once and log in, or set ANTHROPIC_API_KEY";
    for (name, said) in [
        ("claude-401.txt", "Failed to authenticate. API Error: 401 fake 401"),
        ("claude-state-not-logged-in.txt", "Not logged in · Please run /login"),
    ] {
        assert_eq!(play(name, &[]).failure(), (FailureKind::NotLoggedIn, format!("{said}: {login}").as_str()));
    }
    let retry = |attempt: u32, status: u32, error: &str| {
        json!({"type": "system", "subtype": "api_retry", "attempt": attempt, "max_retries": 10, "retry_delay_ms": 600,
               "error_status": status, "error": error})
    };
    let answer = json!({"type": "stream_event", "event": {"type": "message_start", "message": {"id": "m"}}});
    let rejected = |attempt| retry(attempt, 401, "authentication_failed");
    let mut dialogue = dialogue();
    let steps = hear(
        dialogue.as_mut(),
        &[rejected(1), retry(2, 529, "overloaded"), answer, retry(1, 500, "unknown"), rejected(2)],
    );
    assert!(!steps.iter().any(|step| matches!(step, Step::Finish(_))), "each may be a token that expired: {steps:?}");
    let steps = hear(dialogue.as_mut(), &[rejected(1)]);
    assert!(!steps.iter().any(|step| matches!(step, Step::Finish(_))), "another subagent's first attempt: {steps:?}");
    let steps = hear(dialogue.as_mut(), &[rejected(3)]);
    let said = "the model's service rejected the credentials twice: authentication failed (401)";
    let failure = Failure { kind: FailureKind::NotLoggedIn, message: format!("{said}: {login}") };
    assert_eq!(steps, [Step::Finish(Ending::Failed(failure))]);
    let (kind, message) = ended("warning\nInvalid API key · Please run /login\n");
    assert_eq!(kind, FailureKind::NotLoggedIn);
    assert_eq!(message, format!("Invalid API key · Please run /login: {login}"));
}

#[test]
fn limits_of_its_own_are_limits() {
    let turns = play("claude-max-turns.txt", &[]);
    assert_eq!(turns.failure(), (FailureKind::Limit, "Reached maximum number of turns (2)"));
    let money = play("claude-state-max-budget.txt", &[]);
    assert_eq!(money.failure(), (FailureKind::Limit, "Reached maximum budget ($0.00001)"));
}

#[test]
fn a_turn_that_was_stopped_says_so() {
    for name in [
        "claude-interrupt-stream.txt",
        "claude-interrupt-tool.txt",
        "claude-sigint-hang.txt",
        "claude-sigint-long-tool.txt",
        "claude-sigint-stream.txt",
        "claude-sigint-stream-nopartial.txt",
        "claude-sigint-stream-openstdin.txt",
        "claude-state-interrupt-stream.txt",
    ] {
        assert_eq!(play(name, &[]).failure(), (FailureKind::Interrupted, "stopped, as it was told to"), "{name}");
    }
    assert_eq!(play("claude-sigint-stream.txt", &[]).said(), "tick 0. tick 1. tick 2. tick 3. |");
}

#[test]
fn stopping_is_asked_for_once_in_the_programs_language() {
    let (mut dialogue, mut steps) = (dialogue(), Steps::default());
    dialogue.interrupt(&mut steps);
    dialogue.interrupt(&mut steps);
    let written = match steps.take().as_slice() {
        [Step::Write(line)] => serde_json::from_str::<Value>(line).unwrap(),
        other => panic!("{other:?}"),
    };
    let recorded: Value = serde_json::from_str(Recording::open("claude-interrupt-stream.txt").written()[1]).unwrap();
    assert_eq!((&written["type"], &written["request"]), (&recorded["type"], &recorded["request"]));
    // And if it is killed before it could answer:
    dialogue.ended(&Exit { signal: Some(9), ..Exit::default() }, &mut steps);
    assert!(
        matches!(steps.take().as_slice(), [Step::Finish(Ending::Failed(failure))] if failure.kind == FailureKind::Interrupted)
    );
}

#[test]
fn stopping_ends_a_turn_that_only_waits_for_the_background() {
    let mut dialogue = dialogue();
    let tasks = json!({"type": "system", "subtype": "background_tasks_changed", "tasks": [{"task_id": "t"}]});
    let result = json!({"subtype": "success", "is_error": false, "result": "started", "type": "result"});
    assert_eq!(hear(dialogue.as_mut(), &[tasks, result]), []);
    let mut steps = Steps::default();
    dialogue.interrupt(&mut steps);
    assert!(
        matches!(steps.take().as_slice(), [Step::Finish(Ending::Failed(failure))] if failure.kind == FailureKind::Interrupted)
    );
}

#[test]
fn conversations_that_do_not_exist_or_exist_already_are_told_apart() {
    let message = "No conversation found with session ID: 1c99d242-555b-4b68-9e61-c0ac493e5ec1";
    assert_eq!(play("claude-resume-4-unknown-id.txt", &[]).failure(), (FailureKind::UnknownSession, message));
    assert_eq!(ended(&format!("{message}\n")), (FailureKind::UnknownSession, message.to_owned()));
    let used = play("claude-resume-3-same-session-id-again.txt", &[]);
    let message = "Error: Session ID b265e95a-01e1-45e9-b7f3-3a59567abc61 is already in use. \
                   It was begun before: take it up again, or begin another";
    assert_eq!(used.failure(), (FailureKind::Reported, message));
}

#[test]
fn an_end_without_a_result_says_how_it_ended() {
    for (name, message) in [
        ("claude-sigterm-stream.txt", "claude told no result: was ended by signal 15"),
        ("claude-sigterm-stream-nopartial.txt", "claude told no result: was ended by signal 15"),
        ("claude-sigterm-long-tool.txt", "claude told no result: was ended by signal 15"),
        ("claude-sigkill-long-tool.txt", "claude told no result: was ended by signal 9"),
        ("claude-endpoint-hang.txt", "claude told no result: was ended by signal 15"),
        ("claude-control-unknown-subtype.txt", "claude told no result: exited with code 0"),
        (
            "claude-stdin-malformed-first.txt",
            "claude told no result: exited with code 1: Error parsing streaming input line (type=unknown, 16 chars): SyntaxError",
        ),
    ] {
        let next =
            "; send another message in the same context to go on, and run `switchboard doctor` if it happens again";
        assert_eq!(play(name, &[]).failure(), (FailureKind::NoResult, &*format!("{message}{next}")), "{name}");
    }
    // What to do about this is said by the code that has started it.
    let (mut dialogue, mut steps) = (dialogue(), Steps::default());
    let stderr = "--dangerously-skip-permissions cannot be used with root".to_owned();
    dialogue.ended(&Exit { code: Some(1), signal: None, stderr }, &mut steps);
    assert!(
        matches!(steps.take().as_slice(), [Step::Finish(Ending::Failed(failure))] if failure.message.ends_with("root"))
    );
    let half = play("claude-sigterm-stream.txt", &[]);
    assert!(half.said().ends_with(". |"), "what was said before is told and ended: {}", half.said());
}

#[test]
fn the_first_result_is_not_the_last_while_something_works_in_the_background() {
    let told = |played: &Told| played.events().filter(|event| matches!(event, Event::Usage(_))).count();
    let played = play("claude-background-tool.txt", &[]);
    assert_eq!(told(&played), 2);
    let notice = "Background command \"Run in background\" completed (exit code 0)";
    assert_eq!(played.notices(), [notice]);
    for name in [
        "claude-state-background-outlives-answer.txt",
        // It is done before the first result, and yet the model is told of it only after that.
        "claude-state-background-ends-in-answer.txt",
        "claude-state-subagent.txt",
    ] {
        let played = play(name, &[allow()]);
        assert_eq!((told(&played), played.answer()), (2, "noted the task"), "{name}");
    }
    // It is done while the model works, which is told of it in the same turn: no second result.
    let played = play("claude-state-background-ends-in-turn.txt", &[allow(), allow()]);
    assert_eq!(told(&played), 1);
    assert!(played.answer().contains("SYSTEM NOTIFICATION"), "{}", played.answer());
}

#[test]
fn a_good_result_stays_good_whatever_becomes_of_the_program() {
    let played = play("claude-background-tool-sigterm.txt", &[]);
    assert!(played.answer().starts_with("Done. Tool said: Command running in background"));

    let mut dialogue = dialogue();
    let running = json!({"type": "system", "subtype": "session_state_changed", "state": "running"});
    let result = json!({"subtype": "success", "is_error": false, "result": "hi", "type": "result"});
    assert_eq!(hear(dialogue.as_mut(), &[running, result]), []);
    let request = json!({"subtype": "can_use_tool", "tool_name": "Bash", "input": {}});
    hear(dialogue.as_mut(), &[json!({"type": "control_request", "request_id": "open", "request": request})]);
    let mut steps = Steps::default();
    dialogue.ended(&Exit { code: Some(1), ..Exit::default() }, &mut steps);
    assert_eq!(steps.take(), [Step::Finish(Ending::Done { answer: Some("hi".to_owned()) })]);
    let asked = json!({"type": "control_request", "request_id": "q", "request": {"subtype": "new"}});
    assert_eq!(hear(dialogue.as_mut(), &[asked]), [], "nothing follows the end");
    dialogue.decide("open", &allow(), &mut steps);
    dialogue.ended(&Exit::default(), &mut steps);
    assert_eq!(steps.take(), []);
}

#[test]
fn what_is_stopped_in_the_background_is_not_waited_for() {
    let system = |subtype: &str, more: Value| {
        let mut line = json!({"type": "system", "subtype": subtype});
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        line
    };
    let idle = system("session_state_changed", json!({"state": "idle"}));
    let open = system("background_tasks_changed", json!({"tasks": [{"task_id": "t"}]}));
    let none = system("background_tasks_changed", json!({"tasks": []}));
    let result = json!({"subtype": "success", "is_error": false, "result": "hi", "type": "result"});
    for (status, waits) in [("stopped", false), ("completed", true), ("failed", true)] {
        let mut dialogue = dialogue();
        let notification = system("task_notification", json!({"status": status}));
        let lines = [open.clone(), result.clone(), idle.clone(), notification, none.clone()];
        assert_eq!(hear(dialogue.as_mut(), &lines).is_empty(), waits, "{status}");
    }
}

#[test]
fn usage_is_that_of_this_run_for_all_models_with_the_cached_tokens() {
    let plain = play("claude-state-plain.txt", &[]).usage().unwrap();
    assert_eq!((plain.scope, plain.input_tokens, plain.cached_tokens), (Scope::Run, 16, 3));
    assert_eq!((plain.output_tokens, plain.reasoning_tokens), (7, 0));
    assert_eq!(plain.cost_usd, Some(0.000_146_399_999_999_999_98));
    // Here the program itself counts the run before too.
    assert_eq!(play("claude-state-resumed.txt", &[]).usage(), Some(plain));
    let twice = play("claude-background-tool.txt", &[]).usage().unwrap();
    assert_eq!((twice.input_tokens, twice.output_tokens), (42, 21));
    assert!((twice.cost_usd.unwrap() - 0.000_416_7).abs() < 1e-9, "{twice:?}");
    assert_eq!(play("claude-401.txt", &[]).usage(), None, "nothing was spent");
}

#[test]
fn usage_is_found_where_older_versions_have_it() {
    let model = json!({"inputTokens": 1, "cacheReadInputTokens": 2, "cacheCreationInputTokens": 4, "outputTokens": 8});
    let usage = json!({"input_tokens": 1, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 4,
        "output_tokens": 8, "output_tokens_details": {"thinking_tokens": 3}});
    for (more, input, output, reasoning) in [
        (json!({"modelUsage": {"a": model, "b": model}, "usage": usage}), 14, 16, 0),
        (json!({"modelUsage": {}, "usage": usage}), 7, 8, 3),
        (json!({"usage": usage}), 7, 8, 3),
    ] {
        let mut result = json!({"type": "result", "subtype": "success", "total_cost_usd": 0.5});
        result.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        match hear(dialogue().as_mut(), &[result]).as_slice() {
            [Step::Event(Event::Usage(told)), Step::Finish(Ending::Done { answer: None })] => {
                assert_eq!((told.input_tokens, told.output_tokens, told.reasoning_tokens), (input, output, reasoning));
                assert_eq!(told.cost_usd, Some(0.5));
            }
            other => panic!("{other:?}"),
        }
    }
}

fn ended(stderr: &str) -> (FailureKind, String) {
    let (mut dialogue, mut steps) = (dialogue(), Steps::default());
    dialogue.ended(&Exit { code: Some(1), stderr: stderr.to_owned(), ..Exit::default() }, &mut steps);
    match steps.take().as_slice() {
        [Step::Finish(Ending::Failed(failure))] => (failure.kind, failure.message.clone()),
        other => panic!("{other:?}"),
    }
}
