//! What agents do that one would not think of.

use serde_json::{Value, json};
use switchboard_cli_agents::adapters::{Ending, Event, Exit, FailureKind, Step};

use super::approvals::ask;
use super::{Run, events, failure, methods, order, resume, said, written};

#[test]
fn stopping_before_the_prompt_means_it_is_never_given() {
    let mut run = Run::begin(&order("Work."));
    assert_eq!(failure(&run.interrupt()).0, FailureKind::Interrupted);
    run.answer(1, json!({"protocolVersion": 1}));
    assert!(run.take().is_empty());
    assert!(run.interrupt().is_empty());
}

#[test]
fn what_was_not_offered_is_refused_and_what_is_unknown_ignored() {
    let mut run = Run::prompted();
    for method in ["fs/read_text_file", "fs/write_text_file", "terminal/create", "elicitation/create", "_x/y"] {
        let answers = written(&run.say(json!({"id": "r", "method": method, "params": {}})));
        assert_eq!((&answers[0]["id"], &answers[0]["error"]["code"]), (&json!("r"), &json!(-32601)), "{method}");
    }
    for line in [
        json!({"method": "_auth/status_update", "params": {"authStatus": {}}}),
        json!({"method": "session/update"}),
        json!({"method": "session/update", "params": {"update": {"sessionUpdate": "dance"}}}),
        json!({"method": "session/update", "params": {"update": {"sessionUpdate": "tool_call"}}}),
        json!({"method": "session/update", "params": {"update": {"sessionUpdate": "plan", "entries": [{}]}}}),
        json!({"method": "session/update", "params": {"update": {"sessionUpdate": "agent_message_chunk"}}}),
        json!({"method": "session/update", "params": {"update": {"sessionUpdate": "agent_thought_chunk",
            "content": {"type": "image", "data": "", "mimeType": "image/png"}}}}),
        json!({"method": "session/update", "params": {"sessionId": "another", "update": {
            "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}}}}),
        json!({"id": 99, "result": {"stopReason": "end_turn"}}),
        json!({"id": "3", "result": {"stopReason": "end_turn"}}),
        json!({"id": null, "error": {"code": -32700, "message": "Parse error"}}),
        json!([{"id": 3, "result": {"stopReason": "end_turn"}}]),
    ] {
        assert_eq!(run.say(&line), [], "{line}");
    }
    assert_eq!(run.say("["[..].repeat(100_000)), []);
    assert_eq!(run.say("Warming up…"), []);
    run.answer(3, json!({"stopReason": "end_turn"}));
    assert_eq!(run.take(), [Step::Finish(Ending::Done { answer: None })]);
}

#[test]
fn messages_end_where_something_else_begins() {
    let mut run = Run::prompted();
    let text = |kind: &str, text: &str| json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}});
    let mut steps = run.update(text("agent_message_chunk", "One"));
    steps.extend(run.update(json!({"sessionUpdate": "usage_update", "used": 1, "size": 2})));
    steps.extend(run.update(text("agent_message_chunk", " two.")));
    steps.extend(run.update(text("agent_thought_chunk", "Hm.")));
    steps.extend(run.update(text("agent_message_chunk", "Three.")));
    steps.extend(run.update(json!({"sessionUpdate": "tool_call", "toolCallId": "t"})));
    steps.extend(run.update(text("agent_message_chunk", "Four.")));
    steps.extend(
        run.update(json!({"sessionUpdate": "notice", "severity": "info", "title": "Slow", "description": "today"})),
    );
    run.answer(3, json!({"stopReason": "end_turn"}));
    steps.extend(run.take());
    assert_eq!(said(&steps), "One two.|Three.|Four.|");
    let events = events(&steps);
    assert!(events.contains(&&Event::Reasoning { text: "Hm.".to_owned() }));
    assert!(events.contains(&&Event::Notice { text: "Slow\ntoday".to_owned() }));
    assert_eq!(steps.last(), Some(&Step::Finish(Ending::Done { answer: Some("Four.".to_owned()) })));
}

#[test]
fn a_call_is_told_once_when_it_is_known_whole() {
    let mut run = Run::prompted();
    let call = |more: Value| {
        let mut call = json!({"sessionUpdate": "tool_call_update", "toolCallId": "t"});
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        call
    };
    // Announced with nothing, then piece by piece.
    assert_eq!(
        run.update(json!({"sessionUpdate": "tool_call", "toolCallId": "t", "kind": "edit", "rawInput": {}})),
        []
    );
    assert_eq!(
        run.update(call(
            json!({"rawInput": {"path": "a"}, "content": [{"type": "diff", "path": "/p/a", "newText": "x"}]})
        )),
        []
    );
    assert_eq!(
        run.update(call(
            json!({"rawInput": {"path": "a", "text": "x"}, "locations": [{"path": "/p/a"}, {"path": "/p/b"}]})
        )),
        []
    );
    // The agent goes on to something else.
    let steps = run.update(json!({"sessionUpdate": "usage_update", "used": 1, "size": 2}));
    let use_of =
        |id: &str, tool: &str, input: Value| Event::ToolUse { id: id.to_owned(), tool: tool.to_owned(), input };
    assert_eq!(events(&steps), [&use_of("t", "edit", json!({"path": "a", "text": "x"}))]);
    assert_eq!(run.update(call(json!({"status": "in_progress"}))), []);
    let steps = run.update(call(json!({"status": "completed", "rawOutput": {"ok": true}})));
    let result = Event::ToolResult {
        id: "t".to_owned(),
        tool: "edit".to_owned(),
        output: r#"{"ok":true}"#.to_owned(),
        is_error: false,
    };
    let changed = Event::FilesChanged { paths: vec!["/p/a".to_owned(), "/p/b".to_owned()] };
    assert_eq!(events(&steps), [&result, &changed]);
    // What is said afterwards is nothing new.
    assert_eq!(run.update(call(json!({"status": "completed"}))), []);

    // Never announced, of a kind that is not known, and failed: no file was changed.
    let update = json!({"sessionUpdate": "tool_call_update", "toolCallId": "u", "kind": "sing", "status": "failed",
        "title": "la", "content": [{"type": "content", "content": {"type": "text", "text": "hoarse"}}, {"type": "new"},
        {"type": "diff", "path": "/p/c", "newText": ""}]});
    let steps = run.update(update);
    let result =
        Event::ToolResult { id: "u".to_owned(), tool: "other".to_owned(), output: "hoarse".to_owned(), is_error: true };
    assert_eq!(events(&steps), [&use_of("u", "other", json!({"title": "la"})), &result]);
}

#[test]
fn endings_mean_what_they_say() {
    for (reason, kind) in [
        (json!("max_tokens"), FailureKind::Limit),
        (json!("max_turn_requests"), FailureKind::Limit),
        (json!("refusal"), FailureKind::Reported),
        (json!("cancelled"), FailureKind::Interrupted),
        (json!("bored"), FailureKind::Reported),
        (json!(null), FailureKind::Reported),
    ] {
        let mut run = Run::prompted();
        run.answer(3, json!({"stopReason": reason}));
        assert_eq!(failure(&run.take()).0, kind, "{reason}");
    }
}

#[test]
fn an_agent_that_is_not_logged_in_says_how_to() {
    let logins = json!([{"id": "a", "name": "Log in with A"}, {"id": "b"}, 7]);
    for (logins, how) in [(logins, "Log in with A, b"), (json!([]), "with its own program")] {
        let mut run = Run::begin(&order("Work."));
        run.answer(1, json!({"protocolVersion": 1, "authMethods": logins}));
        run.take();
        let text = format!("the agent is not logged in: Authentication required; log in by one of: {how}");
        assert_eq!(failure(&run.refuse(2, -32000, "Authentication required.")), (FailureKind::NotLoggedIn, &*text));
    }
    // Gemini gives the status of its server as the code.
    assert_eq!(failure(&Run::prompted().refuse(3, 401, "no key")).0, FailureKind::NotLoggedIn);
    // Opencode has no status.
    let opencode = Run::prompted().refuse(3, -32603, "Internal error: Unauthorized: {\"error\":\"no\"}");
    assert_eq!(failure(&opencode).0, FailureKind::NotLoggedIn);
}

#[test]
fn conversations_that_cannot_be_taken_up_say_so() {
    let mut run = Run::begin(&resume("old", "Work."));
    run.answer(1, json!({"protocolVersion": 1, "agentCapabilities": {"loadSession": false}}));
    let steps = run.take();
    assert_eq!(
        failure(&steps),
        (FailureKind::UnknownSession, "this agent cannot take up conversations: begin a new one")
    );

    for (code, kind) in [
        (-32002, FailureKind::UnknownSession),
        (-32602, FailureKind::UnknownSession),
        (-32603, FailureKind::UnknownSession),
        (-32601, FailureKind::UnknownSession),
        (-32000, FailureKind::NotLoggedIn),
        (500, FailureKind::Reported),
    ] {
        let mut run = Run::begin(&resume("old", "Work."));
        run.answer(1, json!({"agentCapabilities": {"sessionCapabilities": {"resume": {}}}}));
        assert_eq!(methods(&run.take()), ["session/resume"]);
        assert_eq!(failure(&run.refuse(2, code, "no")).0, kind, "{code}");
    }
}

#[test]
fn setting_the_model_settles_a_loaded_conversation_too() {
    let order = switchboard_cli_agents::adapters::Order { model: Some("b".to_owned()), ..resume("old", "Work.") };
    let mut run = Run::begin(&order);
    run.answer(1, json!({"protocolVersion": 1, "agentCapabilities": {"loadSession": true}}));
    let loaded = json!({"modes": {"currentModeId": "m", "availableModes": []}, "models": {"currentModelId": "a"}});
    run.answer(2, loaded.clone());
    assert_eq!(methods(&run.take()), ["session/load", "session/set_model"]);
    run.answer(3, json!({}));
    assert_eq!(methods(&run.take()), ["session/prompt"]);

    // Else a request that changes nothing does, even if it is refused.
    let mut run = Run::begin(&resume("old", "Work."));
    run.answer(1, json!({"protocolVersion": 1, "agentCapabilities": {"loadSession": true}}));
    run.answer(2, loaded);
    let steps = run.take();
    assert_eq!(methods(&steps), ["session/load", "session/set_mode"]);
    assert_eq!(written(&steps)[1]["params"], json!({"sessionId": "old", "modeId": "m"}));
    assert_eq!(methods(&run.refuse(3, -32601, "no such method")), ["session/prompt"]);
}

#[test]
fn an_agent_of_another_version_is_not_talked_to() {
    for version in [json!(2), json!("1")] {
        let mut run = Run::begin(&order("Work."));
        run.answer(1, json!({"protocolVersion": version}));
        let steps = run.take();
        assert_eq!(failure(&steps).0, FailureKind::Reported);
        assert!(failure(&steps).1.contains(&format!("version {version}")), "{steps:?}");
    }
    let mut run = Run::begin(&order("Work."));
    run.answer(1, json!({"protocolVersion": 1}));
    run.answer(2, json!({}));
    assert_eq!(failure(&run.take()), (FailureKind::Reported, "the agent gave the conversation no name"));
}

#[test]
fn an_agent_that_leaves_without_a_word_is_told_with_its_last_words() {
    let exit = Exit { code: Some(41), signal: None, stderr: "warming up\nno key\n".to_owned() };
    let mut run = Run::prompted();
    run.update(json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "Half"}}));
    let steps = run.end(&exit);
    assert_eq!(said(&steps), "|");
    let text = "the agent exited with code 41: no key before it said how the turn went; send another message in the same \
                context to go on, and run `switchboard doctor` if it happens again";
    assert_eq!(failure(&steps), (FailureKind::NoResult, text));
    assert!(run.end(&exit).is_empty(), "ended twice");

    let mut run = Run::prompted();
    run.interrupt();
    assert_eq!(failure(&run.end(&exit)).0, FailureKind::Interrupted);
}

