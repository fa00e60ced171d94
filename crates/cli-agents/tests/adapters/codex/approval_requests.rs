//! What the app server may ask, and how it is answered.

use serde_json::{Value, json};
use switchboard_cli_agents::adapters::{Approval, Decision, Dialogue, Event, Step};

use super::{app_server, decide, feed, written};

const DENY: Decision = Decision::Deny { reason: None };

/// Asks, and gives back what is told and what is written at once.
fn ask(dialogue: &mut dyn Dialogue, id: Value, method: &str, params: Value) -> (Option<Approval>, Vec<Value>) {
    let steps = feed(dialogue, &json!({ "id": id, "method": method, "params": params }).to_string());
    let asked = steps.iter().find_map(|step| match step {
        Step::Event(Event::ApprovalRequired(approval)) => Some(approval.clone()),
        _ => None,
    });
    (asked, written(&steps))
}

fn command(dialogue: &mut dyn Dialogue, id: Value, command: &str) -> Approval {
    ask(dialogue, id, "item/commandExecution/requestApproval", json!({ "command": command })).0.unwrap()
}

#[test]
fn an_id_is_echoed_exactly_and_answered_once() {
    let mut dialogue = app_server();
    for (id, request) in
        [(json!(0), "0"), (json!("0"), "\"0\""), (json!(18_446_744_073_709_551_615_u64), "18446744073709551615")]
    {
        assert_eq!(command(dialogue.as_mut(), id.clone(), "ls").request, request);
        let answered = written(&decide(dialogue.as_mut(), request, &Decision::Allow));
        assert_eq!(answered, [json!({ "id": id, "result": { "decision": "accept" } })]);
        assert!(decide(dialogue.as_mut(), request, &Decision::Allow).is_empty());
    }
    assert!(decide(dialogue.as_mut(), "never asked", &Decision::Allow).is_empty());
}

#[test]
fn nothing_but_a_yes_allows() {
    let mut dialogue = app_server();
    for decision in [DENY, Decision::Choose("acceptForSession".to_owned()), Decision::Choose("wibble".to_owned())] {
        command(dialogue.as_mut(), json!(7), "ls");
        let answered = written(&decide(dialogue.as_mut(), "7", &decision));
        assert_eq!(answered[0]["result"]["decision"], "decline", "{decision:?}");
    }
}

#[test]
fn a_question_that_is_resolved_elsewhere_is_withdrawn() {
    let mut dialogue = app_server();
    command(dialogue.as_mut(), json!("a"), "ls");
    let resolved = json!({ "method": "serverRequest/resolved", "params": { "threadId": "other", "requestId": "a" } });
    let steps = feed(dialogue.as_mut(), &resolved.to_string());
    assert_eq!(steps, [Step::Event(Event::ApprovalWithdrawn { request: "\"a\"".to_owned() })]);
    assert!(decide(dialogue.as_mut(), "\"a\"", &Decision::Allow).is_empty());
    assert!(feed(dialogue.as_mut(), &resolved.to_string()).is_empty());
}

#[test]
fn people_see_the_command_without_its_shell_where_that_is_the_same() {
    let mut dialogue = app_server();
    for (given, shown) in [
        ("/bin/bash -lc 'cargo test && echo ok'", "Run cargo test && echo ok"),
        ("/bin/bash -lc ls", "Run ls"),
        ("/bin/bash -lc 'echo '\\''a'\\'''", "Run /bin/bash -lc 'echo '\\''a'\\'''"),
        ("/bin/bash -lc \"echo it's\"", "Run /bin/bash -lc \"echo it's\""),
        ("/bin/bash -lc '", "Run /bin/bash -lc '"),
        ("rm -rf /", "Run rm -rf /"),
    ] {
        let asked = command(dialogue.as_mut(), json!(1), given);
        assert_eq!((asked.prompt.as_str(), asked.tool.as_str()), (shown, "shell"));
        assert_eq!(asked.input["command"], given, "rules and people can look at the real one");
    }
    let padded = format!("echo ok{}; touch EVIL", " ".repeat(100_000));
    assert_eq!(command(dialogue.as_mut(), json!(1), &padded).prompt, format!("Run {padded}"), "the whole command");
    let method = "item/commandExecution/requestApproval";
    let escalated = json!({ "command": "make install", "cwd": "/src", "reason": "needs root" });
    let asked = ask(dialogue.as_mut(), json!(1), method, escalated).0.unwrap();
    assert_eq!(asked.prompt, "Run make install (needs root)");
    assert_eq!(asked.input, json!({ "command": "make install", "cwd": "/src" }));
    let network = json!({ "networkApprovalContext": { "host": "example.com", "protocol": "https" } });
    let asked = ask(dialogue.as_mut(), json!(1), method, network).0.unwrap();
    assert_eq!((asked.prompt.as_str(), asked.tool.as_str()), ("Connect to example.com (https)", "network"));
    let typed = json!({ "kind": "writeStdin", "command": "y" });
    assert_eq!(ask(dialogue.as_mut(), json!(1), method, typed).0.unwrap().prompt, "Type into a running command: y");
}

