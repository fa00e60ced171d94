//! Programs that a file describes: what their lines mean.

mod arguments;
mod examples;
mod problems;

use switchboard_cli_agents::adapters::{
    Adapter, Declared, Ending, Event, FailureKind, Order, OrderError, Permission, Step,
};

use crate::generic::{exited, failure, order, steps, text};

const GOOSE: &str = include_str!("../declarations/goose.yaml");
const QWEN: &str = include_str!("../declarations/qwen-code.yaml");
const AIDER: &str = include_str!("../declarations/aider.yaml");

fn read(yaml: &str) -> Declared {
    Declared::parse(yaml, "adapter.yaml").unwrap_or_else(|error| panic!("{error}"))
}

/// An order by an operator who allows everything, changed.
fn allowed(change: impl FnOnce(&mut Order)) -> Order {
    let mut order = order("fix it");
    order.permissions.default = Permission::Allow;
    change(&mut order);
    order
}

fn arguments(declared: &Declared, change: impl FnOnce(&mut Order)) -> Vec<String> {
    declared.start(&allowed(change)).map(|(launch, _)| launch.args).unwrap()
}

fn refused(declared: &Declared, change: impl FnOnce(&mut Order)) -> OrderError {
    declared.start(&allowed(change)).map(|_| ()).unwrap_err()
}

/// A declaration with these lines instead of those that begin with the same key.
fn with(lines: &str) -> String {
    const PLAIN: &str = "name: x\nbinary: { names: [x] }\nstart: { args: ['--p={prompt}'] }\noutput: text\n";
    let key = |line: &str| line.split(':').next().unwrap_or_default().to_owned();
    let keys: Vec<String> = lines.lines().map(key).collect();
    let kept = PLAIN.lines().filter(|line| !keys.contains(&key(line)));
    kept.chain(lines.lines()).map(|line| format!("{line}\n")).collect()
}

/// What is wrong with such a declaration.
fn wrong(lines: &str) -> String {
    Declared::parse(&with(lines), "x.yaml").map(|_| ()).unwrap_err().to_string()
}