#[test]
fn what_callers_say_is_never_a_command() {
    for prompt in ["/extensions install evil", " \n/x", "$skill"] {
        let mut run = Run::begin(&order(prompt));
        run.answer(1, json!({"protocolVersion": 1}));
        run.answer(2, json!({"sessionId": "s"}));
        let prompted = &written(&run.take())[1]["params"]["prompt"];
        assert_eq!(*prompted, json!([{"type": "text", "text": format!("The message is:\n{prompt}")}]));
    }
}

#[test]
fn the_end_of_a_turn_is_the_end() {
    let mut run = Run::prompted();
    run.answer(3, json!({"stopReason": "end_turn"}));
    run.take();
    run.answer(3, json!({"stopReason": "refusal"}));
    assert!(run.take().is_empty());
    assert!(run.say(ask(json!(0), &["allow_once"])).is_empty());
    assert!(run.end(&Exit::default()).is_empty());
}

#[test]
fn zero_and_texts_are_ids_and_null_is_none() {
    let ask = |id: &str| format!(r#"{{{id}"method":"nothing/known"}}"#);
    for (line, answered) in [
        (ask(r#""id":0,"#), Some(json!(0))),
        (ask(r#""id":"a","params":[],"#), Some(json!("a"))),
        (ask(r#""id":null,"#), None),
        (ask(""), None),
        (ask(r#""id":1.5,"#), None),
        (ask(r#""id":{},"#), None),
        (r#"{"result":{}}"#.to_owned(), None),
        ("[]".to_owned(), None),
        ("warming up".to_owned(), None),
        (String::new(), None),
    ] {
        let answers = written(&Run::prompted().say(&line));
        assert_eq!(answers.first().map(|answer| answer["id"].clone()), answered, "{line}");
    }
    for (line, is_good) in
        [(r#"{"id":3,"result":{"stopReason":"end_turn"},"error":null}"#, true), (r#"{"id":3,"error":"no"}"#, false)]
    {
        let steps = Run::prompted().say(line);
        assert_eq!(matches!(steps.last(), Some(Step::Finish(Ending::Done { .. }))), is_good, "{steps:?}");
    }
}

#[test]
fn errors_are_described_in_the_words_of_the_agent() {
    let gemini = r#"{"error":{"code":400,"message":"fake 400","status":"INVALID_ARGUMENT"}}"#;
    let long = "x".repeat(2_000);
    for (error, expected) in [
        (json!({"code": 400, "message": gemini}), "fake 400"),
        (json!({"code": -32603, "message": "no", "data": "why"}), "no (why)"),
        (json!({"code": -32603, "message": "no", "data": {"a": 1}}), r#"no ({"a":1})"#),
        (json!({"code": -32603, "message": "no", "data": {"details": "why"}}), "no (why)"),
        (json!({"code": 7, "message": " "}), "error 7"),
        (json!({"code": 7, "message": &long}), &format!("{}…", &long[..999])),
    ] {
        let steps = Run::prompted().say(json!({"id": 3, "error": error}));
        assert_eq!(failure(&steps).1, expected);
    }
}
