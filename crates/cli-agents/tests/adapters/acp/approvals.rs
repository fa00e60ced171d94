//! Questions of agents, and how they are answered.

use serde_json::{Value, json};
use switchboard_cli_agents::adapters::{ChoiceKind, Decision, Event, FailureKind, Step};

use super::{Run, events, failure, methods, written};

const OUTCOME: &str = "/result/outcome";

pub(super) fn ask(id: Value, kinds: &[&str]) -> Value {
    let options: Vec<Value> =
        kinds.iter().map(|kind| json!({"optionId": format!("{kind}!"), "name": kind, "kind": kind})).collect();
    let call = json!({"toolCallId": "t", "title": "ls", "kind": "execute"});
    json!({"id": id, "method": "session/request_permission", "params": {"toolCall": call, "options": options}})
}

fn outcome(steps: &[Step]) -> Value {
    written(steps).last().and_then(|answer| answer.pointer(OUTCOME)).cloned().unwrap_or_default()
}

fn selected(kind: &str) -> Value {
    json!({"outcome": "selected", "optionId": format!("{kind}!")})
}

#[test]
fn answers_are_chosen_by_kind_and_never_by_order() {
    let cancelled = json!({"outcome": "cancelled"});
    let all = ["reject_always", "allow_always", "odd", "reject_once", "allow_once"];
    let deny = || Decision::Deny { reason: None };
    for (offered, decision, expected) in [
        (&all[..], Decision::Allow, selected("allow_once")),
        (&all[..], deny(), selected("reject_once")),
        // A wider yes is given only by its name.
        (&["allow_always", "reject_once"][..], Decision::Allow, selected("reject_once")),
        (&["allow_always", "reject_always"][..], Decision::Allow, cancelled.clone()),
        (&["allow_always"][..], Decision::Choose("allow_always!".to_owned()), selected("allow_always")),
        (&["allow_always", "reject_always"][..], deny(), selected("reject_always")),
        (&["odd"][..], Decision::Allow, cancelled.clone()),
        (&["allow_once"][..], deny(), cancelled.clone()),
        (&all[..], Decision::Choose("odd!".to_owned()), selected("odd")),
        (&all[..], Decision::Choose("allow_once".to_owned()), cancelled.clone()),
    ] {
        let mut run = Run::prompted();
        let steps = run.say(ask(json!(0), offered));
        let Some(Event::ApprovalRequired(approval)) = events(&steps).last().copied() else { panic!("{steps:?}") };
        assert_eq!((approval.request.as_str(), &*approval.prompt), ("0", "Run ls"));
        assert_eq!(approval.no_plain_yes, !offered.contains(&"allow_once"));
        let is_wide = offered.contains(&"allow_always") && approval.no_plain_yes;
        let wide = approval.choices.iter().find(|choice| choice.label == "allow_always");
        assert_eq!(wide.is_some_and(|choice| choice.kind == ChoiceKind::Other), is_wide);
        assert_eq!(approval.choices.len(), offered.len());
        let decided = run.decide("0", decision.clone());
        assert_eq!(outcome(&decided), expected, "{offered:?} {decision:?}");
        let told = events(&decided).into_iter().find_map(|event| match event {
            Event::Notice { text } => Some(text.as_str()),
            _ => None,
        });
        let takes = match offered {
            ["odd"] => "; it takes odd! (odd)",
            _ => "; it takes allow_always! (allow_always)",
        };
        let note = format!("The agent has no yes for this one call, so it was answered no{takes}.");
        let is_told = decision == Decision::Allow && !offered.contains(&"allow_once");
        assert_eq!(told, is_told.then_some(note.as_str()), "{offered:?} {decision:?}");
        assert!(run.decide("0", Decision::Allow).is_empty(), "decided twice");
    }
}

#[test]
fn a_question_is_asked_once_and_numbers_are_not_texts() {
    let mut run = Run::prompted();
    assert_eq!(run.say(ask(json!(1), &["allow_once"])).len(), 2);
    assert!(run.say(ask(json!(1), &["allow_once"])).is_empty());
    let steps = run.say(ask(json!("1"), &["allow_once"]));
    let Some(Event::ApprovalRequired(approval)) = events(&steps).last().copied() else { panic!("{steps:?}") };
    assert_eq!(approval.request, "\"1\"");
    assert_eq!(written(&run.decide("\"1\"", Decision::Allow))[0]["id"], "1");
    assert_eq!(written(&run.decide("1", Decision::Allow))[0]["id"], 1);
    assert!(run.say(ask(json!(1), &["allow_once"])).is_empty());
    assert!(run.decide("7", Decision::Allow).is_empty());
}

