//! What is denied is not done, also where Codex does not ask by itself.

use serde_json::{Value, json};
use switchboard_cli_agents::adapters::{
    Adapter, Codex, CommandRule, Decision, Dialogue, Ending, Event, FailureKind, Order, Permission, Permissions, Step,
};

use super::{feed, order, play, recording, start, written};

const DENY: Decision = Decision::Deny { reason: None };

/// An order with rules.
fn ruled(default: Permission, allow: &[&str], deny: &[&str]) -> Order {
    let rules = |rules: &[&str]| rules.iter().map(|rule| (*rule).to_owned()).collect();
    Order {
        permissions: Permissions { default, allow: rules(allow), deny: rules(deny), ..Permissions::default() },
        ..order(default)
    }
}

fn denying(deny: &[&str]) -> Box<dyn Dialogue> {
    start(&ruled(Permission::Allow, &[], deny)).1
}

/// What the conversation was begun with, here and in the recording.
fn begun(name: &str, order: &Order, decisions: &[Decision]) -> (Value, Value) {
    let recording = recording(name);
    let played = recording.play(start(order).1.as_mut(), decisions);
    let begin = |lines: Vec<Value>| lines.into_iter().find(|line| line["method"] == "thread/start").unwrap();
    let theirs = recording.written().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut ours = begin(written(&played.steps));
    assert_eq!(ours["params"].as_object_mut().unwrap().remove("approvalsReviewer"), Some(json!("user")));
    (ours, begin(theirs))
}

fn item(method: &str, item: Value) -> String {
    json!({ "method": method, "params": { "item": item } }).to_string()
}

/// How a turn was refused, if it was.
fn refusal(steps: &[Step]) -> Option<&str> {
    steps.iter().find_map(|step| match step {
        Step::Finish(Ending::Failed(failure)) => {
            assert_eq!(failure.kind, FailureKind::Refused);
            Some(failure.message.as_str())
        }
        _ => None,
    })
}

#[test]
fn every_tool_of_a_server_is_asked_about_whatever_the_configuration_approves() {
    let name = "codex-appserver-mcp-asked.txt";
    let (ours, theirs) = begun(name, &order(Permission::Ask), &[DENY, DENY]);
    assert_eq!(ours, theirs);
    let servers = json!({
        "notes": { "default_tools_approval_mode": "prompt", "tools": { "add_note": { "approval_mode": "prompt" } } },
    });
    assert_eq!(ours["params"]["config"], json!({ "mcp_servers": servers }));
    // One is called read-only by its server, the other is approved in the configuration.
    let played = play(name, denying(&["mcp__notes__*"]), &[DENY, DENY]);
    assert_eq!(played.answer(), "done", "they were refused, and the turn went on");
    let asked = played.events().into_iter().filter_map(|event| match event {
        Event::ApprovalRequired(approval) => Some(approval.tool.as_str()),
        _ => None,
    });
    assert_eq!(asked.collect::<Vec<_>>(), ["mcp__notes__read_note", "mcp__notes__add_note"]);
}

#[test]
fn where_all_is_denied_it_looks_and_has_no_servers() {
    let name = "codex-appserver-look.txt";
    let (ours, theirs) = begun(name, &order(Permission::Deny), &[]);
    assert_eq!(ours, theirs);
    assert_eq!(ours["params"]["approvalPolicy"], "never");
    assert_eq!(ours["params"]["config"]["mcp_servers"], json!({ "notes": { "enabled": false } }));
    assert!(ours["params"].get("sandbox").is_none(), "it would win over the settings");
    let played = play(name, start(&order(Permission::Deny)).1, &[]);
    assert_eq!(played.answer(), "done", "to look is no use that is denied");
    // What a plugin brings is not in the configuration.
    let mut dialogue = start(&order(Permission::Deny)).1;
    let used = json!({ "type": "mcpToolCall", "id": "1", "server": "p", "tool": "read", "status": "completed" });
    let steps = feed(dialogue.as_mut(), &item("item/completed", used));
    assert!(refusal(&steps).unwrap().contains("brings the server p"), "{steps:?}");
    let mut chosen = order(Permission::Deny);
    chosen.args = vec!["-c".to_owned(), "sandbox_mode=\"workspace-write\"".to_owned()];
    let played = play(name, start(&chosen).1, &[]);
    assert!(!format!("{:?}", played.steps).contains("default_permissions"), "the operator's sandbox is left as it is");
}

