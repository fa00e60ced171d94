//! A program that writes text, and asks in it.

use switchboard_cli_agents::adapters::{
    Decision, Dialogue, Ending, Event, Exit, FailureKind, GenericOptions, Input, Step, Steps,
};

use super::{asking, exited, failure, lint, refused, started, steps, text};

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
