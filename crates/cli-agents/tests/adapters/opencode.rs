//! opencode 1.18 as it was recorded.

use std::path::Path;

use switchboard_cli_agents::adapters::{
    Acp, Adapter, Event, FailureKind, Opencode, OrderError, Permission, Session, Step, Steps,
};

use crate::lines::{
    answer, ending, events, exited, failure, feed, last_usage, launch, order, permissions, play, refused, said, survive,
};
use crate::replay::Recording;

const STOP: &str =
    r#"{"type":"step_finish","sessionID":"s","part":{"reason":"stop","tokens":{"input":1,"output":1},"cost":0.5}}"#;

fn rules(default: Permission, allow: &[&str], deny: &[&str]) -> String {
    let mut order = order("Go.");
    order.permissions = permissions(default, allow, deny);
    let env = launch(&Opencode, &order).env;
    env.into_iter().find(|(name, _)| name == "OPENCODE_PERMISSION").unwrap().1
}

#[test]
fn a_repository_with_plugins_is_refused_unless_anything_goes() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("opencode-plugins-{}", std::process::id()));
    let repository = folder.join("repository");
    let mut order = order("Go.");
    order.cwd = repository.join("deep");
    for made in [repository.join(".git"), repository.join(".opencode/agent"), order.cwd.join(".opencode")] {
        std::fs::create_dir_all(made).unwrap();
    }
    order.permissions = permissions(Permission::Deny, &[], &[]);
    let refused_by_both = |order: &switchboard_cli_agents::adapters::Order| {
        let mut asking = order.clone();
        asking.permissions.default = Permission::Ask;
        [refused(&Opencode, order).to_string(), refused(&Acp::opencode(), &asking).to_string()]
    };
    // Above the repository it is the operator's own, and what names no plugin does not count.
    let harmless = [folder.join("opencode.json"), repository.join("opencode.json")];
    for (file, content) in harmless.iter().zip([r#"{"plugin":["x"]}"#, r#"{"mcp":{}}"#]) {
        std::fs::write(file, content).unwrap();
    }
    launch(&Opencode, &order);
    for (file, content) in [
        (repository.join("opencode.jsonc"), r#"{"plugin":["./x.js"]}"#),
        (repository.join(".opencode/opencode.json"), r#"{"\u0070lugins":["x"]}"#),
        (order.cwd.join(".opencode/opencode.json"), r#"{"plugins":[]}"#),
        (order.cwd.join(".opencode/plugins"), ""),
    ] {
        std::fs::write(&file, content).unwrap();
        for message in refused_by_both(&order) {
            assert!(message.contains(&format!("the plugins of {},", file.display())), "{message}");
        }
        std::fs::remove_file(&file).unwrap();
    }
    std::fs::create_dir(order.cwd.join(".opencode/plugin")).unwrap();
    order.permissions = permissions(Permission::Allow, &[], &[]);
    launch(&Opencode, &order);
    order.permissions = permissions(Permission::Allow, &[], &["bash"]);
    assert!(refused(&Opencode, &order).to_string().contains("use `acp` as `cli`"));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_prompt_is_written_because_as_an_argument_it_would_be_put_in_quotes() {
    let recording = Recording::open("opencode-stdin-prompt.txt");
    let prompt = recording.written()[0].to_owned();
    assert!(prompt.starts_with("--help \""), "{prompt}");
    let mut order = order(&prompt);
    order.model = Some("fake/fake-model".to_owned());
    order.effort = Some("high".to_owned());
    order.session = Session::Resume("ses_1".to_owned());
    order.args = vec!["--agent".to_owned(), "build".to_owned()];
    let (launch, mut dialogue) = Opencode.start(&order).unwrap();
    insta::assert_snapshot!(
        launch.args.join(" "),
        @"run --format json --thinking --model=fake/fake-model --variant=high --session=ses_1 --agent build"
    );
    // It believes this more than the directory it is started in.
    assert!(launch.env.contains(&("PWD".to_owned(), "/home/agent/project".to_owned())));
    // What the repository's own configuration says does not count.
    assert!(launch.env.contains(&("OPENCODE_DISABLE_PROJECT_CONFIG".to_owned(), "1".to_owned())));
    assert!(launch.input);
    let steps = recording.play(dialogue.as_mut(), &[]).steps;
    assert_eq!(steps[..2], [Step::Write(prompt), Step::CloseInput]);
    assert_eq!(answer(&steps), Some("Answer. "));
    order.prompt = "\n".to_owned();
    assert_eq!(refused(&Opencode, &order), OrderError::NoPrompt);
}

#[test]
fn permissions_are_spelled_so_that_no_configuration_file_comes_after_them() {
    insta::assert_snapshot!(
        rules(Permission::Allow, &[], &[]),
        @r#"{"**":"allow","doom_loop *":"ask","question *":"deny","plan_enter *":"deny","plan_exit *":"deny"}"#
    );
    insta::assert_snapshot!(
        rules(Permission::Deny, &["read", "bash", "b*"], &["bash"]),
        @r#"{"**":"deny","read *":"allow","b* *":"allow","bash *":"deny","question *":"deny","plan_enter *":"deny","plan_exit *":"deny"}"#
    );
    // A rule for one tool that changes files is a rule for all, because opencode has one permission for them.
    insta::assert_snapshot!(
        rules(Permission::Allow, &["edit"], &["w*"]),
        @r#"{"**":"allow","doom_loop *":"ask","w* *":"deny","edit *":"deny","question *":"deny","plan_enter *":"deny","plan_exit *":"deny"}"#
    );
    let refuse = |default, allow: &[&str], deny: &[&str]| {
        let mut order = order("Go.");
        order.permissions = permissions(default, allow, deny);
        refused(&Opencode, &order).to_string()
    };
    assert!(
        refuse(Permission::Deny, &["write"], &[]).contains("write edit, which stands for edit, write, apply_patch")
    );
    assert!(refuse(Permission::Ask, &[], &[]).contains("cannot ask"));
    assert!(refuse(Permission::Allow, &[], &["b?sh"]).contains("no tool named \"b?sh\""));
    assert!(refuse(Permission::Deny, &[""], &[]).contains("no tool named \"\""));
}

#[test]
fn a_turn_is_named_by_its_first_event_and_ends_with_the_program() {
    insta::assert_json_snapshot!(play(&Opencode, &order("Say hello."), "opencode-plain.txt"));
    for recording in ["opencode-429-then-ok.txt", "opencode-tool-deny-config.txt"] {
        let steps = play(&Opencode, &order("Say hello."), recording);
        assert_eq!(said(&steps), "Hello from fake LLM|", "{recording}");
        assert_eq!(answer(&steps), Some("Hello from fake LLM"));
    }
    let steps = play(&Opencode, &order("Again."), "opencode-resume.txt");
    assert_eq!(answer(&steps), Some("I was resumed."));
    let steps = play(&Opencode, &order("Think."), "opencode-thinking.txt");
    assert!(events(&steps).contains(&&Event::Reasoning { text: "Let me think.".to_owned() }));
    assert_eq!(answer(&steps), Some("The answer is 42."));
}

#[test]
fn a_tool_is_told_once_and_a_command_that_failed_is_an_error() {
    insta::assert_json_snapshot!(play(&Opencode, &order("Run it."), "opencode-tool-allow.txt"));
    let steps = play(&Opencode, &order("Run it."), "opencode-tool-nonzero.txt");
    let result = events(&steps).into_iter().find(|event| matches!(event, Event::ToolResult { .. })).unwrap();
    assert!(
        matches!(result, Event::ToolResult { tool, output, is_error: true, .. } if tool == "bash" && output == "to-stderr\n")
    );
    assert_eq!(answer(&steps), Some("Done. Tool said: to-stderr"));
    let write = r#"{"type":"tool_use","part":{"tool":"write","callID":"c","state":{"status":"completed","input":{"filePath":"a.rs"},"output":"ok"}}}"#;
    let steps = feed(&Opencode, &order("Write."), &[write, STOP], &exited(0, ""));
    assert_eq!(events(&steps)[2], &Event::FilesChanged { paths: vec!["a.rs".to_owned()] });
}

#[test]
fn the_cost_is_the_sum_of_the_steps_and_what_was_cached_or_thought_is_in_it() {
    let step = r#"{"type":"step_finish","sessionID":"s","part":{"reason":"tool-calls","cost":0.25,"tokens":{"input":10,"output":5,"reasoning":3,"cache":{"read":100,"write":20}}}}"#;
    let usage = last_usage(&feed(&Opencode, &order("Go."), &[step, step, STOP], &exited(0, "")));
    assert_eq!((usage.input_tokens, usage.cached_tokens), (261, 200));
    assert_eq!((usage.output_tokens, usage.reasoning_tokens), (17, 6));
    assert_eq!(usage.cost_usd, Some(1.0));
    // Sums end at the greatest number, and nothing is paid back.
    let cost = |cost: &str| {
        let all = u64::MAX;
        format!(
            r#"{{"type":"step_finish","part":{{"reason":"tool-calls","cost":{cost},"tokens":{{"input":{all},"output":{all}}}}}}}"#
        )
    };
    let steps = [cost("1e308"), cost("1e308"), cost("-1e308"), cost("null")];
    let steps: Vec<&str> = steps.iter().map(String::as_str).chain([STOP]).collect();
    let usage = last_usage(&feed(&Opencode, &order("Go."), &steps, &exited(0, "")));
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.cost_usd), (u64::MAX, u64::MAX, Some(f64::MAX)));
}

#[test]
fn only_a_tool_that_is_refused_and_allowed_here_fails_the_turn() {
    let steps = play(&Opencode, &order("Run it."), "opencode-tool-ask-noninteractive.txt");
    let (kind, message) = failure(&steps);
    assert_eq!(kind, FailureKind::Refused);
    assert!(
        message.starts_with("opencode refused to use bash without asking: The user rejected")
            && message.ends_with("; look at opencode's own settings and at permissions of this agent"),
        "{message}"
    );
    // A rule said no, and the model was told so and said something else.
    let mut order = order("Run it.");
    order.permissions = permissions(Permission::Deny, &["bash"], &[]);
    let steps = play(&Opencode, &order, "opencode-rule-denied.txt");
    assert!(answer(&steps).is_some());
    // It was none of ours.
    order.permissions = permissions(Permission::Allow, &[], &[]);
    let steps = play(&Opencode, &order, "opencode-rule-denied.txt");
    let (kind, message) = failure(&steps);
    assert_eq!(kind, FailureKind::Refused);
    assert!(message.contains("using this specific tool call;"), "{message}");
    // A tool that was left out, called all the same: told in two ways.
    order.permissions = permissions(Permission::Deny, &["bash"], &[]);
    let steps = play(&Opencode, &order, "opencode-tool-left-out-all.txt");
    assert!(answer(&steps).is_some());
    order.permissions = permissions(Permission::Allow, &[], &["bash"]);
    let steps = play(&Opencode, &order, "opencode-tool-left-out.txt");
    assert!(answer(&steps).is_some());
    assert!(
        events(&steps)
            .iter()
            .any(|event| matches!(event, Event::ToolResult { tool, is_error: true, .. } if tool == "bash"))
    );
    let write = r#"{"type":"tool_use","part":{"tool":"invalid","state":{"status":"completed","input":{"tool":"write"},"output":"Model tried to call unavailable tool 'write'."}}}"#;
    for deny in ["edit", "apply_patch"] {
        order.permissions = permissions(Permission::Allow, &[], &[deny]);
        assert_eq!(answer(&feed(&Opencode, &order, &[write, STOP], &exited(0, ""))), None);
    }
    // With everything allowed, a tool that is not there is a mistake of the model's.
    order.permissions = permissions(Permission::Allow, &[], &[]);
    assert!(answer(&play(&Opencode, &order, "opencode-tool-left-out.txt")).is_some());
}

#[test]
fn a_stream_that_breaks_off_again_and_again_is_stopped_after_three_times() {
    let steps = play(&Opencode, &order("Cut."), "opencode-stream-cut.txt");
    let (kind, message) = failure(&steps);
    assert_eq!(kind, FailureKind::Reported);
    assert!(message.contains("3 times in a row"), "{message}");
    assert_eq!(said(&steps), "Half a sentence|Half a sentence|Half a sentence|");
    // Not if it gets on between.
    let broken = r#"{"type":"step_finish","part":{"reason":"unknown"}}"#;
    let tool = r#"{"type":"tool_use","part":{"tool":"bash","state":{"status":"completed"}}}"#;
    let lines = [broken, broken, tool, broken, broken, STOP];
    assert_eq!(answer(&feed(&Opencode, &order("Go."), &lines, &exited(0, ""))), None);
}

#[test]
fn the_first_error_counts_unless_it_goes_on() {
    let steps = play(&Opencode, &order("Bad."), "opencode-400.txt");
    assert_eq!(failure(&steps), (FailureKind::Reported, "fake 400"));
    let error = |name: &str, data: &str| {
        format!(r#"{{"type":"error","sessionID":"s","error":{{"name":"{name}","data":{data}}}}}"#)
    };
    for (name, data, kind) in [
        ("APIError", r#"{"message":"no","statusCode":401}"#, FailureKind::NotLoggedIn),
        ("ProviderAuthError", r#"{"message":"no"}"#, FailureKind::NotLoggedIn),
        ("UnknownError", r#"{"message":"Incorrect API key provided: sk-x"}"#, FailureKind::NotLoggedIn),
        ("ContextOverflowError", r#"{"message":"no"}"#, FailureKind::Limit),
        ("MessageOutputLengthError", "{}", FailureKind::Limit),
        ("MessageAbortedError", r#"{"message":"no"}"#, FailureKind::Interrupted),
        ("UnknownError", r#"{"message":"no"}"#, FailureKind::Reported),
    ] {
        let first = error(name, data);
        let second = error("UnknownError", r#"{"message":"second"}"#);
        let steps = feed(&Opencode, &order("Go."), &[&first, &second], &exited(1, ""));
        assert_eq!(failure(&steps).0, kind, "{name}");
        assert_ne!(failure(&steps).1, "second");
    }
    let rejected = error("APIError", r#"{"message":"Unauthorized","statusCode":401}"#);
    let (_, mut dialogue) = Opencode.start(&order("Go.")).unwrap();
    let mut steps = Steps::default();
    for line in [&*rejected, STOP, &*rejected] {
        dialogue.line(line, &mut steps);
    }
    assert!(!steps.take().iter().any(|step| matches!(step, Step::Finish(_))), "each may be a token that expired");
    dialogue.line(&rejected, &mut steps);
    assert_eq!(failure(&steps.take()), (FailureKind::NotLoggedIn, "Unauthorized"), "without waiting for its end");
    // A conversation that is too long is made shorter, and the turn goes on; the exit code stays 1.
    let overflow = error("ContextOverflowError", r#"{"message":"too long"}"#);
    let steps = feed(&Opencode, &order("Go."), &[&overflow, r#"{"type":"step_start"}"#, STOP], &exited(1, ""));
    assert!(events(&steps).contains(&&Event::Notice { text: "too long".to_owned() }));
    assert_eq!(answer(&steps), None);
}

#[test]
fn how_the_last_step_finished_says_how_the_turn_ended() {
    for (reason, kind) in [
        ("length", FailureKind::Limit),
        ("content-filter", FailureKind::Reported),
        ("tool-calls", FailureKind::Refused),
        ("unknown", FailureKind::NoResult),
    ] {
        let step = format!(r#"{{"type":"step_finish","part":{{"reason":"{reason}"}}}}"#);
        assert_eq!(failure(&feed(&Opencode, &order("Go."), &[&step], &exited(0, ""))).0, kind, "{reason}");
    }
    // A step that began after it makes it no end.
    let steps = feed(&Opencode, &order("Go."), &[STOP, r#"{"type":"step_start"}"#], &exited(0, ""));
    assert_eq!(failure(&steps).0, FailureKind::NoResult);
    // A resumed conversation may print nothing at all.
    let steps = feed(&Opencode, &order("Go."), &[], &exited(0, ""));
    let text = "opencode exited with code 0 before it said how the turn went; send another message in the same context to \
                go on, and run `switchboard doctor` if it happens again";
    assert_eq!(failure(&steps).1, text);
}

#[test]
fn silence_signals_and_unknown_conversations() {
    let opencode = Opencode;
    for recording in ["opencode-sigint-during-startup.txt", "opencode-sigint-stream.txt", "opencode-sigterm-tool.txt"] {
        assert_eq!(failure(&play(&opencode, &order("Slow."), recording)).0, FailureKind::Interrupted, "{recording}");
    }
    assert_eq!(failure(&feed(&opencode, &order("Slow."), &[], &exited(143, ""))).0, FailureKind::Interrupted);
    assert_eq!(failure(&play(&opencode, &order("Hi."), "opencode-endpoint-dead.txt")).0, FailureKind::NoResult);
    // Two that make the database of a new home at once: the other one was first, and nothing was done.
    let locked = "Error: Unexpected error\n\ndatabase is locked";
    assert_eq!(failure(&feed(&opencode, &order("Hi."), &[], &exited(1, locked))).0, FailureKind::NotReady);
    let begun = r#"{"type":"step_start","sessionID":"s","part":{}}"#;
    assert_eq!(failure(&feed(&opencode, &order("Hi."), &[begun], &exited(1, locked))).0, FailureKind::NoResult);
    let mut resumed = order("Again.");
    resumed.session = Session::Resume("ses_unknown".to_owned());
    let steps = play(&opencode, &resumed, "opencode-resume-unknown.txt");
    assert_eq!(failure(&steps).0, FailureKind::UnknownSession);
    let (_, mut dialogue) = opencode.start(&order("Slow.")).unwrap();
    let mut steps = Steps::default();
    dialogue.line(r#"{"type":"step_finish","part":{"reason":"tool-calls"}}"#, &mut steps);
    dialogue.interrupt(&mut steps);
    dialogue.ended(&exited(0, ""), &mut steps);
    assert_eq!(failure(&steps.take()).0, FailureKind::Interrupted);
}

#[test]
fn hostile_lines_are_survived() {
    let good = [
        r#"{"type":"step_start","sessionID":"s","part":{}}"#,
        r#"{"type":"text","sessionID":"s","part":{"text":"Hi"}}"#,
        STOP,
    ];
    survive(&Opencode, &good);
    ending(&feed(&Opencode, &order("Go."), &good, &exited(0, "")));
}
