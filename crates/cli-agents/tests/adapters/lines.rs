//! What the tests of the programs that write one JSON object a line share: orders, and lines that mean harm.

use switchboard_cli_agents::adapters::{
    Adapter, Ending, Event, Exit, FailureKind, Launch, Order, OrderError, Permission, Permissions, Session, Step,
    Steps, Usage,
};

use crate::replay::Recording;

/// An order of a program that may do everything.
pub(crate) fn order(prompt: &str) -> Order {
    Order {
        prompt: prompt.to_owned(),
        session: Session::New("0b7a5e0e-3f0e-4a51-9d5c-6f2f3f3e8a11".to_owned()),
        cwd: "/home/agent/project".into(),
        model: None,
        effort: None,
        permissions: permissions(Permission::Allow, &[], &[]),
        args: Vec::new(),
    }
}

pub(crate) fn permissions(default: Permission, allow: &[&str], deny: &[&str]) -> Permissions {
    let rules = |rules: &[&str]| rules.iter().map(|rule| (*rule).to_owned()).collect();
    Permissions { default, allow: rules(allow), deny: rules(deny), ..Permissions::default() }
}

pub(crate) fn launch(adapter: &dyn Adapter, order: &Order) -> Launch {
    adapter.start(order).map(|(launch, _)| launch).unwrap()
}

pub(crate) fn refused(adapter: &dyn Adapter, order: &Order) -> OrderError {
    adapter.start(order).map(|(launch, _)| launch).unwrap_err()
}

/// What becomes of a recorded run.
pub(crate) fn play(adapter: &dyn Adapter, order: &Order, recording: &str) -> Vec<Step> {
    let (_, mut dialogue) = adapter.start(order).unwrap();
    Recording::open(recording).play(dialogue.as_mut(), &[]).steps
}

/// What becomes of a run that is typed here.
pub(crate) fn feed(adapter: &dyn Adapter, order: &Order, lines: &[&str], exit: &Exit) -> Vec<Step> {
    let (_, mut dialogue) = adapter.start(order).unwrap();
    let mut steps = Steps::default();
    for line in lines {
        dialogue.line(line, &mut steps);
    }
    dialogue.ended(exit, &mut steps);
    steps.take()
}

pub(crate) fn exited(code: i32, stderr: &str) -> Exit {
    Exit { code: Some(code), signal: None, stderr: stderr.to_owned() }
}

/// The only ending there is.
pub(crate) fn ending(steps: &[Step]) -> &Ending {
    let endings: Vec<&Ending> =
        steps.iter().filter_map(|step| if let Step::Finish(ending) = step { Some(ending) } else { None }).collect();
    assert_eq!(endings.len(), 1, "{endings:?}");
    endings[0]
}

pub(crate) fn failure(steps: &[Step]) -> (FailureKind, &str) {
    match ending(steps) {
        Ending::Failed(failure) => (failure.kind, &failure.message),
        Ending::Done { .. } => panic!("it ended well"),
    }
}

pub(crate) fn answer(steps: &[Step]) -> Option<&str> {
    match ending(steps) {
        Ending::Done { answer } => answer.as_deref(),
        Ending::Failed(failure) => panic!("{failure:?}"),
    }
}

pub(crate) fn events(steps: &[Step]) -> Vec<&Event> {
    steps.iter().filter_map(|step| if let Step::Event(event) = step { Some(event) } else { None }).collect()
}

pub(crate) fn said(steps: &[Step]) -> String {
    let text = |event: &&Event| match event {
        Event::Text { text } => Some(text.clone()),
        Event::TextEnd => Some("|".to_owned()),
        _ => None,
    };
    events(steps).iter().filter_map(text).collect()
}

pub(crate) fn last_usage(steps: &[Step]) -> Usage {
    let usage = |event: &&Event| if let Event::Usage(usage) = event { Some(*usage) } else { None };
    events(steps).iter().filter_map(usage).next_back().unwrap()
}

/// Feeds what no program should say, in every place where a line may stand; nothing of it may panic, and the turn must
/// still end exactly once.
pub(crate) fn survive(adapter: &dyn Adapter, good: &[&str]) {
    let deep = "[".repeat(100_000);
    let number = format!(r#"{{"type":{}}}"#, "9".repeat(400));
    let mut hostile =
        vec!["", " ", "null", "{", "{}", "[]", "\u{0}", "\u{feff}{}", "[1,{}]", "\"text\"", &deep, &number];
    let kinds = [
        "init",
        "system",
        "message",
        "assistant",
        "user",
        "tool_use",
        "tool_result",
        "tool_call",
        "error",
        "result",
        "step_start",
        "step_finish",
        "text",
        "reasoning",
        "thinking",
        "no such thing",
    ];
    let members = [
        r#""content":7,"role":"assistant","message":[],"part":9,"error":"x","stats":[],"usage":"x""#,
        r#""content":{},"message":{"content":{"a":1}},"part":{"state":[],"tokens":{"input":-1,"cache":[]},"cost":"x"}"#,
        r#""message":{"content":[null,{"type":"text"},{"type":"text","text":{}}]},"part":{"tool":{},"tokens":{},"cost":-1}"#,
        r#""tool_call":{"ToolCall":{},"function":{"name":3}},"subtype":"started","tool_id":[],"tool_name":"x""#,
        r#""tool_call":{"xToolCall":null},"subtype":"completed","call_id":{},"tool_id":"x","status":{}"#,
        r#""part":{"tool":"invalid","state":{"status":"completed","input":{"tool":9}},"cost":1e308,"tokens":{}}"#,
        r#""part":{"reason":"tool-calls","cost":1e308,"tokens":{"input":18446744073709551615,"output":18446744073709551615}}"#,
        r#""stats":{"total_tokens":1,"input_tokens":18446744073709551615,"output_tokens":18446744073709551615}"#,
        r#""usage":{"inputTokens":18446744073709551615,"cacheReadTokens":18446744073709551615},"sessionID":null"#,
    ];
    let typed: Vec<String> = kinds
        .iter()
        .flat_map(|kind| members.iter().map(move |members| format!(r#"{{"type":"{kind}",{members}}}"#)))
        .chain(kinds.iter().map(|kind| format!(r#"{{"type":"{kind}"}}"#)))
        .collect();
    hostile.extend(typed.iter().map(String::as_str));
    for line in &hostile {
        for at in 0..=good.len() {
            let mut lines = good.to_vec();
            lines.insert(at, line);
            let steps = feed(adapter, &order("Go."), &lines, &exited(0, ""));
            ending(&steps);
        }
    }
    let all: Vec<&str> = hostile.iter().copied().chain(hostile.iter().copied()).collect();
    let steps = feed(adapter, &order("Go."), &all, &Exit::default());
    ending(&steps);
}
