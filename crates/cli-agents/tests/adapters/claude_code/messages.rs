//! What is said and done, told once.

use serde_json::json;

use super::*;

#[test]
fn text_comes_in_pieces_and_the_whole_message_does_not_repeat_it() {
    let played = play("claude-plain-partial.txt", &[]);
    assert_eq!(played.events().filter(|event| matches!(event, Event::Text { .. })).count(), 3);
    assert_eq!(played.said(), "Hello from fake LLM|");
    assert_eq!(played.answer(), "Hello from fake LLM");
    assert_eq!(play("claude-plain.txt", &[]).said(), "Hello from fake LLM|");
}

#[test]
fn thoughts_come_in_pieces_apart_from_text() {
    let played = play("claude-thinking-partial.txt", &[]);
    let thought: Vec<&str> = played
        .events()
        .filter_map(|event| if let Event::Reasoning { text } = event { Some(text.as_str()) } else { None })
        .collect();
    assert_eq!(thought, ["Let me ", "think."]);
    assert_eq!(played.said(), "The answer is 42.|");
}

#[test]
fn a_stream_that_breaks_is_gone_on_with_and_not_repeated() {
    let played = play("claude-state-stream-cut.txt", &[]);
    assert_eq!(played.said(), "This sentence is cut in the middle|");
    assert_eq!(played.notices(), ["the model did not answer: unknown; retry 1 of 2 in 540 ms"]);
    assert_eq!(play("claude-stream-cut.txt", &[]).said(), "Half a sentence|");
}