#[test]
fn wider_permissions_are_granted_as_they_were_asked_or_not_at_all() {
    let mut dialogue = app_server();
    let wanted = json!({ "fileSystem": { "write": ["/src/shared"] } });
    for (decision, granted) in [(Decision::Allow, wanted.clone()), (DENY, json!({}))] {
        let params = json!({ "permissions": wanted, "reason": "to share" });
        let asked = ask(dialogue.as_mut(), json!(61), "item/permissions/requestApproval", params).0.unwrap();
        assert_eq!((asked.tool.as_str(), &asked.input), ("request_permissions", &wanted));
        let answered = written(&decide(dialogue.as_mut(), "61", &decision));
        assert_eq!(answered, [json!({ "id": 61, "result": { "permissions": granted, "scope": "turn" } })]);
    }
}

#[test]
fn a_question_about_a_tool_of_a_server_finds_out_which() {
    let mut dialogue = app_server();
    let mut begin = |id: &str, server: &str, tool: &str, arguments: Value| {
        let item = json!({ "type": "mcpToolCall", "id": id, "server": server, "tool": tool, "arguments": arguments });
        feed(dialogue.as_mut(), &json!({ "method": "item/started", "params": { "item": item } }).to_string());
    };
    begin("1", "notes", "read", json!({ "path": "a" }));
    begin("2", "notes", "delete", json!({ "path": "a" }));
    begin("3", "notes", "list", Value::Null);
    begin("4", "mail", "send", json!({ "path": "a" }));
    let mut tool = |server: &str, params: Value, message: &str| {
        let meta = json!({ "codex_approval_kind": "mcp_tool_call", "tool_params": params });
        let params = json!({ "serverName": server, "_meta": meta, "message": message });
        ask(dialogue.as_mut(), json!(5), "mcpServer/elicitation/request", params).0.unwrap().tool
    };
    assert_eq!(tool("notes", json!({}), "Allow it?"), "mcp__notes__list");
    assert_eq!(tool("mail", json!({ "path": "a" }), "Allow it?"), "mcp__mail__send");
    assert_eq!(tool("notes", json!({ "path": "a" }), "Allow \"delete\"?"), "mcp__notes__delete");
    assert_eq!(tool("notes", json!({ "path": "a" }), "Allow it?"), "mcp__notes");
    assert_eq!(tool("notes", json!({ "path": "b" }), "Allow \"read\"?"), "mcp__notes");
}

#[test]
fn what_cannot_be_asked_is_answered_so_that_nothing_hangs() {
    let mut dialogue = app_server();
    for method in ["item/tool/requestUserInput", "item/tool/call", "attestation/generate", "wibble/x"] {
        let (asked, answered) = ask(dialogue.as_mut(), json!("q"), method, json!({}));
        assert!(asked.is_none());
        assert_eq!((&answered[0]["id"], &answered[0]["error"]["code"]), (&json!("q"), &json!(-32601)), "{method}");
    }
    let form = json!({ "serverName": "notes", "mode": "form", "message": "Your name?", "requestedSchema": {} });
    let (asked, answered) = ask(dialogue.as_mut(), json!(0), "mcpServer/elicitation/request", form);
    assert!(asked.is_none());
    assert_eq!(answered, [json!({ "id": 0, "result": { "action": "decline", "content": null } })]);
}

#[test]
fn a_flood_of_questions_is_refused_beyond_a_hundred() {
    let mut dialogue = app_server();
    for id in 0..100 {
        command(dialogue.as_mut(), json!(id), "ls");
    }
    let params = json!({ "command": "ls" });
    let (asked, answered) = ask(dialogue.as_mut(), json!(100), "item/commandExecution/requestApproval", params);
    assert!(asked.is_none());
    assert_eq!(answered, [json!({ "id": 100, "result": { "decision": "decline" } })]);
}
