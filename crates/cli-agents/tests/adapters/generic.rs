//! Any program as an agent: how it is started, and what it cannot be told.

mod json_lines;
mod prompt_as_code;
mod text;

use switchboard_cli_agents::adapters::{
    Adapter, ApprovalPattern, CommandRule, Declared, Dialogue, Ending, Event, Exit, FailureKind, GenericOptions, Input,
    Launch, Order, OrderError, Output, Permission, Permissions, Session, Step, Steps,
};

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
fn a_command_rule_cannot_hold_back_a_program_that_never_asks() {
    let error = refused(lint(), |order| {
        order.permissions.allow_commands = vec![CommandRule { tool: "Bash".to_owned(), pattern: "git *".to_owned() }];
    });
    assert!(error.to_string().contains("permissions"), "{error}");
}