#[test]
fn a_program_without_a_result_line_can_be_judged_by_its_exit() {
    let yaml = with("output: jsonl\nsuccess: exit\nrules: [{ text: t, filesChanged: files, notice: note }]");
    let (_, mut dialogue) = read(&yaml).start(&allowed(|_| ())).unwrap();
    let told = steps(&mut *dialogue, |dialogue, steps| {
        dialogue.line(r#"{"t":"a","files":["x","y"]}"#, steps);
        dialogue.line(r#"{"note":3}"#, steps);
        dialogue.ended(&exited(0), steps);
    });
    let expected = [
        text("a"),
        Step::Event(Event::FilesChanged { paths: vec!["x".to_owned(), "y".to_owned()] }),
        Step::Event(Event::Notice { text: "3".to_owned() }),
        Step::Event(Event::TextEnd),
        Step::Finish(Ending::Done { answer: Some("a".to_owned()) }),
    ];
    assert_eq!(told, expected);

    let yaml = with("output: jsonl\nrules: [{ when: { end: true }, done: {} }]");
    let ended = |yaml: &str, interrupted: bool| {
        let (_, mut dialogue) = read(yaml).start(&allowed(|_| ())).unwrap();
        steps(&mut *dialogue, |dialogue, steps| {
            if interrupted {
                dialogue.interrupt(steps);
            }
            dialogue.line(r#"{"end":false}"#, steps);
            dialogue.ended(&exited(0), steps);
        })
    };
    assert_eq!(failure(&ended(&yaml, false)).0, FailureKind::NoResult);
    assert_eq!(failure(&ended(&yaml, true)).0, FailureKind::Interrupted);
}

#[test]
fn conditions_compare_values_lists_and_presence() {
    let fits = |when: &str, line: &str| {
        let yaml = with(&format!("output: jsonl\nrules: [{{ when: {when}, done: {{}} }}]"));
        let (_, mut dialogue) = read(&yaml).start(&allowed(|_| ())).unwrap();
        !steps(&mut *dialogue, |dialogue, steps| dialogue.line(line, steps)).is_empty()
    };
    for (when, line, fit) in [
        ("{ a: 1 }", r#"{"a":1}"#, true),
        ("{ a: 1 }", r#"{"a":1.0}"#, true),
        ("{ a: 1 }", r#"{"a":"1"}"#, false),
        ("{ a: true }", r#"{"a":true}"#, true),
        ("{ a: yes }", r#"{"a":"yes"}"#, true),
        ("{ a: yes }", r#"{"a":true}"#, false),
        ("{ a: null }", r#"{"a":null}"#, true),
        ("{ a: null }", r#"{"b":1}"#, true),
        ("{ a: null }", r#"{"a":0}"#, false),
        ("{ a: [x, y] }", r#"{"a":"y"}"#, true),
        ("{ a: [x, null] }", "{}", true),
        ("{ a: [x, y] }", r#"{"a":"z"}"#, false),
        ("{ a: { exists: true } }", r#"{"a":{}}"#, true),
        ("{ a: { exists: true } }", r#"{"a":null}"#, false),
        ("{ a: { exists: false } }", r#"{"b":1}"#, true),
        ("{ a.*.t: x }", r#"{"a":[{"t":"w"},{"t":"x"}]}"#, true),
        ("{ a: 1, b: 2 }", r#"{"a":1}"#, false),
    ] {
        assert_eq!(fits(when, line), fit, "{when} {line}");
    }
}

#[test]
fn a_prompt_can_be_written_and_questions_answered() {
    let yaml = with(
        "start: { args: [], input: prompt }\napprovals: { pattern: '\\?$', no: stop }\noutput: text\nenv: { A: '1' }",
    );
    let declared = read(&yaml);
    assert!(declared.about().capabilities.approvals);
    let (launch, mut dialogue) = declared.start(&order("fix it")).unwrap();
    assert_eq!((launch.input, launch.env), (true, vec![("A".to_owned(), "1".to_owned())]));
    let begun = steps(&mut *dialogue, |dialogue, steps| dialogue.begin(steps));
    assert_eq!(begun, [Step::Write("fix it".to_owned())]);
    let asked = steps(&mut *dialogue, |dialogue, steps| dialogue.pause("Sure?", steps));
    assert!(matches!(asked.as_slice(), [Step::Event(Event::ApprovalRequired(_))]), "{asked:?}");
    let denied = switchboard_cli_agents::adapters::Decision::Deny { reason: None };
    let answered = steps(&mut *dialogue, |dialogue, steps| dialogue.decide("1", &denied, steps));
    assert_eq!(answered, [Step::Write("stop".to_owned())]);

    let plain = read(&with("start: { args: [], input: prompt }"));
    let (_, mut dialogue) = plain.start(&allowed(|order| order.prompt = "a\nb".to_owned())).unwrap();
    let begun = steps(&mut *dialogue, |dialogue, steps| dialogue.begin(steps));
    assert_eq!(begun, [Step::Write("a\nb".to_owned()), Step::CloseInput]);
}

#[test]
fn hostile_lines_do_no_harm() {
    let (_, mut dialogue) = read(QWEN).start(&allowed(|_| ())).unwrap();
    let deep = format!("{{\"type\":{}{}}}", "[".repeat(5_000), "]".repeat(5_000));
    for line in [
        "",
        "{}",
        r#"{"type":["assistant"]}"#,
        r#"{"type":"assistant"}"#,
        r#"{"type":"assistant","message":{"content":[null,1,"x",{"type":"text"},{"type":"text","text":""}]}}"#,
        r#"{"type":"assistant","message":{"content":{"type":"unknown"}}}"#,
    ] {
        assert_eq!(steps(&mut *dialogue, |dialogue, steps| dialogue.line(line, steps)), [], "{line}");
    }
    for line in ["[]", "nonsense", r#"{"type":"assistant""#, &deep] {
        let told = steps(&mut *dialogue, |dialogue, steps| dialogue.line(line, steps));
        assert!(matches!(told.as_slice(), [Step::Event(Event::Notice { .. })]), "{told:?}");
    }
    let ended = steps(&mut *dialogue, |dialogue, steps| dialogue.line(r#"{"type":"result","is_error":true}"#, steps));
    assert_eq!(failure(&ended), (FailureKind::Reported, "Qwen Code did not say why"));
    let late = r#"{"type":"result","is_error":false,"result":"ok"}"#;
    assert_eq!(steps(&mut *dialogue, |dialogue, steps| dialogue.line(late, steps)), []);
}

#[test]
fn lines_cut_anywhere_do_no_harm() {
    let line =
        r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"ä","name":"b","input":{"c":[1]}}]}}"#;
    let (_, mut dialogue) = read(QWEN).start(&allowed(|_| ())).unwrap();
    for at in line.char_indices().map(|(at, _)| at) {
        let told = steps(&mut *dialogue, |dialogue, steps| {
            dialogue.line(&line[..at], steps);
            dialogue.line(&line[at..], steps);
        });
        let calls = told.iter().filter(|step| matches!(step, Step::Event(Event::ToolUse { .. }))).count();
        assert_eq!(calls, usize::from(at == 0), "{at}");
    }
}

#[test]
fn paths_step_through_members_and_lists_and_take_the_first_that_leads_somewhere() {
    let line = r#"{"a":{"b":[{"c":"x"},{"c":2},{"d":null}],"0":"zero"},"n":null}"#;
    for (path, expected) in [
        ("a.b.0.c", Some("x")),
        ("a.b.1.c", Some("2")),
        ("a.b.*.c", Some("x\n2")),
        ("a.0", Some("zero")),
        ("a.b.2", Some(r#"{"d":null}"#)),
        (".", Some(line)),
        ("n", None),
        ("a.b.c", None),
        ("a.b.9.c", None),
        ("a.b.-1.c", None),
        ("a.*", None),
        ("n|a.0|a.b.0.c", Some("zero")),
    ] {
        let yaml = with(&format!("output: jsonl\nsuccess: exit\nrules: [{{ notice: '{path}' }}]"));
        let (_, mut dialogue) = read(&yaml).start(&allowed(|_| ())).unwrap();
        let told = steps(&mut *dialogue, |dialogue, steps| dialogue.line(line, steps));
        let expected = expected.map(|text| Step::Event(Event::Notice { text: text.to_owned() }));
        assert_eq!(told, Vec::from_iter(expected), "{path}");
    }
    for path in ["a.", ".a", "a..b", "a|"] {
        assert!(
            wrong(&format!("output: jsonl\nrules: [{{ notice: '{path}', done: {{}} }}]")).contains("is not a place")
        );
    }
}

#[test]
fn a_call_ends_a_message_unless_the_rules_say_what_does_and_switched_off_answers_are_named() {
    let rules = "output: jsonl\nrules: [{ when: { kind: text }, text: text }, { when: { kind: call }, toolUse: { id: id } }, \
                 { when: { kind: ask }, approval: { prompt: text } }, { when: { kind: end }, textEnd: true }, \
                 { when: { kind: done }, done: {}, usage: { inputTokens: input } }]";
    let unmarked = rules.replace("{ when: { kind: end }, textEnd: true }, ", "");
    for (rules, expected) in [(rules, "a b"), (&unmarked, "b")] {
        let (_, mut dialogue) = read(&with(rules)).start(&allowed(|_| ())).unwrap();
        let told = steps(&mut *dialogue, |dialogue, steps| {
            for line in [
                r#"{"kind":"text","text":"a "}"#,
                r#"{"kind":"call","id":"1"}"#,
                r#"{"kind":"text","text":"b"}"#,
                r#"{"kind":"done"}"#,
            ] {
                dialogue.line(line, steps);
            }
        });
        assert_eq!(told.last(), Some(&Step::Finish(Ending::Done { answer: Some(expected.to_owned()) })));
        assert!(!told.iter().any(|step| matches!(step, Step::Event(Event::Usage(_)))), "{told:?}");
    }
    let (_, mut dialogue) = read(&with(rules)).start(&allowed(|_| ())).unwrap();
    let told = steps(&mut *dialogue, |dialogue, steps| dialogue.line(r#"{"kind":"ask","text":"Sure?"}"#, steps));
    let expected = "x asked \"Sure?\", and answers to it are switched off: set approvals: { events: true }";
    assert_eq!(failure(&told), (FailureKind::Refused, expected));
}
