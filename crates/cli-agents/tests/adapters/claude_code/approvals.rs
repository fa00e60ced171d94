//! What is asked and answered.

use serde_json::json;

use super::*;

/// Whether what is written in answer is what the recording was answered with.
fn assert_answers(name: &str, decisions: &[Decision]) -> Told {
    let played = play(name, decisions);
    let recording = Recording::open(name);
    let written = recording.written().into_iter().map(|line| serde_json::from_str(line).unwrap());
    let responses: Vec<Value> = written.filter(|line: &Value| line["type"] == "control_response").collect();
    assert!(!responses.is_empty(), "{name}");
    assert_eq!(played.answers(), responses, "{name}");
    played
}

#[test]
fn a_tool_is_allowed_with_what_it_was_called_with() {
    let played = assert_answers("claude-tool-allow.txt", &[allow()]);
    let approval = played
        .events()
        .find_map(|event| if let Event::ApprovalRequired(approval) = event { Some(approval) } else { None });
    let approval = approval.unwrap();
    assert_eq!(approval.prompt, "Bash: touch made-by-tool && echo tool ran");
    assert_eq!((approval.tool.as_str(), approval.choices.len()), ("Bash", 0));
    assert_eq!(approval.input["command"], "touch made-by-tool && echo tool ran");
    assert_eq!(played.answer(), "Done. Tool said: tool ran");
    assert_answers("claude-state-write.txt", &[allow(), allow()]);
}

#[test]
fn questions_about_several_calls_come_one_after_the_other() {
    let played = assert_answers("claude-tool-parallel.txt", &[allow(), allow()]);
    assert_eq!(played.events().filter(|event| matches!(event, Event::ApprovalRequired(_))).count(), 2);
}

#[test]
fn a_refusal_tells_the_model_why_and_the_turn_goes_on() {
    let played = assert_answers("claude-tool-deny.txt", &[deny("Denied by the hub")]);
    assert_eq!(played.answer(), "Done. Tool said: Denied by the hub");
}

#[test]
fn what_the_program_suggests_to_remember_is_not_sent_back() {
    let played = play("claude-tool-allow-always.txt", &[allow()]);
    let answer = &played.answers()[0]["response"]["response"];
    let members: Vec<&String> = answer.as_object().unwrap().keys().collect();
    assert_eq!(members, ["behavior", "updatedInput"]);
}

#[test]
fn only_offered_answers_can_be_chosen_and_others_refuse() {
    for (choice, behavior) in [("allow", "allow"), ("deny", "deny"), ("allow_always", "deny"), ("", "deny")] {
        let played = play("claude-tool-allow.txt", &[Decision::Choose(choice.to_owned())]);
        assert_eq!(played.answers()[0]["response"]["response"]["behavior"], behavior, "{choice}");
    }
    for reason in [None, Some(" ".to_owned())] {
        let played = play("claude-tool-deny.txt", &[Decision::Deny { reason }]);
        let message = &played.answers()[0]["response"]["response"]["message"];
        assert_eq!(message, "This was refused. Do not try it again in another way.");
    }
}

