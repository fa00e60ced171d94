//! A program that writes JSON lines, and asks with events.

use serde_json::json;
use switchboard_cli_agents::adapters::{
    Approval, Choice, ChoiceKind, Decision, Ending, Event, Exit, FailureKind, Scope, Step, Usage,
};

use super::{exited, failure, json_lines, started, steps};
use crate::replay::Recording;

#[test]
fn every_event_can_be_written_by_a_script() {
    let owned = str::to_owned;
    let choice = |id: &str, kind| Choice { id: id.to_owned(), label: id.to_owned(), kind };
    let events = [
        Event::Init { session: Some(owned("s1")), model: Some(owned("m-1")) },
        Event::Text { text: owned("a\nb") },
        Event::TextEnd,
        Event::Reasoning { text: owned("hm") },
        Event::ToolUse { id: owned("1"), tool: owned("edit"), input: json!({"path": "a"}) },
        Event::ToolResult { id: owned("1"), tool: owned("edit"), output: owned("ok"), is_error: true },
        Event::ApprovalRequired(Approval {
            request: owned("r1"),
            tool: owned("run"),
            input: json!({"command": "ls"}),
            prompt: owned("Run ls"),
            choices: vec![
                choice("a", ChoiceKind::AllowOnce),
                choice("b", ChoiceKind::AllowAlways),
                choice("c", ChoiceKind::RejectOnce),
                choice("d", ChoiceKind::RejectAlways),
                choice("e", ChoiceKind::Other),
            ],
            no_plain_yes: false,
            takes_reason: true,
        }),
        Event::ApprovalWithdrawn { request: owned("r1") },
        Event::Usage(Usage {
            scope: Scope::Session,
            input_tokens: 1,
            cached_tokens: 2,
            output_tokens: 3,
            reasoning_tokens: 4,
            cost_usd: Some(0.5),
        }),
        Event::FilesChanged { paths: vec![owned("a"), owned("b")] },
        Event::Notice { text: owned("slow") },
    ];
    let (_, mut dialogue) = started(json_lines(true), "go");
    for event in events {
        let line = serde_json::to_string(&event).unwrap();
        let told = steps(&mut *dialogue, |dialogue, steps| dialogue.line(&line, steps));
        assert_eq!(told, [Step::Event(event)], "{line}");
    }
}

#[test]
fn the_older_spelling_is_understood() {
    let (_, mut dialogue) = started(json_lines(true), "go");
    let told = steps(&mut *dialogue, |dialogue, steps| {
        for line in [
            r#"{"kind":"init","sessionId":"s1","model":"m-1"}"#,
            r#"{"kind":"thinking","text":"I will edit main.rs"}"#,
            r#"{"kind":"tool_use","tool":"edit","input":{"path":"src/main.rs"}}"#,
            r#"{"kind":"tool_result","tool":"edit","output":{"ok":1},"isError":true}"#,
            r#"{"kind":"approval_required","prompt":"Run cargo test"}"#,
            r#"{"kind":"done","summary":"Edited","stats":{"inputTokens":900,"outputTokens":120,"durationMs":8100}}"#,
            r#"{"kind":"text","text":"too late"}"#,
        ] {
            dialogue.line(line, steps);
        }
    });
    let told = serde_json::to_value(&told).unwrap();
    assert_eq!(
        told,
        json!([
            {"event": {"kind": "init", "session": "s1", "model": "m-1"}},
            {"event": {"kind": "reasoning", "text": "I will edit main.rs"}},
            {"event": {"kind": "tool_use", "id": "1", "tool": "edit", "input": {"path": "src/main.rs"}}},
            {"event": {"kind": "tool_result", "id": "1", "tool": "edit", "output": "{\"ok\":1}", "is_error": true}},
            {"event": {"kind": "approval_required", "request": "1", "tool": "prompt", "input": {},
                       "prompt": "Run cargo test", "takes_reason": true}},
            {"event": {"kind": "usage", "scope": "run", "input_tokens": 900, "cached_tokens": 0,
                       "output_tokens": 120, "reasoning_tokens": 0}},
            {"finish": {"done": {"answer": "Edited"}}},
        ])
    );
}

