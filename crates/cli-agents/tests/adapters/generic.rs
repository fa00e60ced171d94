//! Any program as an agent.

use serde_json::json;
use switchboard_cli_agents::adapters::{
    Adapter, Approval, ApprovalPattern, Choice, ChoiceKind, CommandRule, Decision, Declared, Dialogue, Ending, Event,
    Exit, FailureKind, GenericOptions, Input, Launch, Order, OrderError, Output, Permission, Permissions, Scope,
    Session, Step, Steps, Usage,
};

use crate::replay::Recording;

/// An order that asks for nothing but the prompt.
pub(crate) fn order(prompt: &str) -> Order {
    Order {
        prompt: prompt.to_owned(),
        session: Session::New("6f1c2a0e-0000-4000-8000-000000000001".to_owned()),
        cwd: "/home/agent/project".into(),
        model: None,
        effort: None,
        permissions: Permissions::default(),
        args: Vec::new(),
    }
}

/// What a dialogue asks for at one call.
pub(crate) fn steps(dialogue: &mut dyn Dialogue, call: impl FnOnce(&mut dyn Dialogue, &mut Steps)) -> Vec<Step> {
    let mut steps = Steps::default();
    call(dialogue, &mut steps);
    steps.take()
}

pub(crate) fn text(text: &str) -> Step {
    Step::Event(Event::Text { text: text.to_owned() })
}

pub(crate) fn exited(code: i32) -> Exit {
    Exit { code: Some(code), ..Exit::default() }
}

/// How a turn failed, if that is the last step.
pub(crate) fn failure(steps: &[Step]) -> (FailureKind, &str) {
    match steps.last() {
        Some(Step::Finish(Ending::Failed(failure))) => (failure.kind, &failure.message),
        other => panic!("not a failure: {other:?}"),
    }
}

fn lint() -> GenericOptions {
    GenericOptions { command: vec!["./lint.sh".to_owned(), "--json".to_owned()], ..GenericOptions::default() }
}

fn started(options: GenericOptions, prompt: &str) -> (Launch, Box<dyn Dialogue>) {
    Declared::generic(options).unwrap().start(&order(prompt)).unwrap()
}

fn refused(options: GenericOptions, change: impl FnOnce(&mut Order)) -> OrderError {
    let mut order = order("check it");
    change(&mut order);
    Declared::generic(options).unwrap().start(&order).map(|_| ()).unwrap_err()
}

fn asking() -> GenericOptions {
    let pattern = ApprovalPattern::new(r"\[y/N\]\s*$", "yes", "no").unwrap();
    GenericOptions { output: Output::Text { questions: Some(pattern) }, ..lint() }
}

fn json_lines(asks: bool) -> GenericOptions {
    GenericOptions { output: Output::Jsonl { asks }, ..lint() }
}

/// The questions that were asked, each with its request.
fn questions(steps: &[Step]) -> Vec<(&str, &str)> {
    let mut questions = Vec::new();
    for step in steps {
        if let Step::Event(Event::ApprovalRequired(approval)) = step {
            questions.push((approval.request.as_str(), approval.prompt.as_str()));
        }
    }
    questions
}

#[test]
fn a_prompt_is_written_and_input_closed_or_it_is_the_last_argument() {
    let (launch, mut dialogue) = started(lint(), "-rf\nsecond line");
    assert_eq!(launch, Launch { args: vec!["--json".to_owned()], env: Vec::new(), input: true });
    let begun = steps(&mut *dialogue, |dialogue, steps| dialogue.begin(steps));
    assert_eq!(begun, [Step::Write("-rf\nsecond line".to_owned()), Step::CloseInput]);

    let argument = GenericOptions { input: Input::Argument, ..lint() };
    let (launch, mut dialogue) = started(argument.clone(), "-rf");
    assert_eq!(launch.args, ["--json", "--", "-rf"]);
    assert!(!launch.input);
    assert_eq!(steps(&mut *dialogue, |dialogue, steps| dialogue.begin(steps)), []);

    let mut more = order("go");
    more.args = vec!["--fast".to_owned()];
    let (launch, _) = Declared::generic(argument.clone()).unwrap().start(&more).unwrap();
    assert_eq!(launch.args, ["--json", "--fast", "--", "go"]);

    let mut dashes = argument.clone();
    dashes.command.push("--".to_owned());
    assert_eq!(started(dashes, "-rf").0.args, ["--json", "--", "-rf"]);

    let bare = GenericOptions { input: Input::BareArgument, ..lint() };
    assert_eq!(started(bare.clone(), "go").0.args, ["--json", "go"]);
    let error = refused(bare, |order| order.prompt = "--output=/etc/passwd".to_owned());
    assert!(error.to_string().contains("begins with a dash"), "{error}");

    let error = refused(argument.clone(), |order| order.prompt = "x".repeat(200_000));
    assert_eq!(error, OrderError::PromptTooLong { bytes: 200_000, most: Order::LONGEST_ARGUMENT });
    assert_eq!(refused(argument, |order| order.prompt = "a\0b".to_owned()), OrderError::ZeroByte);
    assert_eq!(refused(lint(), |order| order.prompt = " \n".to_owned()), OrderError::NoPrompt);
}

