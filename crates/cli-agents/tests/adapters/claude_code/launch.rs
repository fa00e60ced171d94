//! How the program is started.

use super::*;

fn arguments(order: &Order) -> String {
    start(order).unwrap().0.args.join(" ")
}

fn refusal(order: &Order) -> String {
    start(order).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn a_conversation_is_begun_under_a_chosen_name_and_taken_up_by_it() {
    let (launch, _) = start(&order()).unwrap();
    assert_eq!(
        launch.args.join(" "),
        "-p --add-dir . --setting-sources user --input-format stream-json --output-format stream-json --verbose --include-partial-messages \
         --permission-prompt-tool stdio --permission-mode default --session-id 0b6f3f0e-6a51-4a5e-9d0e-2f6d1c7a9e10"
    );
    assert!(launch.input, "the prompt and answers are written");
    let variable = |name: &str| launch.env.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    assert_eq!(variable("DISABLE_AUTOUPDATER"), Some("1"));
    assert_eq!(variable("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS"), Some("1"));

    let resumed = Order { session: Session::Resume(SESSION.to_owned()), ..order() };
    let arguments = arguments(&resumed);
    assert!(arguments.ends_with(&format!("--resume {SESSION}")), "{arguments}");
    assert!(!arguments.contains("--session-id"), "{arguments}");
}

#[test]
fn wishes_become_flags_and_the_operators_arguments_come_last() {
    let wishes = Order {
        model: Some("sonnet".to_owned()),
        effort: Some("high".to_owned()),
        args: vec!["--max-turns".to_owned(), "3".to_owned()],
        ..order()
    };
    let arguments = arguments(&wishes);
    assert!(arguments.ends_with("--model sonnet --effort high --max-turns 3"), "{arguments}");
    assert!(!arguments.contains("skip-permissions"), "{arguments}");
}

#[test]
fn denied_tools_are_taken_from_the_model_and_swallow_no_other_argument() {
    let rules = ["WebFetch", "mcp__*", "Bash(rm *)", "a,b", "--model", ""].map(str::to_owned).to_vec();
    let denying = Order { permissions: Permissions { deny: rules, ..Permissions::default() }, ..order() };
    let arguments = arguments(&denying);
    assert!(
        arguments.starts_with("-p --disallowedTools WebFetch,mcp__* --add-dir . --setting-sources user --input-format"),
        "{arguments}"
    );
}

#[test]
fn what_cannot_be_ordered_is_refused_by_name() {
    for nothing in ["", " \n\t"] {
        assert_eq!(start(&Order { prompt: nothing.to_owned(), ..order() }).err(), Some(OrderError::NoPrompt));
    }
    for session in ["", "latest", "-p", "../x"].map(str::to_owned) {
        for session in [Session::New(session.clone()), Session::Resume(session.clone())] {
            let refusal = refusal(&Order { session, ..order() });
            assert!(refusal.contains("session `") && refusal.contains("UUIDs"), "{refusal}");
        }
    }
    let effort = refusal(&Order { effort: Some("extreme".to_owned()), ..order() });
    assert_eq!(effort, "effort `extreme` is not one of Claude Code: use low, medium, high, xhigh, max");
    for model in ["", "--verbose"] {
        let refusal = refusal(&Order { model: Some(model.to_owned()), ..order() });
        assert!(refusal.starts_with(&format!("model `{model}`")), "{refusal}");
    }
}

#[test]
fn the_prompt_is_written_as_the_program_reads_it() {
    let recording = Recording::open("claude-plain-partial.txt");
    let written: Value = serde_json::from_str(recording.written()[0]).unwrap();
    let prompt = written["message"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(first_line(prompt), written);
}

#[test]
fn a_prompt_is_a_text_whatever_it_begins_with() {
    let prompt = |prompt: &str| first_line(prompt)["message"]["content"][0]["text"].as_str().unwrap().to_owned();
    assert_eq!(prompt("--version"), "--version");
    assert_eq!(prompt("zero \0 and\nlines"), "zero \0 and\nlines");
    // A command of the program's own, but for the space: so it was recorded.
    assert_eq!(prompt("/cost"), " /cost");
    let recording = Recording::open("claude-state-slash.txt");
    assert_eq!(serde_json::from_str::<Value>(recording.written()[0]).unwrap(), first_line("/cost"));
    assert_eq!(play("claude-state-slash.txt", &[]).answer(), "echo:  /cost");
}

fn first_line(prompt: &str) -> Value {
    let (_, mut dialogue) = start(&Order { prompt: prompt.to_owned(), ..order() }).unwrap();
    let mut steps = Steps::default();
    dialogue.begin(&mut steps);
    match steps.take().as_slice() {
        [Step::Write(line)] => serde_json::from_str(line).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_fixed_about_it() {
    let adapter = ClaudeCode;
    let about = adapter.about();
    assert_eq!((about.name.as_str(), about.binary.names.as_slice()), ("claude-code", &["claude".to_owned()][..]));
    assert_eq!(about.binary.install, "npm install -g @anthropic-ai/claude-code");
    assert!(about.binary.tested.iter().any(|tested| "2.1.325".starts_with(tested)));
    assert!(about.capabilities.approvals && about.capabilities.resume && about.capabilities.chosen_session);
    for variable in ["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR"] {
        assert!(about.variables.iter().any(|known| known == variable), "{variable}");
    }
}