#[test]
fn a_question_of_the_models_own_is_answered_by_choosing() {
    let played = assert_answers("claude-state-question.txt", &[Decision::Choose("B".to_owned())]);
    let approval = played
        .events()
        .find_map(|event| if let Event::ApprovalRequired(approval) = event { Some(approval) } else { None });
    let approval = approval.unwrap();
    assert_eq!(approval.prompt, "Which?\n- A: the first\n- B: the second");
    let labels: Vec<&str> = approval.choices.iter().map(|choice| choice.label.as_str()).collect();
    assert_eq!(labels, ["A", "B"]);
    assert!(approval.no_plain_yes, "a yes would choose neither");
    assert!(played.answer().contains(r#"\"Which?\"=\"B\""#), "{}", played.answer());
}

#[test]
fn several_questions_at_once_offer_nothing_to_choose() {
    let one = json!({"question": "One?", "options": [{"label": "A"}], "multiSelect": false});
    let many = json!({"question": "Many?", "options": [{"label": "A"}], "multiSelect": true});
    for (questions, prompt) in [
        (json!([one, many]), "One?\n- A\nMany?\n- A"),
        (json!([many]), "Many?\n- A"),
        (json!("none"), "AskUserQuestion"),
    ] {
        match hear(dialogue().as_mut(), &[ask(json!("q"), "AskUserQuestion", json!({"questions": questions}))])
            .as_slice()
        {
            [Step::Event(Event::ApprovalRequired(approval))] => {
                assert_eq!((approval.prompt.as_str(), approval.choices.len()), (prompt, 0));
                assert!(!approval.no_plain_yes);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_answer_is_written_once_and_only_to_what_is_open() {
    let mut dialogue = dialogue();
    hear(dialogue.as_mut(), &[ask(json!(0), "Bash", json!({"command": "ls"}))]);
    let mut steps = Steps::default();
    dialogue.decide("1", &allow(), &mut steps);
    assert_eq!(steps.take(), []);
    dialogue.decide("0", &allow(), &mut steps);
    match steps.take().as_slice() {
        // A number is echoed as a number.
        [Step::Write(line)] => assert!(line.contains(r#""request_id":0"#), "{line}"),
        other => panic!("{other:?}"),
    }
    dialogue.decide("0", &allow(), &mut steps);
    assert_eq!(steps.take(), []);
}

#[test]
fn a_question_that_is_withdrawn_is_not_answered() {
    let request = "a420529a-50e8-4bfb-8936-eecbd340d156";
    let played = play("claude-interrupt-pending-permission.txt", &[]);
    let withdrawn = Event::ApprovalWithdrawn { request: request.to_owned() };
    assert_eq!(played.events().filter(|event| **event == withdrawn).count(), 1);
    assert_eq!(played.failure().0, FailureKind::Interrupted);

    let mut dialogue = dialogue();
    let cancel = json!({"type": "control_cancel_request", "request_id": "q"});
    let steps = hear(dialogue.as_mut(), &[ask(json!("q"), "Bash", json!({})), cancel.clone(), cancel]);
    assert_eq!(steps.len(), 2, "{steps:?}");
    let mut steps = Steps::default();
    dialogue.decide("q", &allow(), &mut steps);
    assert_eq!(steps.take(), []);
}

#[test]
fn what_we_do_not_know_is_answered_with_an_error() {
    let request = json!({"subtype": "hook_callback", "callback_id": "1"});
    let unknown = json!({"type": "control_request", "request_id": "h", "request": request});
    let nameless = ask(json!("n"), "", json!({}));
    let nothing = json!({"type": "control_request", "request": {"subtype": "can_use_tool"}});
    let steps = hear(dialogue().as_mut(), &[unknown, nameless, nothing]);
    let errors: Vec<Value> = steps
        .iter()
        .map(|step| if let Step::Write(line) = step { serde_json::from_str(line).unwrap() } else { panic!("{step:?}") })
        .collect();
    assert_eq!(
        errors[0],
        json!({"type": "control_response", "response": {"subtype": "error", "request_id": "h",
            "error": "Unsupported control request subtype: hook_callback"}})
    );
    assert_eq!((errors.len(), &errors[1]["response"]["request_id"]), (2, &json!("n")));
}

fn ask(id: Value, tool: &str, input: Value) -> Value {
    let request = json!({"subtype": "can_use_tool", "tool_name": tool, "input": input, "tool_use_id": "t"});
    json!({"type": "control_request", "request_id": id, "request": request})
}

#[test]
fn a_call_is_described_by_what_it_is_about() {
    let long = "ü".repeat(3000);
    for (tool, input, description) in [
        ("Bash", json!({"command": "cargo test", "description": "Run the tests"}), "Bash: cargo test"),
        ("Edit", json!({"file_path": "/home/agent/project/src/main.rs"}), "Edit src/main.rs"),
        ("Write", json!({"file_path": "/etc/hosts"}), "Write /etc/hosts"),
        ("Glob", json!({"path": "/home/agent/project", "pattern": "*.rs"}), "Glob: *.rs"),
        ("Read", json!({"file_path": "/home/agent/project"}), "Read /home/agent/project"),
        ("WebFetch", json!({"url": "https://example.com", "prompt": "read"}), "WebFetch https://example.com"),
        ("mcp__x__y", json!({"n": 1}), r#"mcp__x__y: {"n":1}"#),
        ("EnterPlanMode", json!({}), "EnterPlanMode"),
        ("EnterPlanMode", json!(null), "EnterPlanMode"),
        ("Bash", json!({"command": 7}), r#"Bash: {"command":7}"#),
        ("Bash", json!({"command": &long}), &format!("Bash: {long}")),
    ] {
        let request = json!({"subtype": "can_use_tool", "tool_name": tool, "input": input});
        let line = json!({"type": "control_request", "request_id": "r", "request": request});
        let asked = hear(dialogue().as_mut(), &[line]);
        let [Step::Event(Event::ApprovalRequired(approval))] = asked.as_slice() else { panic!("{asked:?}") };
        assert_eq!(approval.prompt, description);
    }
}
