//! How the agents are started, and what is set before the prompt.

use serde_json::{Value, json};
use switchboard_cli_agents::adapters::{
    Acp, Adapter, CommandRule, Event, FailureKind, Order, OrderError, Permission, Permissions, Step, can_fit,
};

use super::{Run, events, failure, methods, order, written};

#[test]
fn each_agent_is_started_in_its_own_way() {
    let wishes = Order { model: Some("m".to_owned()), args: vec!["--debug".to_owned()], ..order("Work.") };

    let gemini = Acp::gemini().start(&wishes).unwrap().0;
    assert_eq!(gemini.args, ["--acp", "--approval-mode", "default", "-m", "m", "--debug"]);
    let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let untrusted = variable("GEMINI_CLI_TRUST_WORKSPACE", "false");
    assert_eq!(gemini.env, [variable("GEMINI_CLI_NO_RELAUNCH", "true"), untrusted]);
    assert!(gemini.input);
    let trusting = Order { args: vec!["--skip-trust".to_owned()], ..order("Work.") };
    let env = Acp::gemini().start(&trusting).unwrap().0.env;
    assert!(env.contains(&variable("GEMINI_CLI_TRUST_WORKSPACE", "true")), "{env:?}");

    let opencode = Acp::opencode().start(&wishes).unwrap().0;
    assert_eq!(opencode.args, ["acp", "--debug"]);
    let no_project = variable("OPENCODE_DISABLE_PROJECT_CONFIG", "1");
    assert_eq!(opencode.env[0], no_project);
    // It asks for nothing by itself.
    assert_eq!(opencode.env[1].0, "OPENCODE_PERMISSION");
    let rules: Value = serde_json::from_str(&opencode.env[1].1).unwrap();
    assert_eq!(rules["**"], json!("ask"));
    // No file spells a name so: what opencode finds in one keeps the place it has there, before all of ours.
    assert!(rules.as_object().unwrap().keys().all(|name| name == "**" || name.ends_with(" *")), "{rules}");
    // Its own names are its own to keep, so that it need not ask about them.
    let named = Permissions {
        allow: vec!["webfetch".to_owned()],
        deny: vec!["bash".to_owned(), "read".to_owned()],
        ..Permissions::default()
    };
    let opencode = Acp::opencode().start(&Order { permissions: named, ..order("Work.") }).unwrap().0;
    let rules: Value = serde_json::from_str(&opencode.env[1].1).unwrap();
    assert_eq!(
        (&rules["bash *"], &rules["read *"], &rules["webfetch *"]),
        (&json!("deny"), &json!("deny"), &json!("allow"))
    );
    let alone = Permissions { allow: vec!["write".to_owned()], ..Permissions::default() };
    let refused = Acp::opencode().start(&Order { permissions: alone, ..order("Work.") }).err().unwrap().to_string();
    assert!(
        refused.starts_with("permissions.allow: opencode cannot be told to allow \"write\" alone: write edit"),
        "{refused}"
    );

    let any = Acp::any("mine", "claude-agent-acp", vec!["--x".to_owned()]);
    let launch = any.start(&wishes).unwrap().0;
    assert_eq!((launch.args.as_slice(), launch.env.len()), (["--x".to_owned(), "--debug".to_owned()].as_slice(), 0));
    assert_eq!((any.about().name.as_str(), any.about().binary.names[0].as_str()), ("mine", "claude-agent-acp"));
    assert!(any.about().capabilities.approvals && !any.about().capabilities.chosen_session);
}