#[test]
fn what_a_plain_program_cannot_be_told_is_refused() {
    for (change, word) in [
        ((|order| order.session = Session::Resume("s".to_owned())) as fn(&mut Order), "conversation"),
        (|order| order.model = Some("m".to_owned()), "model"),
        (|order| order.effort = Some("high".to_owned()), "effort"),
        (|order| order.permissions.default = Permission::Deny, "permissions"),
        (|order| order.permissions.deny = vec!["Bash".to_owned()], "permissions"),
        (|order| order.permissions.allow = vec!["Bash".to_owned()], "permissions"),
    ] {
        let error = refused(lint(), change).to_string();
        assert!(error.contains(word), "{error}");
    }
    let mut denied = order("go");
    denied.permissions.default = Permission::Deny;
    assert!(Declared::generic(asking()).unwrap().start(&denied).is_ok());
}

#[test]
fn a_command_that_names_no_program_is_refused() {
    let wrong = |options: GenericOptions| Declared::generic(options).map(|_| ()).unwrap_err().to_string();
    assert!(wrong(GenericOptions::default()).starts_with("command: names no program: write the program"));
    assert!(wrong(GenericOptions { command: vec![String::new()], ..lint() }).starts_with("command: "));
    assert!(wrong(GenericOptions { command: vec!["a\0".to_owned()], ..lint() }).starts_with("command: holds a zero"));
    let about = Declared::generic(asking()).unwrap().about().clone();
    assert_eq!((about.name.as_str(), about.title.as_str()), ("generic", "lint.sh"));
    assert_eq!(about.binary.names, ["./lint.sh"]);
    assert!(about.capabilities.approvals && !about.capabilities.resume);
}

