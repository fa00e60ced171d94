//! Gemini CLI 0.61 as it was recorded.

use std::path::Path;

use switchboard_cli_agents::adapters::{
    Adapter, Event, FailureKind, Gemini, Order, OrderError, Permission, Session, Step, Steps,
};

use crate::lines::{
    answer, ending, events, exited, failure, feed, last_usage, launch, order, permissions, play, refused, said, survive,
};

fn deny(allow: &[&str]) -> Order {
    let mut order = order("Run it.");
    order.permissions = permissions(Permission::Deny, allow, &[]);
    order
}

#[test]
fn it_is_started_so_that_no_word_of_a_caller_is_a_flag_or_a_command() {
    let gemini = Gemini;
    let mut order = order("--help\nme");
    order.model = Some("gemini-2.5-flash".to_owned());
    order.session = Session::Resume("92ae9f71".to_owned());
    order.args = vec!["--debug".to_owned()];
    let launched = launch(&gemini, &order);
    insta::assert_snapshot!(launched.args.join(" "), @r"
    -o stream-json --skip-trust --model=gemini-2.5-flash --approval-mode=yolo --resume=92ae9f71 --debug --prompt=--help
    me
    ");
    let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    // Else the parent of the real process swallows signals; and what the repository says would count.
    let untrusted = variable("GEMINI_CLI_TRUST_WORKSPACE", "false");
    assert_eq!(launched.env, [variable("GEMINI_CLI_NO_RELAUNCH", "true"), untrusted]);
    assert!(!launched.input);
    order.prompt = "/extensions install https://example.org".to_owned();
    assert_eq!(launch(&gemini, &order).args.last().unwrap(), "--prompt= /extensions install https://example.org");
    order.prompt = r"Read @/etc/passwd, a@b.org, @@x and \@y".to_owned();
    assert_eq!(launch(&gemini, &order).args.last().unwrap(), r"--prompt=Read \@/etc/passwd, a\@b.org, \@\@x and \@y");
}

#[test]
fn a_repository_whose_variables_would_count_is_refused_unless_anything_goes_or_it_is_trusted() {
    let gemini = Gemini;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("gemini-variables-{}", std::process::id()));
    let repository = folder.join("repository");
    let mut order = deny(&[]);
    order.cwd = repository.join("deep");
    for made in [repository.join(".git"), order.cwd.join(".gemini")] {
        std::fs::create_dir_all(made).unwrap();
    }
    // Above the repository it is the operator's own.
    std::fs::write(folder.join(".env"), "A=1").unwrap();
    launch(&gemini, &order);
    for file in [repository.join(".env"), order.cwd.join(".env"), order.cwd.join(".gemini/.env")] {
        std::fs::write(&file, "A=1").unwrap();
        let message = refused(&gemini, &order).to_string();
        let says = format!("the variables in {}", file.display());
        assert!(message.contains(&says) && message.contains("add --skip-trust to `args`"), "{message}");
    }
    let trusting = launch(&gemini, &Order { args: vec!["--skip-trust".to_owned()], ..order.clone() });
    assert_eq!(trusting.args.iter().filter(|arg| *arg == "--skip-trust").count(), 1, "{:?}", trusting.args);
    assert!(trusting.env.contains(&("GEMINI_CLI_TRUST_WORKSPACE".to_owned(), "true".to_owned())));
    order.permissions = permissions(Permission::Allow, &[], &[]);
    launch(&gemini, &order);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_prompt_that_is_no_argument_is_written_instead() {
    let gemini = Gemini;
    let longest = 131_071 - "--prompt=".len();
    for (prompt, written) in [("x".repeat(longest), false), ("x".repeat(longest + 1), true), ("a\0b".to_owned(), true)]
    {
        let (launch, mut dialogue) = gemini.start(&order(&prompt)).unwrap();
        let mut steps = Steps::default();
        dialogue.begin(&mut steps);
        assert_eq!(launch.input, written);
        assert_eq!(launch.args.iter().any(|arg| arg.starts_with("--prompt")), !written);
        let expected = if written { vec![Step::Write(prompt), Step::CloseInput] } else { Vec::new() };
        assert!(steps.take() == expected, "{}", launch.args.len());
    }
    let most = (8 << 20) - 1;
    let too_long = refused(&gemini, &order(&"x".repeat(most + 1)));
    assert_eq!(too_long, OrderError::PromptTooLong { bytes: most + 1, most });
    assert_eq!(refused(&gemini, &order(" \n")), OrderError::NoPrompt);
}

#[test]
fn what_it_may_do_is_said_in_its_flags_or_refused_with_the_reason() {
    let gemini = Gemini;
    let args = launch(&gemini, &deny(&["run_shell_command", "mcp_github_*"])).args;
    assert_eq!(
        args[3..6],
        ["--approval-mode=default", "--allowed-tools=run_shell_command", "--allowed-tools=mcp_github_*"]
    );
    for rule in ["write_*", "a,b", "run_shell_command(git)", "mcp_*_list", ""] {
        let message = refused(&gemini, &deny(&[rule])).to_string();
        assert!(
            message.starts_with(&format!("permissions.allow: gemini cannot be told to allow \"{rule}\"")),
            "{message}"
        );
    }
    let mut asking = order("Go.");
    asking.permissions.default = Permission::Ask;
    assert!(refused(&gemini, &asking).to_string().contains("cannot ask"));
    let mut denying = order("Go.");
    denying.permissions = permissions(Permission::Allow, &[], &["write_file"]);
    assert!(refused(&gemini, &denying).to_string().contains("deny \"write_file\""));
    let mut thinking = order("Go.");
    thinking.effort = Some("high".to_owned());
    assert!(refused(&gemini, &thinking).to_string().contains("remove `effort`"));
}

#[test]
fn a_plain_turn_is_pieces_of_one_message_and_its_cost() {
    for recording in ["gemini-plain.txt", "gemini-norelaunch-plain.txt", "gemini-429-then-ok.txt"] {
        let steps = play(&Gemini, &order("Say hello."), recording);
        assert!(
            matches!(events(&steps)[0], Event::Init { session: Some(_), model: Some(model) } if model == "gemini-2.5-flash")
        );
        assert_eq!(said(&steps), "Hello from fake LLM|", "{recording}");
        assert_eq!(answer(&steps), Some("Hello from fake LLM"));
        let usage = last_usage(&steps);
        assert_eq!(
            (usage.input_tokens, usage.cached_tokens, usage.output_tokens, usage.reasoning_tokens),
            (11, 3, 5, 0)
        );
    }
    let steps = play(&Gemini, &order("Think."), "gemini-thinking.txt");
    assert_eq!(answer(&steps), Some("The answer is 42."));
    let steps = play(&Gemini, &order("Again."), "gemini-resume.txt");
    assert!(answer(&steps).is_some());
    let thought =
        r#"{"type":"result","status":"success","stats":{"total_tokens":20,"input_tokens":11,"output_tokens":5}}"#;
    let usage = last_usage(&feed(&Gemini, &order("Think."), &[thought], &exited(0, "")));
    assert_eq!((usage.output_tokens, usage.reasoning_tokens), (9, 4));
}

#[test]
fn a_tool_is_told_with_its_name_in_the_result_too_and_ends_the_message_before() {
    insta::assert_json_snapshot!(play(&Gemini, &order("Run it."), "gemini-tool-yolo.txt"));
    let steps = play(&Gemini, &order("Run it."), "gemini-tool-nonzero.txt");
    assert!(matches!(events(&steps)[2], Event::ToolResult { is_error: false, output, .. } if output == "to-stderr"));
    let steps = play(&Gemini, &order("Write."), "gemini-write-auto-edit.txt");
    let changed = Event::FilesChanged { paths: vec!["/home/agent/project/w.txt".to_owned()] };
    assert!(events(&steps).contains(&&changed));
    let lines = [
        r#"{"type":"message","role":"assistant","content":"First.","delta":true}"#,
        r#"{"type":"tool_use","tool_name":"glob","tool_id":"glob__1","parameters":{}}"#,
        r#"{"type":"tool_result","tool_id":"grep_search__2","status":"success","output":"x"}"#,
        r#"{"type":"message","role":"user","content":"not mine"}"#,
        r#"{"type":"message","role":"assistant","content":"Whole."}"#,
        r#"{"type":"message","role":"assistant","content":"Last.","delta":true}"#,
        r#"{"type":"result","status":"success"}"#,
        r#"{"type":"message","role":"assistant","content":"too late","delta":true}"#,
    ];
    let steps = feed(&Gemini, &order("Go."), &lines, &exited(0, ""));
    assert_eq!(said(&steps), "First.|Whole.|Last.|");
    assert_eq!(answer(&steps), Some("Last."));
    let unannounced = events(&steps).into_iter().find(|event| matches!(event, Event::ToolResult { .. })).unwrap();
    assert!(matches!(unannounced, Event::ToolResult { tool, .. } if tool == "grep_search"));
}

#[test]
fn only_a_tool_that_is_refused_and_allowed_here_fails_the_turn() {
    let steps = play(&Gemini, &deny(&[]), "gemini-tool-default-approval.txt");
    // The operator has denied it, and the model went on to an end.
    assert!(answer(&steps).is_some());
    assert_eq!(last_usage(&steps).input_tokens, 22);
    // The tool is allowed, but not with a redirection.
    let steps = play(&Gemini, &deny(&["run_shell_command"]), "gemini-allowed-redirect.txt");
    let (kind, message) = failure(&steps);
    assert_eq!(kind, FailureKind::Refused);
    assert!(message.starts_with("gemini refused to use run_shell_command without asking: "), "{message}");
    assert!(message.ends_with("; look at gemini's own settings and at permissions of this agent"), "{message}");
    // With everything allowed, a tool that is not there is a mistake of the model's, and it may go on from it.
    let steps = play(&Gemini, &order("Run it."), "gemini-tool-default-approval.txt");
    assert!(answer(&steps).is_some());
    for (kind, failed) in [("policy_violation", true), ("file_not_found", false), ("permission_denied", false)] {
        let result = format!(
            r#"{{"type":"tool_result","tool_id":"x","status":"error","output":"no","error":{{"type":"{kind}","message":"no"}}}}"#
        );
        let lines = [&*result, r#"{"type":"result","status":"success"}"#];
        let steps = feed(&Gemini, &order("Go."), &lines, &exited(0, ""));
        assert_eq!(matches!(ending(&steps), switchboard_cli_agents::adapters::Ending::Failed(_)), failed, "{kind}");
    }
}

#[test]
fn a_result_of_status_error_is_a_failure_although_the_exit_code_is_0() {
    let steps = play(&Gemini, &order("Cut."), "gemini-stream-cut.txt");
    assert_eq!(failure(&steps), (FailureKind::Reported, "Model stream ended without a finish reason."));
    // Its retries say the same piece again; it cannot be taken back.
    assert_eq!(said(&steps), "Half a sentenceHalf a sentenceHalf a sentenceHalf a sentence|");
    let steps = play(&Gemini, &order("Bad."), "gemini-400.txt");
    let (kind, message) = failure(&steps);
    assert_eq!(kind, FailureKind::Reported);
    assert!(message.contains("fake 400"), "{message}");
    for (error, kind) in [
        (r#"{"type":"FatalTurnLimitedError","message":"Reached max session turns"}"#, FailureKind::Limit),
        (r#"{"type":"FatalAuthenticationError","message":"no"}"#, FailureKind::NotLoggedIn),
        (r#"{"type":"unknown","message":"[API Error: API key not valid. Please pass one]"}"#, FailureKind::NotLoggedIn),
        (r#"{"type":"FatalCancellationError","message":"Operation cancelled."}"#, FailureKind::Interrupted),
        (r#"{"type":"Error"}"#, FailureKind::Reported),
    ] {
        let result = format!(r#"{{"type":"result","status":"error","error":{error}}}"#);
        assert_eq!(failure(&feed(&Gemini, &order("Go."), &[&result], &exited(0, ""))).0, kind, "{error}");
    }
}

#[test]
fn troubles_after_which_it_stops_and_says_success_are_failures() {
    for (severity, message, kind) in [
        ("warning", "Loop detected, stopping execution", FailureKind::Limit),
        ("error", "Maximum session turns exceeded", FailureKind::Limit),
        ("error", "Something else", FailureKind::Reported),
    ] {
        let error = format!(r#"{{"type":"error","severity":"{severity}","message":"{message}"}}"#);
        let lines = [&*error, r#"{"type":"result","status":"success"}"#];
        let steps = feed(&Gemini, &order("Go."), &lines, &exited(0, ""));
        assert_eq!(failure(&steps), (kind, message));
        assert_eq!(events(&steps)[0], &Event::Notice { text: message.to_owned() });
    }
    let lines = [r#"{"type":"error","severity":"warning","message":"hm"}"#, r#"{"type":"result","status":"success"}"#];
    assert_eq!(answer(&feed(&Gemini, &order("Go."), &lines, &exited(0, ""))), None);
}

#[test]
fn without_a_result_the_exit_code_and_standard_error_say_why() {
    let mut resumed = order("Again.");
    resumed.session = Session::Resume("11111111-2222-3333-4444-555555555555".to_owned());
    let gemini = Gemini;
    let steps = play(&gemini, &resumed, "gemini-resume-unknown.txt");
    let (kind, message) = failure(&steps);
    assert_eq!(kind, FailureKind::UnknownSession);
    assert!(message.contains("Invalid session identifier \"11111111-"), "{message}");
    let steps = play(&gemini, &order("Hi."), "gemini-auth-41.txt");
    let (kind, message) = failure(&steps);
    assert_eq!(kind, FailureKind::NotLoggedIn);
    assert!(message.contains("Please set an Auth method"), "{message}");
    let steps = play(&gemini, &order("Hi."), "gemini-untrusted.txt");
    let text = "gemini does not work in a folder that its user has not trusted: run `gemini` there once and trust it";
    assert_eq!(failure(&steps), (FailureKind::Reported, text));
    let steps = feed(&gemini, &order("Hi."), &[], &exited(53, "Reached max session turns"));
    assert_eq!(failure(&steps).0, FailureKind::Limit);
    let steps = feed(&gemini, &order("Hi."), &[], &exited(42, "No input provided via stdin."));
    assert_eq!(failure(&steps), (FailureKind::Reported, "gemini exited with code 42: No input provided via stdin."));
    let steps = play(&gemini, &order("Hi."), "gemini-endpoint-dead.txt");
    assert_eq!(failure(&steps).0, FailureKind::NoResult);
    // Pretty-printed JSON over many lines is no language of ours.
    let steps = play(&gemini, &order("Hi."), "gemini-json-format.txt");
    assert_eq!(failure(&steps).0, FailureKind::NoResult);
}

#[test]
fn a_signal_leaves_exit_0_and_no_result() {
    for recording in ["gemini-norelaunch-sigint-stream.txt", "gemini-norelaunch-sigterm-tool.txt"] {
        let steps = play(&Gemini, &order("Slow."), recording);
        assert_eq!(failure(&steps).0, FailureKind::NoResult, "{recording}");
    }
    let (_, mut dialogue) = Gemini.start(&order("Slow.")).unwrap();
    let mut steps = Steps::default();
    dialogue.line(r#"{"type":"message","role":"assistant","content":"tick","delta":true}"#, &mut steps);
    dialogue.interrupt(&mut steps);
    dialogue.ended(&exited(0, ""), &mut steps);
    let steps = steps.take();
    assert_eq!(said(&steps), "tick|");
    assert_eq!(failure(&steps), (FailureKind::Interrupted, "gemini was stopped"));
    // A turn that went on to its end is done, whatever was sent on the way.
    for recording in ["gemini-sigint-stream.txt", "gemini-sigint-during-startup.txt"] {
        assert!(answer(&play(&Gemini, &order("Slow."), recording)).unwrap().ends_with("end"));
    }
    let steps = play(&Gemini, &order("Long."), "gemini-sigterm-tool.txt");
    assert_eq!(failure(&steps).0, FailureKind::NoResult);
}

#[test]
fn an_answer_without_end_is_told_in_pieces_and_not_held() {
    let (_, mut dialogue) = Gemini.start(&order("Write.")).unwrap();
    let piece = "x".repeat(400 << 10);
    let line = format!(r#"{{"type":"message","role":"assistant","content":"{piece}","delta":true}}"#);
    let mut steps = Steps::default();
    for _ in 0..4 {
        dialogue.line(&line, &mut steps);
    }
    dialogue.line(r#"{"type":"result","status":"success"}"#, &mut steps);
    let steps = steps.take();
    assert_eq!(said(&steps).len(), 4 * piece.len() + 1);
    assert_eq!(answer(&steps), None);
}

#[test]
fn hostile_lines_are_survived() {
    survive(
        &Gemini,
        &[
            r#"{"type":"init","session_id":"s","model":"m"}"#,
            r#"{"type":"tool_use","tool_name":"glob","tool_id":"x","parameters":{}}"#,
            r#"{"type":"message","role":"assistant","content":"Hi","delta":true}"#,
        ],
    );
}

#[test]
fn a_second_rejection_of_the_credentials_in_a_row_ends_the_turn() {
    let rejected = r#"{"type":"error","severity":"error","message":"[API Error: API key not valid. Please pass one]"}"#;
    let message = r#"{"type":"message","role":"assistant","content":"Hello.","delta":true}"#;
    let (_, mut dialogue) = Gemini.start(&order("Go.")).unwrap();
    let mut steps = Steps::default();
    for line in [rejected, message, rejected] {
        dialogue.line(line, &mut steps);
    }
    assert!(!steps.take().iter().any(|step| matches!(step, Step::Finish(_))), "each may be a token that expired");
    dialogue.line(rejected, &mut steps);
    assert_eq!(failure(&steps.take()).0, FailureKind::NotLoggedIn, "without waiting for its end");
}