#[test]
fn rules_name_kinds_and_tools_that_are_the_only_ones_of_their_kind() {
    let rules = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let permissions =
        Permissions { allow: rules(&["web_fetch"]), deny: rules(&["run_shell_command"]), ..Permissions::default() };
    let of = |agent: Acp, kind| agent.permission(&permissions, kind, &Value::Null);
    assert_eq!(of(Acp::gemini(), "execute"), Permission::Deny);
    assert_eq!(of(Acp::gemini(), "fetch"), Permission::Allow);
    assert_eq!(of(Acp::gemini(), "edit"), Permission::Ask);
    assert_eq!(of(Acp::any("some", "some", Vec::new()), "execute"), Permission::Ask);
    let rule = CommandRule { tool: "execute".to_owned(), pattern: "make".to_owned() };
    let make = Permissions { allow_commands: vec![rule], ..Permissions::default() };
    let runs = |input: Value| Acp::any("some", "some", Vec::new()).permission(&make, "execute", &input);
    assert_eq!(runs(json!({"command": "make", "cwd": "/src"})), Permission::Allow);
    assert_eq!(runs(json!({"command": "make", "args": ["deploy"]})), Permission::Ask, "it runs make deploy");
    for (agent, name, is_known) in [
        (Acp::gemini(), "run_shell_command", true),
        (Acp::gemini(), "write_file", false),
        (Acp::gemini(), "execute", true),
        (Acp::opencode(), "bash", true),
        (Acp::opencode(), "github_create_issue", true),
        (Acp::opencode(), "Bash", false),
        (Acp::any("some", "some", Vec::new()), "bash", false),
        (Acp::any("some", "some", Vec::new()), "switch_*", true),
    ] {
        assert_eq!(can_fit(name, &agent.tool_names()), is_known, "{} {name}", agent.about().name);
    }
}

#[test]
fn what_a_rule_denies_and_the_agent_does_unasked_fails_the_turn() {
    let call = |update: Value| json!({"method": "session/update", "params": {"update": update}});
    let completed = call(
        json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "secrets.txt", "kind": "read", "status": "completed"}),
    );
    for (deny, fails) in [("read", true), ("*", true), ("execute", false)] {
        let permissions = Permissions { deny: vec![deny.to_owned()], ..Permissions::default() };
        let mut run = Run::with(&Order { permissions, ..order("Work.") });
        let steps = run.say(completed.clone());
        let failed = steps.iter().any(|step| matches!(step, Step::Finish(_)));
        assert_eq!(failed, fails, "{deny}");
        if fails {
            let (kind, text) = failure(&steps);
            assert_eq!(kind, FailureKind::Refused);
            assert!(text.contains("read (secrets.txt)") && text.contains("own settings"), "{text}");
        }
    }
    // A question was answered, so that the rules were kept.
    let permissions = Permissions { deny: vec!["read".to_owned()], ..Permissions::default() };
    let mut run = Run::with(&Order { permissions, ..order("Work.") });
    let tool_call = json!({"toolCallId": "t", "title": "secrets.txt", "kind": "read"});
    run.say(json!({"id": 0, "method": "session/request_permission", "params": {"toolCall": tool_call, "options": []}}));
    assert!(!run.say(completed).iter().any(|step| matches!(step, Step::Finish(_))));
    // The default alone names nothing: what an agent does without asking is its own affair.
    let permissions = Permissions { default: Permission::Deny, ..Permissions::default() };
    let mut run = Run::with(&Order { permissions, ..order("Work.") });
    let unasked = call(
        json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "a", "kind": "read", "status": "completed"}),
    );
    assert!(!run.say(unasked).iter().any(|step| matches!(step, Step::Finish(_))));
}

#[test]
fn orders_that_cannot_be_given_are_refused_with_the_reason() {
    let agent = Acp::any("some", "some", Vec::new());
    assert_eq!(agent.start(&order(" \n")).err(), Some(OrderError::NoPrompt));
    let relative = Order { cwd: "project".into(), ..order("Work.") };
    let text = agent.start(&relative).err().unwrap().to_string();
    assert!(text.contains("project") && text.contains("absolute"), "{text}");
}

#[cfg(unix)]
#[test]
fn a_directory_that_is_no_text_is_refused() {
    use std::os::unix::ffi::OsStrExt;
    let cwd = std::path::PathBuf::from(std::ffi::OsStr::from_bytes(b"/caf\xe9"));
    let agent = Acp::any("some", "some", Vec::new());
    assert!(matches!(agent.start(&Order { cwd, ..order("Work.") }).err(), Some(OrderError::Unsupported(_))));
}

#[test]
fn nothing_is_offered_to_the_agent() {
    let mut dialogue = super::dialogue(&order("Work."));
    let mut steps = switchboard_cli_agents::adapters::Steps::default();
    dialogue.begin(&mut steps);
    let greeting = &written(&steps.take())[0];
    let capabilities = &greeting["params"]["clientCapabilities"];
    assert_eq!(greeting["params"]["protocolVersion"], 1);
    assert_eq!(greeting["params"]["clientInfo"]["name"], "switchboard");
    assert_eq!(capabilities["fs"], json!({"readTextFile": false, "writeTextFile": false}));
    assert_eq!(capabilities["terminal"], false);
}