#[test]
fn a_command_that_a_rule_of_the_user_lets_pass_is_told_or_ends_the_turn_at_once() {
    let name = "codex-appserver-rule-unasked.txt";
    let played = play(name, start(&order(Permission::Ask)).1, &[DENY]);
    let told = "codex did not ask about this command: a rule in the `rules` folder of its home allows it";
    assert_eq!(
        played.notices().iter().filter(|notice| **notice == told).count(),
        1,
        "the other command was asked about"
    );
    assert_eq!(played.answer(), "done");

    let played = play(name, denying(&["shell"]), &[DENY]);
    assert_eq!(
        played.failure(),
        (
            FailureKind::Refused,
            "codex used shell without asking, and it is denied: remove the rule from the `rules` folder of its home \
             that allows \"/bin/bash -lc 'touch by-rule'\""
        )
    );
    assert_eq!(written(&played.steps).last().unwrap()["method"], "turn/interrupt");
    let has_result = played.events().iter().any(|event| matches!(event, Event::ToolResult { .. }));
    assert!(!has_result, "it was not waited for");

    let played = play(name, start(&ruled(Permission::Ask, &["shell"], &[])).1, &[DENY]);
    assert!(!played.notices().contains(&told), "it is allowed here too");
}

#[test]
fn a_pattern_allows_a_command_and_nothing_that_is_typed_into_one() {
    let rule = CommandRule { tool: "shell".to_owned(), pattern: "git *".to_owned() };
    let permissions = Permissions { default: Permission::Deny, allow_commands: vec![rule], ..Permissions::default() };
    let codex = Codex;
    for (input, permission) in [
        (json!({ "command": "/bin/bash -lc 'git status'", "cwd": "/src" }), Permission::Allow),
        (json!({ "command": "/bin/bash -lc 'git status; ls'" }), Permission::Deny),
        (json!({ "command": "/bin/bash -lc \"git status\"" }), Permission::Deny),
        (json!({ "command": "git status", "kind": "writeStdin" }), Permission::Deny),
    ] {
        assert_eq!(codex.permission(&permissions, "shell", &input), permission, "{input}");
    }
    let began = |command: &str, source: &str| {
        let mut dialogue = start(&Order { permissions: permissions.clone(), ..order(Permission::Deny) }).1;
        let began = json!({ "type": "commandExecution", "id": "1", "command": command, "source": source });
        let mut ended = began.clone();
        (ended["status"], ended["exitCode"]) = ("completed".into(), 0.into());
        feed(dialogue.as_mut(), &item("item/started", began));
        refusal(&feed(dialogue.as_mut(), &item("item/completed", ended))).is_some()
    };
    assert!(!began("/bin/bash -lc 'git status'", "agent"), "it was allowed");
    assert!(began("/bin/bash -lc 'rm -rf .'", "agent"));
    assert!(began("git status", "unifiedExecInteraction"));
}

#[test]
fn what_is_typed_into_a_command_that_was_asked_about_is_no_command_of_its_own() {
    let mut dialogue = start(&order(Permission::Ask)).1;
    let typed = json!({ "type": "commandExecution", "id": "1", "processId": "7", "source": "unifiedExecInteraction" });
    let steps = feed(dialogue.as_mut(), &item("item/started", typed));
    assert!(matches!(steps.as_slice(), [Step::Event(Event::ToolUse { .. })]), "{steps:?}");
}

#[test]
fn a_denied_tool_may_only_fail_because_the_answer_was_no() {
    let played = play("codex-appserver-mcp-read-only.txt", denying(&["mcp__notes__read_note"]), &[]);
    assert!(played.failure().1.contains("brings the server notes"), "{:?}", played.failure());
    assert_eq!(written(&played.steps).last().unwrap()["method"], "turn/interrupt");
    let played = play("codex-appserver-mcp-read-only.txt", denying(&["mcp__notes__add_note"]), &[]);
    assert_ne!(played.failure().0, FailureKind::Refused);

    let call = |status: &str, error: &str| {
        let error = json!({ "message": error });
        json!({ "type": "mcpToolCall", "id": "1", "server": "n", "tool": "t", "status": status, "error": error })
    };
    for (ended, is_refused) in [
        (call("failed", "the tool broke in the middle"), true),
        (call("failed", "MCP tool call requires approval, but approval policy is never"), false),
        (json!({ "type": "commandExecution", "id": "1", "status": "failed", "exitCode": 1 }), true),
        (json!({ "type": "commandExecution", "id": "1", "status": "declined" }), false),
        (json!({ "type": "fileChange", "id": "1", "status": "completed", "changes": [] }), true),
        (json!({ "type": "fileChange", "id": "1", "status": "declined", "changes": [] }), false),
    ] {
        let steps = feed(denying(&["*"]).as_mut(), &item("item/completed", ended.clone()));
        assert_eq!(refusal(&steps).is_some(), is_refused, "{ended}");
    }

    let mut dialogue = denying(&["mcp__*"]);
    feed(dialogue.as_mut(), &item("item/started", call("inProgress", "")));
    let meta = json!({ "codex_approval_kind": "mcp_tool_call", "tool_params": {} });
    let params = json!({ "serverName": "n", "_meta": meta, "message": "Allow it?" });
    feed(
        dialogue.as_mut(),
        &json!({ "id": 0, "method": "mcpServer/elicitation/request", "params": params }).to_string(),
    );
    let steps = feed(dialogue.as_mut(), &item("item/completed", call("failed", "user rejected MCP tool call")));
    assert!(refusal(&steps).is_none(), "{steps:?}");
}