#[test]
fn a_script_is_prompted_asked_answered_and_stopped_in_json() {
    let (launch, mut dialogue) = started(json_lines(true), "two\nlines");
    assert!(launch.input);
    let begun = steps(&mut *dialogue, |dialogue, steps| dialogue.begin(steps));
    assert_eq!(begun, [Step::Write(r#"{"kind":"prompt","text":"two\nlines"}"#.to_owned())]);
    steps(&mut *dialogue, |dialogue, steps| {
        dialogue.line(r#"{"kind":"approval_required","request":0,"tool":"run","prompt":"Run"}"#, steps);
        dialogue.line(r#"{"kind":"approval_required","request":"b","choices":[{"id":"later"}]}"#, steps);
        dialogue.line(r#"{"kind":"approval_required","request":"c"}"#, steps);
        dialogue.line(r#"{"kind":"approval_required","request":"d"}"#, steps);
        dialogue.line(r#"{"kind":"approval_withdrawn","request":"d"}"#, steps);
    });
    let repeated = r#"{"kind":"approval_required","request":"c"}"#;
    assert_eq!(steps(&mut *dialogue, |dialogue, steps| dialogue.line(repeated, steps)), []);
    for (request, decision, written) in [
        (
            "c",
            Decision::Deny { reason: Some("not now".to_owned()) },
            r#""decision":"deny","kind":"approval","reason":"not now","request":"c""#,
        ),
        ("0", Decision::Allow, r#""decision":"allow","kind":"approval","request":0"#),
        (
            "b",
            Decision::Choose("later".to_owned()),
            r#""choice":"later","decision":"choose","kind":"approval","request":"b""#,
        ),
    ] {
        let answered = steps(&mut *dialogue, |dialogue, steps| dialogue.decide(request, &decision, steps));
        let [Step::Write(line)] = answered.as_slice() else { panic!("{answered:?}") };
        let (line, written): (serde_json::Value, serde_json::Value) =
            (serde_json::from_str(line).unwrap(), serde_json::from_str(&format!("{{{written}}}")).unwrap());
        assert_eq!(line, written);
        let twice = steps(&mut *dialogue, |dialogue, steps| dialogue.decide(request, &decision, steps));
        assert_eq!(twice, [], "{request}");
    }
    assert_eq!(steps(&mut *dialogue, |dialogue, steps| dialogue.decide("d", &Decision::Allow, steps)), []);
    let stopped = steps(&mut *dialogue, |dialogue, steps| dialogue.interrupt(steps));
    assert_eq!(stopped, [Step::Write(r#"{"kind":"interrupt"}"#.to_owned())]);
    let ended = steps(&mut *dialogue, |dialogue, steps| dialogue.ended(&exited(0), steps));
    assert_eq!(failure(&ended).0, FailureKind::Interrupted);
}

#[test]
fn a_whole_conversation_with_a_script() {
    let recording = Recording::open("generic-approvals.txt");
    let (_, mut dialogue) = started(json_lines(true), "Fix src");
    let decisions = [Decision::Allow, Decision::Deny { reason: Some("keep it".to_owned()) }];
    let played = recording.play(&mut *dialogue, &decisions);
    let written = played.steps.iter().filter_map(|step| match step {
        Step::Write(line) => Some(serde_json::from_str(line).unwrap()),
        _ => None,
    });
    let written: Vec<serde_json::Value> = written.collect();
    let recorded: Vec<serde_json::Value> =
        recording.written().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(written, recorded);
    let answer = Some("Fixed one of two.".to_owned());
    assert_eq!(played.steps.last(), Some(&Step::Finish(Ending::Done { answer })));
}

#[test]
fn a_choice_that_was_not_offered_leaves_the_question_open() {
    let (_, mut dialogue) = started(json_lines(true), "go");
    steps(&mut *dialogue, |dialogue, steps| dialogue.line(r#"{"kind":"approval_required","request":"a"}"#, steps));
    let choose = Decision::Choose("other".to_owned());
    assert_eq!(steps(&mut *dialogue, |dialogue, steps| dialogue.decide("a", &choose, steps)), []);
    assert_eq!(steps(&mut *dialogue, |dialogue, steps| dialogue.decide("a", &Decision::Allow, steps)).len(), 1);
}

#[test]
fn only_done_makes_json_lines_good() {
    let played = |lines: &[&str], exit: Exit| {
        let (_, mut dialogue) = started(json_lines(false), "go");
        steps(&mut *dialogue, |dialogue, steps| {
            for line in lines {
                dialogue.line(line, steps);
            }
            dialogue.ended(&exit, steps);
        })
    };
    let silent = played(&[r#"{"kind":"text","text":"bye"}"#], exited(0));
    assert_eq!(
        failure(&silent),
        (FailureKind::NoResult, "lint.sh exited with code 0, without saying how the turn went")
    );
    assert_eq!(failure(&played(&[], exited(2))), (FailureKind::NoResult, "lint.sh exited with code 2"));
    let done =
        played(&[r#"{"kind":"text","text":"a"}"#, r#"{"kind":"text","text":"b"}"#, r#"{"kind":"done"}"#], exited(1));
    assert_eq!(done.last(), Some(&Step::Finish(Ending::Done { answer: Some("ab".to_owned()) })));
    assert_eq!(done.iter().filter(|step| matches!(step, Step::Finish(_))).count(), 1);
    let error = played(&[r#"{"kind":"error","message":"no key","failure":"not_logged_in"}"#], exited(1));
    assert_eq!(failure(&error), (FailureKind::NotLoggedIn, "no key"));
    assert_eq!(failure(&played(&[r#"{"kind":"error"}"#], exited(0))).0, FailureKind::Reported);
    let asked = played(&[r#"{"kind":"approval_required","prompt":"Run it"}"#], exited(0));
    assert_eq!(failure(&asked).0, FailureKind::Refused);
    assert!(failure(&asked).1.contains("Run it"));
}

#[test]
fn hostile_lines_are_notices_or_nothing() {
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let (_, mut dialogue) = started(json_lines(true), "go");
    for line in [
        "",
        "  \u{1b}[0m ",
        "{}",
        r#"{"kind":7}"#,
        r#"{"kind":"new_thing","text":"x"}"#,
        r#"{"kind":"text"}"#,
        r#"{"kind":"text","text":null}"#,
        r#"{"kind":"files_changed","paths":"a"}"#,
        r#"{"kind":"approval_withdrawn","request":"never asked"}"#,
        r#"{"kind":"text_end"}"#,
    ] {
        assert_eq!(steps(&mut *dialogue, |dialogue, steps| dialogue.line(line, steps)), [], "{line}");
    }
    for line in ["warning: \u{1b}[31mslow\u{1b}[0m", "[1,2]", "12", r#"{"kind":"text""#, &deep, "\u{fffd}\u{0}x"] {
        let told = steps(&mut *dialogue, |dialogue, steps| dialogue.line(line, steps));
        let [Step::Event(Event::Notice { text })] = told.as_slice() else { panic!("{told:?}") };
        assert!(text.chars().count() <= 2_000 && !text.chars().any(char::is_control), "{text}");
    }
    let odd = r#"{"kind":"usage","input_tokens":-5,"output_tokens":1e300,"cached_tokens":"12","cost_usd":"x"}"#;
    let told = steps(&mut *dialogue, |dialogue, steps| dialogue.line(odd, steps));
    let usage = Usage { output_tokens: u64::MAX, cached_tokens: 12, ..Usage::default() };
    assert_eq!(told, [Step::Event(Event::Usage(usage))]);
    let flood = steps(&mut *dialogue, |dialogue, steps| {
        for request in 0..1_000 {
            dialogue.line(&json!({"kind": "approval_required", "request": request}).to_string(), steps);
        }
    });
    assert_eq!(failure(&flood).0, FailureKind::Reported);
    assert_eq!(flood.len(), 101);
}

#[test]
fn a_result_finds_its_call() {
    let (_, mut dialogue) = started(json_lines(false), "go");
    let mut told = |line: &str| match steps(&mut *dialogue, |dialogue, steps| dialogue.line(line, steps)).as_slice() {
        [Step::Event(Event::ToolUse { id, tool, .. } | Event::ToolResult { id, tool, .. })] => format!("{id} {tool}"),
        other => panic!("{other:?}"),
    };
    for (line, expected) in [
        (r#"{"kind":"tool_use","id":"a","tool":"read"}"#, "a read"),
        (r#"{"kind":"tool_use","tool":"edit"}"#, "1 edit"),
        (r#"{"kind":"tool_use","tool":"edit"}"#, "2 edit"),
        (r#"{"kind":"tool_use"}"#, "3 tool"),
        (r#"{"kind":"tool_result","id":"a"}"#, "a read"),
        (r#"{"kind":"tool_result","tool":"edit"}"#, "1 edit"),
        (r#"{"kind":"tool_result"}"#, "3 tool"),
        (r#"{"kind":"tool_result","id":"never begun"}"#, "never begun tool"),
    ] {
        assert_eq!(told(line), expected, "{line}");
    }
    for id in 0..2_000 {
        told(&format!(r#"{{"kind":"tool_use","id":"{id}","tool":"read"}}"#));
    }
    assert_eq!(told(r#"{"kind":"tool_result","id":"0"}"#), "0 tool", "only so many open calls are remembered");
    assert_eq!(told(r#"{"kind":"tool_result","id":"1999"}"#), "1999 read");
}

#[test]
fn the_last_message_is_the_answer_unless_it_is_very_long() {
    let answer = |texts: &[&str]| {
        let (_, mut dialogue) = started(json_lines(false), "go");
        let told = steps(&mut *dialogue, |dialogue, steps| {
            for text in texts {
                let line =
                    if text.is_empty() { json!({"kind": "text_end"}) } else { json!({"kind": "text", "text": text}) };
                dialogue.line(&line.to_string(), steps);
            }
            dialogue.line(r#"{"kind":"done"}"#, steps);
        });
        match told.last() {
            Some(Step::Finish(Ending::Done { answer })) => answer.clone(),
            other => panic!("{other:?}"),
        }
    };
    let long = "x".repeat(1 << 20);
    assert_eq!(answer(&[]), None);
    assert_eq!(answer(&["one", "", "", "t", "wo\n"]).as_deref(), Some("two"));
    assert_eq!(answer(&["one", "", "two", ""]).as_deref(), Some("two"));
    assert_eq!(answer(&[&long]).map(|answer| answer.len()), Some(1 << 20));
    assert_eq!(answer(&[&long, "and more", "x"]), None);
    assert_eq!(answer(&[&long, "and more", "", "three"]).as_deref(), Some("three"));
}

#[test]
fn only_text_end_completes_a_message() {
    let (_, mut dialogue) = started(json_lines(false), "go");
    let told = steps(&mut *dialogue, |dialogue, steps| {
        for line in [
            r#"{"kind":"text","text":"Looking. "}"#,
            r#"{"kind":"tool_use","id":"1","tool":"find"}"#,
            r#"{"kind":"tool_result","id":"1","output":"a"}"#,
            r#"{"kind":"text","text":"Found."}"#,
            r#"{"kind":"done"}"#,
        ] {
            dialogue.line(line, steps);
        }
    });
    assert_eq!(told.last(), Some(&Step::Finish(Ending::Done { answer: Some("Looking. Found.".to_owned()) })));
}

#[test]
fn a_result_whose_usage_is_none_counts_nothing() {
    for line in [r#"{"kind":"done","usage":7}"#, r#"{"kind":"done","stats":"many"}"#] {
        let (_, mut dialogue) = started(json_lines(false), "go");
        let told = steps(&mut *dialogue, |dialogue, steps| dialogue.line(line, steps));
        assert_eq!(told, [Step::Finish(Ending::Done { answer: None })], "{line}");
    }
}
