//! Cursor's agent as its documentation says: the recordings were typed after it.

use switchboard_cli_agents::adapters::{Adapter, Cursor, Event, FailureKind, OrderError, Permission, Session, Steps};

use crate::lines::{
    answer, ending, events, exited, failure, feed, last_usage, launch, order, permissions, play, refused, said, survive,
};

fn completed(call: &str) -> String {
    format!(r#"{{"type":"tool_call","subtype":"completed","call_id":"c","tool_call":{call}}}"#)
}

fn result_of(call: &str) -> (String, String, bool) {
    let steps = feed(&Cursor, &order("Go."), &[&completed(call)], &exited(0, ""));
    match events(&steps).first() {
        Some(Event::ToolResult { tool, output, is_error, .. }) => (tool.clone(), output.clone(), *is_error),
        other => panic!("{other:?}"),
    }
}

#[test]
fn it_is_started_so_that_no_word_of_a_caller_is_a_flag_or_a_command() {
    let cursor = Cursor;
    assert_eq!(cursor.about().binary.names, ["cursor-agent", "agent"]);
    let mut order = order("--help me");
    order.model = Some("auto".to_owned());
    order.session = Session::Resume("c6b62c6f".to_owned());
    order.args = vec!["--approve-mcps".to_owned()];
    let launched = launch(&cursor, &order);
    assert!(!launched.input);
    insta::assert_snapshot!(
        launched.args[..launched.args.len() - 1].join(" "),
        @"-p --output-format stream-json --trust --model=auto --force --resume=c6b62c6f --approve-mcps --"
    );
    assert_eq!(launched.args.last().unwrap(), "--help me\n");
    // Alone, this word would log the operator out.
    order.prompt = "logout".to_owned();
    assert_eq!(launch(&cursor, &order).args.last().unwrap(), "logout\n");
    order.prompt = "x".repeat(131_070);
    assert_eq!(launch(&cursor, &order).args.last().unwrap().len(), 131_071);
    order.prompt.push('x');
    assert_eq!(refused(&cursor, &order), OrderError::PromptTooLong { bytes: 131_071, most: 131_070 });
    order.prompt = "a\0b".to_owned();
    assert_eq!(refused(&cursor, &order), OrderError::ZeroByte);
    order.prompt = String::new();
    assert_eq!(refused(&cursor, &order), OrderError::NoPrompt);
}

#[test]
fn what_it_may_do_is_one_flag_and_single_tools_cannot_be_named() {
    let cursor = Cursor;
    for (default, flag) in [(Permission::Allow, "--force"), (Permission::Deny, "--mode=ask")] {
        let mut order = order("Go.");
        order.permissions = permissions(default, &[], &[]);
        let args = launch(&cursor, &order).args;
        assert_eq!(args.get(4).map(String::as_str), Some(flag), "{args:?}");
    }
    let mut asking = order("Go.");
    asking.permissions = permissions(Permission::Ask, &[], &[]);
    assert_eq!(
        refused(&cursor, &asking).to_string(),
        "permissions.default: cursor cannot ask while it works, and would edit files unasked: write allow to let it do \
         everything, or deny to let it only read"
    );
    for (allow, deny) in [(&["shell"][..], &[][..]), (&[][..], &["shell"][..])] {
        let mut order = order("Go.");
        order.permissions = permissions(Permission::Allow, allow, deny);
        assert!(refused(&cursor, &order).to_string().contains("cannot be told about \"shell\""));
    }
    let mut order = order("Go.");
    order.effort = Some("high".to_owned());
    assert!(refused(&cursor, &order).to_string().contains("remove `effort`"));
}

#[test]
fn a_turn_is_messages_tools_and_a_result() {
    insta::assert_json_snapshot!(play(&Cursor, &order("Read README.md"), "cursor-plain.txt"));
}

#[test]
fn a_tool_that_it_rejects_by_itself_fails_the_turn_although_it_says_success() {
    let mut order = order("Test.");
    let steps = play(&Cursor, &order, "cursor-rejected.txt");
    let message = "cursor refused to use shell without asking: not allowed without approval; look at cursor's own \
                   settings and at permissions of this agent";
    assert_eq!(failure(&steps), (FailureKind::Refused, message));
    assert_eq!(said(&steps), "I could not run the tests.|");
    let usage = last_usage(&steps);
    assert_eq!((usage.input_tokens, usage.cached_tokens, usage.output_tokens), (130, 100, 7));
    let denied = completed(r#"{"writeToolCall":{"result":{"permissionDenied":{"error":"no"}}}}"#);
    let lines = [&*denied, r#"{"type":"result","subtype":"success","is_error":false,"result":"x"}"#];
    assert_eq!(failure(&feed(&Cursor, &order, &lines, &exited(0, ""))).0, FailureKind::Refused);
    // It was told only to read, and went on to an end.
    order.permissions.default = Permission::Deny;
    assert_eq!(answer(&feed(&Cursor, &order, &lines, &exited(0, ""))), Some("x"));
}

#[test]
fn the_name_of_a_tool_is_in_its_member_or_inside_and_what_is_no_success_is_an_error() {
    for (call, tool, output, is_error) in [
        (r#"{"shellToolCall":{"result":{"success":{"exitCode":0,"stdout":"ok"}}}}"#, "shell", "ok", false),
        (r#"{"shellToolCall":{"result":{"success":{"exitCode":3,"stdout":"bad"}}}}"#, "shell", "bad", true),
        (r#"{"globToolCall":{"result":{"success":{"files":["a"]}}}}"#, "glob", r#"{"files":["a"]}"#, false),
        (r#"{"readToolCall":{"result":{"error":{"errorMessage":"no such file"}}}}"#, "read", "no such file", true),
        (r#"{"editToolCall":{"result":{"error":"no"}}}"#, "edit", "no", true),
        (r#"{"lsToolCall":{}}"#, "ls", "", true),
        (r#"{"function":{"name":"mcp_x","arguments":"{}"},"result":{"success":{"content":"y"}}}"#, "mcp_x", "y", false),
    ] {
        assert_eq!(result_of(call), (tool.to_owned(), output.to_owned(), is_error), "{call}");
    }
    let started = r#"{"type":"tool_call","subtype":"started","call_id":"c","tool_call":{"function":{"name":"mcp_x","arguments":"{\"a\":1}"}}}"#;
    let steps = feed(&Cursor, &order("Go."), &[started], &exited(0, ""));
    assert!(matches!(events(&steps)[0], Event::ToolUse { tool, input, .. } if tool == "mcp_x" && input["a"] == 1));
}

#[test]
fn a_failed_turn_has_no_result_and_says_why_on_standard_error() {
    let cursor = Cursor;
    for (exit, kind) in [
        (exited(1, "Error: Authentication required. Please run 'agent login' first"), FailureKind::NotLoggedIn),
        (exited(1, "Error: Not logged in"), FailureKind::NotLoggedIn),
        (exited(1, "Cannot use this model: gpt-none"), FailureKind::Reported),
        (exited(0, ""), FailureKind::NoResult),
        (exited(130, ""), FailureKind::Interrupted),
    ] {
        assert_eq!(failure(&feed(&cursor, &order("Go."), &[], &exit)).0, kind, "{exit:?}");
    }
    let steps = feed(&cursor, &order("Go."), &[], &exited(1, "Cannot use this model: gpt-none\n"));
    assert_eq!(failure(&steps).1, "cursor exited with code 1: Cannot use this model: gpt-none");
    let failed = r#"{"type":"result","subtype":"error","is_error":true,"result":"the connection was lost"}"#;
    let steps = feed(&cursor, &order("Go."), &[failed], &exited(1, ""));
    assert_eq!(failure(&steps), (FailureKind::Reported, "the connection was lost"));
    let (_, mut dialogue) = cursor.start(&order("Go.")).unwrap();
    let mut steps = Steps::default();
    dialogue.interrupt(&mut steps);
    dialogue.ended(&exited(1, "Aborted"), &mut steps);
    assert_eq!(failure(&steps.take()).0, FailureKind::Interrupted);
}

#[test]
fn hostile_lines_are_survived() {
    let good = [
        r#"{"type":"system","subtype":"init","session_id":"s","model":"m"}"#,
        r#"{"type":"assistant","message":{"content":[{"type":"text","text":"Hi"}]}}"#,
        r#"{"type":"result","subtype":"success","is_error":false,"result":"Hi"}"#,
    ];
    survive(&Cursor, &good);
    let steps = feed(&Cursor, &order("Go."), &good, &exited(0, ""));
    ending(&steps);
    assert_eq!(answer(&steps), Some("Hi"));
}