#[test]
fn a_call_does_not_hide_behind_another_with_the_same_id() {
    let mut dialogue = denying(&["shell"]);
    let call = json!({ "type": "mcpToolCall", "id": "1", "server": "n", "tool": "t", "status": "inProgress" });
    feed(dialogue.as_mut(), &item("item/started", call));
    let command = json!({ "type": "commandExecution", "id": "1", "processId": "7", "source": "unifiedExecStartup" });
    let steps = feed(dialogue.as_mut(), &item("item/started", command));
    assert!(refusal(&steps).unwrap().starts_with("codex used shell without asking"), "{steps:?}");
}

#[test]
fn agents_of_its_own_are_not_there_where_they_are_denied() {
    let order = ruled(Permission::Ask, &[], &["spawn_agent"]);
    let (launch, mut dialogue) = start(&order);
    assert!(launch.args.contains(&"features.multi_agent=false".to_owned()), "{:?}", launch.args);
    let spawned = json!({ "type": "collabAgentToolCall", "id": "1", "tool": "spawnAgent", "prompt": "go" });
    let steps = feed(dialogue.as_mut(), &item("item/started", spawned));
    assert_eq!(refusal(&steps), Some("codex used spawn_agent without asking, and it is denied"));
    let (launch, _) = start(&ruled(Permission::Ask, &[], &["shell"]));
    assert!(!launch.args.contains(&"features.multi_agent=false".to_owned()), "{:?}", launch.args);
}

#[test]
fn a_question_whose_tool_cannot_be_told_is_refused_where_anything_is_denied() {
    let meta = json!({ "codex_approval_kind": "mcp_tool_call", "tool_params": { "path": "a" } });
    let params = json!({ "serverName": "notes", "_meta": meta, "message": "Allow it?" });
    let question = json!({ "id": 7, "method": "mcpServer/elicitation/request", "params": params }).to_string();
    for tools in [&[][..], &["read", "delete"]] {
        let ask = |mut dialogue: Box<dyn Dialogue>| {
            for tool in tools {
                let arguments = json!({ "path": "a" });
                let call = json!({ "type": "mcpToolCall", "id": tool, "server": "notes", "tool": tool, "arguments": arguments });
                feed(dialogue.as_mut(), &item("item/started", call));
            }
            feed(dialogue.as_mut(), &question)
        };
        let steps = ask(denying(&["mcp__notes__delete"]));
        assert_eq!(written(&steps), [json!({ "id": 7, "result": { "action": "decline", "content": null } })]);
        let told = "Allow it? was refused: which tool it is about cannot be told";
        assert!(steps.contains(&Step::Event(Event::Notice { text: told.to_owned() })), "{steps:?}");
        let steps = ask(start(&order(Permission::Ask)).1);
        let [Step::Event(Event::ApprovalRequired(approval))] = steps.as_slice() else { panic!("{steps:?}") };
        assert_eq!(approval.tool, "mcp__notes", "a human can tell");
    }
}

#[test]
fn without_its_configuration_no_conversation_begins() {
    let mut dialogue = start(&order(Permission::Ask)).1;
    feed(dialogue.as_mut(), r#"{"id":1,"result":{}}"#);
    let steps = feed(dialogue.as_mut(), r#"{"id":5,"error":{"code":-32600,"message":"cannot read config.toml"}}"#);
    assert!(written(&steps).is_empty());
    assert!(format!("{steps:?}").contains("cannot read config.toml"), "{steps:?}");
}