fn option(id: &str, category: &str, current: &str, values: &[&str]) -> Value {
    let values: Vec<Value> = values.iter().map(|value| json!({"value": value, "name": value})).collect();
    json!({"id": id, "category": category, "type": "select", "currentValue": current, "options": values})
}

/// An agent that was ordered a model and an effort and has begun a conversation.
fn begun(model: Option<&str>, effort: Option<&str>, session: Value) -> Run {
    let order = Order { model: model.map(str::to_owned), effort: effort.map(str::to_owned), ..order("Work.") };
    let mut run = Run::begin(&order);
    run.answer(1, json!({"protocolVersion": 1}));
    run.take();
    run.answer(2, session);
    run
}

#[test]
fn model_and_effort_are_set_by_what_the_agent_offers_now() {
    let before = json!({"sessionId": "s", "configOptions": [7, {"id": "x"}, option("m1", "model", "a", &["a", "b"])]});
    let mut run = begun(Some("b"), Some("high"), before);
    let steps = run.take();
    assert_eq!(*events(&steps)[0], Event::Init { session: Some("s".to_owned()), model: Some("a".to_owned()) });
    let set = &written(&steps)[0];
    assert_eq!(set["method"], "session/set_config_option");
    assert_eq!(set["params"], json!({"sessionId": "s", "configId": "m1", "value": "b"}));

    // Efforts are offered only with the new model.
    let after = [option("m1", "model", "b", &["a", "b"]), option("e1", "thought_level", "low", &["low", "high"])];
    run.answer(3, json!({"configOptions": after}));
    let steps = run.take();
    assert_eq!(*events(&steps)[0], Event::Init { session: Some("s".to_owned()), model: Some("b".to_owned()) });
    assert_eq!(written(&steps)[0]["params"], json!({"sessionId": "s", "configId": "e1", "value": "high"}));

    run.answer(4, json!(null));
    assert_eq!(methods(&run.take()), ["session/prompt"]);
}

#[test]
fn the_older_way_to_set_a_model_works() {
    let models = json!({"currentModelId": "a", "availableModels": [{"modelId": "a"}, {"modelId": "b"}]});
    let mut run = begun(Some("b"), None, json!({"sessionId": "s", "models": models}));
    let set = &written(&run.take())[0];
    assert_eq!(set["method"], "session/set_model");
    assert_eq!(set["params"], json!({"sessionId": "s", "modelId": "b"}));
    run.answer(3, json!({}));
    assert_eq!(methods(&run.take()), ["session/prompt"]);
}

#[test]
fn what_is_set_already_is_not_set_again() {
    let mut run =
        begun(Some("a"), None, json!({"sessionId": "s", "configOptions": [option("model", "model", "a", &["a"])]}));
    assert_eq!(methods(&run.take()), ["session/prompt"]);
}

#[test]
fn what_cannot_be_set_is_left_and_told() {
    let mut run = begun(Some("b"), Some("high"), json!({"sessionId": "s"}));
    let steps = run.take();
    let notices = events(&steps).into_iter().filter_map(|event| match event {
        Event::Notice { text } => Some(text.as_str()),
        _ => None,
    });
    let expected = [
        "The agent does not let its model be set to b: it is left as it is.",
        "The agent does not let its effort be set to high: it is left as it is.",
    ];
    assert_eq!(notices.collect::<Vec<_>>(), expected);
    assert_eq!(methods(&steps), ["session/prompt"]);
}

#[test]
fn a_model_that_is_not_taken_ends_the_turn_with_those_that_would_be() {
    let groups = json!([{"group": "g", "options": [{"value": "c"}]}, {"value": "a"}]);
    let mut model = option("model", "model", "a", &[]);
    model["options"] = groups;
    let mut run = begun(Some("b"), None, json!({"sessionId": "s", "configOptions": [model]}));
    run.take();
    let steps = run.refuse(3, -32602, "model not found: b");
    let text = "the model b was not taken: model not found: b; the agent offers: a, c";
    assert_eq!(failure(&steps), (FailureKind::Reported, text));
}