#[test]
fn text_is_told_line_by_line_and_the_exit_code_is_the_result() {
    let (_, mut dialogue) = started(lint(), "go");
    let line = |line| move |dialogue: &mut dyn Dialogue, steps: &mut Steps| dialogue.line(line, steps);
    assert_eq!(steps(&mut *dialogue, line("\u{1b}[32mok\u{1b}[0m a.rs\r")), [text("ok a.rs\n")]);
    assert_eq!(steps(&mut *dialogue, line("")), [text("\n")]);
    assert_eq!(steps(&mut *dialogue, line(r#"{"kind":"done"} [y/N]"#)), [text("{\"kind\":\"done\"} [y/N]\n")]);
    assert_eq!(steps(&mut *dialogue, |dialogue, steps| dialogue.pause("half [y/N]", steps)), []);
    let answer = Some("ok a.rs\n\n{\"kind\":\"done\"} [y/N]".to_owned());
    assert_eq!(
        steps(&mut *dialogue, |dialogue, steps| dialogue.ended(&exited(0), steps)),
        [Step::Event(Event::TextEnd), Step::Finish(Ending::Done { answer })]
    );
    assert_eq!(steps(&mut *dialogue, |dialogue, steps| dialogue.ended(&exited(1), steps)), []);

    let bad = Exit { code: Some(3), stderr: "first\nno such folder\n".to_owned(), ..Exit::default() };
    let killed = Exit { signal: Some(9), ..Exit::default() };
    for (exit, expected) in [
        (&bad, (FailureKind::Reported, "lint.sh exited with code 3: no such folder")),
        (&killed, (FailureKind::NoResult, "lint.sh was ended by signal 9")),
    ] {
        let (_, mut dialogue) = started(lint(), "go");
        assert_eq!(failure(&steps(&mut *dialogue, |dialogue, steps| dialogue.ended(exit, steps))), expected);
    }
    let (_, mut dialogue) = started(lint(), "go");
    dialogue.interrupt(&mut Steps::default());
    let ended = steps(&mut *dialogue, |dialogue, steps| dialogue.ended(&exited(0), steps));
    assert_eq!(failure(&ended).0, FailureKind::Interrupted);
}

#[test]
fn a_question_on_an_unfinished_line_is_asked_once_and_answered() {
    let (launch, mut dialogue) = started(asking(), "fix it\n");
    assert!(launch.input);
    let begun = steps(&mut *dialogue, |dialogue, steps| dialogue.begin(steps));
    assert_eq!(begun, [Step::Write("fix it".to_owned())]);

    let asked = steps(&mut *dialogue, |dialogue, steps| dialogue.pause("\u{1b}[1mFix 2 files?\u{1b}[0m [y/N] ", steps));
    assert_eq!(questions(&asked), [("1", "Fix 2 files? [y/N]")]);
    let allow = |request| {
        move |dialogue: &mut dyn Dialogue, steps: &mut Steps| {
            dialogue.decide(request, &Decision::Allow, steps);
        }
    };
    assert_eq!(steps(&mut *dialogue, allow("7")), []);
    let choose = Decision::Choose("always".to_owned());
    assert_eq!(steps(&mut *dialogue, |dialogue, steps| dialogue.decide("1", &choose, steps)), []);
    assert_eq!(steps(&mut *dialogue, allow("1")), [Step::Write("yes".to_owned())]);
    assert_eq!(steps(&mut *dialogue, allow("1")), []);

    let line = "\u{1b}[1mFix 2 files?\u{1b}[0m [y/N] Really? [y/N] ";
    let again = steps(&mut *dialogue, |dialogue, steps| dialogue.pause(line, steps));
    assert_eq!(questions(&again), [("2", "Really? [y/N]")]);
    let denied = Decision::Deny { reason: Some("no".to_owned()) };
    let answered = steps(&mut *dialogue, |dialogue, steps| dialogue.decide("2", &denied, steps));
    assert_eq!(answered, [Step::Write("no".to_owned())]);
    let whole = format!("{line}aborted");
    let told = steps(&mut *dialogue, |dialogue, steps| dialogue.line(&whole, steps));
    assert_eq!(told, [text("Fix 2 files? [y/N] Really? [y/N] aborted\n")]);
}

#[test]
fn questions_on_whole_lines_are_asked_in_order_and_json_is_no_question() {
    let (_, mut dialogue) = started(asking(), "fix it");
    let line = |line: &'static str| move |dialogue: &mut dyn Dialogue, steps: &mut Steps| dialogue.line(line, steps);
    let deep = format!("{}\"[y/N]", "[".repeat(3_000));
    for json in [r#"{"text":"Sure? [y/N]"}"#, r#"["[y/N]"]"#, r#"  {"text":"cut off [y/N]"#, &deep] {
        let mut taken = steps(&mut *dialogue, |dialogue, steps| dialogue.pause(json, steps));
        taken.extend(steps(&mut *dialogue, |dialogue, steps| dialogue.line(json, steps)));
        assert_eq!(taken, [text(&format!("{json}\n"))], "{json}");
    }
    assert_eq!(questions(&steps(&mut *dialogue, line("[1] {A}? [y/N]"))), [("1", "[1] {A}? [y/N]")]);
    assert_eq!(questions(&steps(&mut *dialogue, line("B? [y/N]"))), []);
    assert_eq!(steps(&mut *dialogue, |dialogue, steps| dialogue.decide("2", &Decision::Allow, steps)), []);
    let next = steps(&mut *dialogue, |dialogue, steps| dialogue.decide("1", &Decision::Allow, steps));
    assert_eq!(next.first(), Some(&Step::Write("yes".to_owned())));
    assert_eq!(questions(&next), [("2", "B? [y/N]")]);

    let long = format!("{} [y/N]", "x".repeat(1 << 20));
    assert_eq!(steps(&mut *dialogue, |dialogue, steps| dialogue.line(&long, steps)), [text(&format!("{long}\n"))]);

    let flood = steps(&mut *dialogue, |dialogue, steps| {
        for _ in 0..1_000 {
            dialogue.line("C? [y/N]", steps);
        }
    });
    let (kind, message) = failure(&flood);
    assert_eq!(kind, FailureKind::Reported);
    assert!(message.contains("more exact"), "{message}");
    assert!(flood.len() < 30);
}

#[test]
fn a_question_behind_a_spinner_is_asked_without_it() {
    let (_, mut dialogue) = started(asking(), "go");
    let spinner: String = (0..1_000).map(|number| format!("\rworking {number}")).collect();
    let asked = steps(&mut *dialogue, |dialogue, steps| dialogue.pause(&format!("{spinner}\rC? [y/N] "), steps));
    let prompts: Vec<&str> = asked
        .iter()
        .filter_map(|step| match step {
            Step::Event(Event::ApprovalRequired(approval)) => Some(approval.prompt.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(prompts, ["C? [y/N]"]);
}

#[test]
fn a_second_line_of_a_prompt_cannot_answer_a_question() {
    let error = refused(asking(), |order| order.prompt = "fix it\nyes\nyes".to_owned());
    assert!(error.to_string().contains("several lines"), "{error}");
    let argument = GenericOptions { input: Input::Argument, ..asking() };
    let (launch, mut dialogue) = started(argument, "fix it\nyes");
    assert_eq!((launch.args.last().unwrap().as_str(), launch.input), ("fix it\nyes", true));
    assert_eq!(steps(&mut *dialogue, |dialogue, steps| dialogue.begin(steps)), []);
}

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

/// The words of a command; those with blanks are in quotes.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in command.split('"').enumerate() {
        match index % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

#[test]
fn a_prompt_is_never_code_of_an_interpreter() {
    let made = |command: &str, input| {
        let options = GenericOptions { command: words(command), input, ..GenericOptions::default() };
        Declared::generic(options).map(|_| ())
    };
    for command in [
        // A flag that runs a text, of any program.
        "/bin/sh -c",
        "env bash -lc --",
        "node --eval",
        "psql --command",
        "julia -E",
        "fd --exec",
        "docker run --rm image sh -c",
        "unknown-wrapper bash -c",
        // The same in a cluster, before another option, in another spelling, and within a word that is split.
        "bash -euxc",
        "bash -cx",
        "bash -c -x",
        "bash -c -o pipefail",
        "bash -o pipefail -euxc",
        "sh -ceu",
        "fish -C",
        "perl -lane",
        "perl -0777ne",
        "perl -e 1 -lane",
        "pwsh -NoProfile -Command",
        "php -r",
        "php -d a=b -r",
        "node -p",
        "node --print",
        "node --import tsx -p",
        "deno eval",
        "python3.12 -W error -Bcx",
        "sudo -u node -E bash -euxc",
        "sudo --user=coder bash -cx",
        "kubectl exec pod -- bash -euxc",
        "env -S",
        r#"env -S "bash -c""#,
        r#"env -S "unknown-wrapper bash -c""#,
        r#"env "-Sbash -c""#,
        r#"env "-vSbash -cx""#,
        r#"env "--split-string=bash -c""#,
        r#"env "--split=bash -c""#,
        "env --split",
        // A caller would name the file.
        "bash",
        "node --no-warnings",
        "python3 -m",
        "env PATH=/bin python3 -u",
        // Programs that give their arguments to a shell.
        "nice ssh host",
        "sudo /usr/bin/su coder",
        "runuser coder",
        "parallel",
        "script",
        "watch",
        "awk",
        "gawk",
        "mawk -v a=b",
    ] {
        for input in [Input::Argument, Input::BareArgument] {
            let error = made(command, input).map_or_else(|error| (error.field, error.wrong), |()| panic!("{command}"));
            assert_eq!((&*error.0, &*error.1), ("command", "would let the program run what a caller writes"));
        }
        made(command, Input::Stdin).unwrap();
    }
    for command in [
        "./bash-agent",
        "my-bash -cx",
        "agent -message",
        "agent -p",
        "claude -c -p",
        "agent --shell bash",
        "agent --runtime node -p",
        "cargo watch",
        "env SHELL=/bin/bash aider -p",
        "timeout 5m aider --message",
        "docker run --rm -e TOKEN image agent -p",
        r#"env -S "aider --message""#,
        "bash run.sh",
        "bash -e run.sh -p",
        "bash -euo pipefail run.sh -message",
        r#"bash -c "printf %s \$1; wc -c""#,
        r#"sudo bash -c "ssh host agent" bash"#,
        "node --no-warnings agent.js -p",
        "node -r ./setup.js agent.js -p",
        "node --eval=run()",
        "deno run -A agent.ts -p",
        "python3 -O agent.py -p",
        "python3 -m agent -p",
        "uv run python agent.py -p",
        "pwsh -NoProfile -File agent.ps1 -Prompt",
        "php agent.php -r",
    ] {
        for input in [Input::Argument, Input::BareArgument] {
            made(command, input).unwrap_or_else(|error| panic!("{command}: {error}"));
        }
    }
}

#[test]
fn arguments_that_are_added_cannot_make_a_prompt_code() {
    for (command, args) in
        [("agent", "-c"), ("env", "bash -cx"), ("nice -n 5", "ssh host"), ("env FOO=1", r#"-S "bash -c""#)]
    {
        let options = GenericOptions { command: words(command), input: Input::Argument, ..GenericOptions::default() };
        let declared = Declared::generic(options.clone()).unwrap();
        let error = declared.check_args(None, &Permissions::default(), &words(args)).unwrap_err();
        let expected = "args: would let the program run what a caller writes: name the script that is run, which gets \
                        the prompt";
        assert_eq!(error.to_string(), expected, "{command} {args}");
        assert_eq!(refused(options, |order| order.args = words(args)), OrderError::Unsupported(expected.to_owned()));
    }
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

#[test]
fn a_command_rule_cannot_hold_back_a_program_that_never_asks() {
    let error = refused(lint(), |order| {
        order.permissions.allow_commands = vec![CommandRule { tool: "Bash".to_owned(), pattern: "git *".to_owned() }];
    });
    assert!(error.to_string().contains("permissions"), "{error}");
}