#[test]
fn a_message_ends_where_a_tool_is_called() {
    let played = play("claude-tool-allow.txt", &[allow()]);
    assert_eq!(played.said(), "I will run it. |Done. Tool said: tool ran|");
    let kinds: Vec<&str> = played
        .events()
        .map(|event| match event {
            Event::Init { .. } => "init",
            Event::Text { .. } => "text",
            Event::TextEnd => "end",
            Event::ToolUse { .. } => "use",
            Event::ToolResult { .. } => "result",
            Event::ApprovalRequired(_) => "ask",
            Event::Usage(_) => "usage",
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(kinds, ["init", "text", "end", "use", "ask", "result", "text", "end", "usage"]);
}

#[test]
fn a_tools_answer_names_the_tool_and_changed_files_are_told() {
    let played = play("claude-state-write.txt", &[allow(), allow()]);
    let done: Vec<&Event> = played
        .events()
        .filter(|event| matches!(event, Event::ToolResult { .. } | Event::FilesChanged { .. }))
        .collect();
    let path = "/home/agent/project/new.txt";
    match done.as_slice() {
        [
            Event::ToolResult { tool: write, output, is_error: false, .. },
            Event::FilesChanged { paths },
            Event::ToolResult { tool: bash, output: failed, is_error: true, .. },
        ] => {
            assert_eq!((write.as_str(), bash.as_str()), ("Write", "Bash"));
            assert!(output.starts_with(&format!("File created successfully at: {path}")), "{output}");
            assert_eq!((paths, failed.as_str()), (&vec![path.to_owned()], "Exit code 3"));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_notebook_and_an_edit_that_failed_are_told_apart() {
    let call = |id: &str, tool: &str, input: Value| {
        let block = json!({"type": "tool_use", "id": id, "name": tool, "input": input});
        json!({"type": "assistant", "message": {"id": "m", "content": [block]}})
    };
    let answer = |id: &str, is_error: bool| {
        let block = json!({"type": "tool_result", "tool_use_id": id, "content": "", "is_error": is_error});
        json!({"type": "user", "message": {"content": [block]}})
    };
    let steps = hear(
        dialogue().as_mut(),
        &[
            call("1", "NotebookEdit", json!({"notebook_path": "a.ipynb"})),
            call("2", "Edit", json!({"file_path": "b.rs"})),
            answer("1", false),
            answer("2", true),
        ],
    );
    let changed: Vec<&Step> =
        steps.iter().filter(|step| matches!(step, Step::Event(Event::FilesChanged { .. }))).collect();
    assert_eq!(changed, [&Step::Event(Event::FilesChanged { paths: vec!["a.ipynb".to_owned()] })]);
}

#[test]
fn a_large_answer_comes_as_the_program_cut_it() {
    let played = play("claude-tool-100kB.txt", &[]);
    let output = played
        .events()
        .find_map(|event| if let Event::ToolResult { output, .. } = event { Some(output) } else { None });
    assert!(output.unwrap().starts_with("<persisted-output>\nOutput too large (98.6KB)."), "{output:?}");
}

#[test]
fn what_an_agent_does_that_this_one_started_is_told_and_what_it_says_is_not() {
    let played = play("claude-state-subagent.txt", &[allow()]);
    assert!(!played.said().contains("sub says"), "{}", played.said());
    let tools: Vec<&str> = played
        .events()
        .filter_map(|event| if let Event::ToolUse { tool, .. } = event { Some(tool.as_str()) } else { None })
        .collect();
    assert_eq!(tools, ["Agent", "Bash"]);
    assert_eq!(played.answer(), "noted the task");
}

#[test]
fn retries_are_told_while_people_wait() {
    assert_eq!(
        play("claude-529-then-ok.txt", &[]).notices(),
        [
            "the model did not answer: overloaded (529); retry 1 of 10 in 567 ms",
            "the model did not answer: overloaded (529); retry 2 of 10 in 1091 ms"
        ]
    );
    let dead = play("claude-endpoint-dead.txt", &[]);
    assert_eq!(dead.notices()[0], "the model did not answer: unknown; retry 1 of 3 in 593 ms");
}

#[test]
fn an_error_that_the_program_made_up_is_no_answer() {
    let played = play("claude-400.txt", &[]);
    assert_eq!((played.said().as_str(), played.notices()), ("", vec!["API Error: 400 fake 400"]));
}

#[test]
fn the_session_is_told_and_may_be_told_again() {
    let sessions = |played: &Told| -> Vec<String> {
        played
            .events()
            .filter_map(|event| if let Event::Init { session, .. } = event { session.clone() } else { None })
            .collect()
    };
    let played = play("claude-state-background-outlives-answer.txt", &[allow()]);
    let sessions_told = sessions(&played);
    assert_eq!(sessions_told.len(), 2);
    assert_eq!(sessions_told[0], sessions_told[1]);
    assert_eq!(sessions(&play("claude-resume-2-resumed.txt", &[])), ["b265e95a-01e1-45e9-b7f3-3a59567abc61"]);
}

/// What is told of these attempts at one message, each abandoned but the last, in deltas.
fn attempted(attempts: &[&[&str]]) -> String {
    let event = |event: Value| json!({"type": "stream_event", "event": event});
    let mut lines = Vec::new();
    for (number, attempt) in attempts.iter().enumerate() {
        lines.push(event(json!({"type": "message_start", "message": {"id": number.to_string()}})));
        for piece in *attempt {
            let delta = json!({"type": "text_delta", "text": piece});
            lines.push(event(json!({"type": "content_block_delta", "delta": delta})));
        }
        let mut stop = event(json!({"type": "message_stop"}));
        if number + 1 < attempts.len() {
            stop["abandoned_blocks"] = json!({"from_block_index": 0});
        }
        lines.push(stop);
    }
    Told { steps: hear(dialogue().as_mut(), &lines) }.said()
}

#[test]
fn an_attempt_that_repeats_a_broken_one_adds_only_what_is_new() {
    for (attempts, said) in [
        (&[&["Half a "][..], &["Ha", "lf a sen", "tence"]][..], "Half a sentence|"),
        (&[&["Half"], &["Half"], &["Half ", "a"]], "Half a|"),
        (&[&["Half"], &["Half a"], &["Half a sentence"]], "Half a sentence|"),
        (&[&["Half"], &["Half"]], "Half|"),
        (&[&["Half"], &[]], "Half|"),
        (&[&["Half a "], &["Ha", "ppy"]], "Half a |Happy|"),
        (&[&["Half a "], &["Half"]], "Half a |Half|"),
        (&[&[], &["Whole"]], "Whole|"),
    ] {
        assert_eq!(attempted(attempts), said, "{attempts:?}");
    }
}

#[test]
fn what_a_tool_answers_may_be_a_text_or_blocks() {
    let blocks = json!([{"type": "text", "text": "a"}, {"type": "image"}, {"type": "new"}, {"type": "text"}, 7]);
    for (content, expected) in [(json!("done"), "done"), (blocks, "a\n[image]\n"), (json!({"text": "a"}), "")] {
        let block = json!({"type": "tool_result", "tool_use_id": "t", "content": content});
        let told = hear(dialogue().as_mut(), &[json!({"type": "user", "message": {"content": [block]}})]);
        assert!(matches!(told.as_slice(), [Step::Event(Event::ToolResult { output, .. })] if output == expected));
    }
}