#[test]
fn a_question_that_cannot_be_understood_is_still_asked() {
    for params in [Value::Null, json!([]), json!({"toolCall": 7, "options": "many"}), json!({"options": [1, {}]})] {
        let mut run = Run::prompted();
        let steps = run.say(json!({"id": 5, "method": "session/request_permission", "params": params}));
        let Some(Event::ApprovalRequired(approval)) = events(&steps).last().copied() else { panic!("{steps:?}") };
        assert_eq!((approval.tool.as_str(), approval.choices.len()), ("other", 0));
        assert!(approval.no_plain_yes);
        assert_eq!(outcome(&run.decide("5", Decision::Allow)), json!({"outcome": "cancelled"}));
    }
}

#[test]
fn people_are_told_what_would_be_done() {
    for (call, prompt) in [
        (json!({"title": "cargo test", "kind": "execute"}), "Run cargo test"),
        (json!({"title": "`ls -l`", "kind": "execute", "rawInput": {"command": "ls -l"}}), "Run ls -l"),
        (json!({"title": "show files", "kind": "execute", "rawInput": {"command": "sh"}}), "Run sh (show files)"),
        (json!({"title": "", "kind": "execute", "rawInput": {"command": "rm x"}}), "Run rm x"),
        (
            json!({"title": "List files", "kind": "execute", "rawInput": {"command": ["bash", "-lc", "rm -rf ~"]}}),
            "Run bash -lc 'rm -rf ~' (List files)",
        ),
        (json!({"kind": "execute", "rawInput": {"command": ["echo", "it's", ""]}}), r"Run echo 'it'\''s' ''"),
        (json!({"kind": "execute", "rawInput": {"command": []}}), "Use the tool execute"),
        (json!({"title": "List…", "kind": "execute", "rawInput": {"command": "ls; rm x"}}), "Run ls; rm x (List…)"),
        (json!({"title": "/p/a", "kind": "edit", "locations": [{"path": "/p/a"}]}), "Edit /p/a"),
        (json!({"title": "Writing to a", "kind": "edit", "locations": [{"path": "/p/a"}]}), "Writing to a"),
        (json!({"kind": "fetch"}), "Use the tool fetch"),
    ] {
        let mut tool_call = call.clone();
        tool_call["toolCallId"] = json!("t");
        let mut run = Run::prompted();
        let steps =
            run.say(json!({"id": 0, "method": "session/request_permission", "params": {"toolCall": tool_call}}));
        let Some(Event::ApprovalRequired(approval)) = events(&steps).last().copied() else { panic!("{steps:?}") };
        assert_eq!((approval.prompt.as_str(), approval.tool.as_str()), (prompt, call["kind"].as_str().unwrap()));
    }
}

#[test]
fn a_question_the_agent_takes_back_is_withdrawn() {
    let mut run = Run::prompted();
    run.say(ask(json!("q"), &["allow_once"]));
    let steps = run.say(json!({"method": "$/cancel_request", "params": {"requestId": "q"}}));
    assert_eq!(written(&steps)[0]["error"]["code"], -32800);
    assert_eq!(*events(&steps)[0], Event::ApprovalWithdrawn { request: "\"q\"".to_owned() });
    assert!(run.decide("\"q\"", Decision::Allow).is_empty());

    // Or it ends the turn without waiting.
    run.say(ask(json!(2), &["allow_once"]));
    run.answer(3, json!({"stopReason": "end_turn"}));
    let steps = run.take();
    assert!(events(&steps).contains(&&Event::ApprovalWithdrawn { request: "2".to_owned() }));
    assert!(run.decide("2", Decision::Allow).is_empty());
}

#[test]
fn stopping_answers_every_question_and_later_ones_too() {
    let mut run = Run::prompted();
    run.say(ask(json!(0), &["allow_once"]));
    run.say(ask(json!("b"), &["allow_once"]));
    let steps = run.interrupt();
    assert_eq!(methods(&steps), ["session/cancel", "answer", "answer"]);
    assert!(
        written(&steps)[1..].iter().all(|answer| answer.pointer(OUTCOME) == Some(&json!({"outcome": "cancelled"})))
    );
    let steps = run.say(ask(json!(9), &["allow_once"]));
    assert_eq!(outcome(&steps), json!({"outcome": "cancelled"}));
    assert!(events(&steps).is_empty());
    // Some agents answer with an error when they are stopped.
    let steps = run.refuse(3, -32603, "aborted");
    assert_eq!(failure(&steps), (FailureKind::Interrupted, "aborted"));
}
