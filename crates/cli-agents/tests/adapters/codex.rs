//! Codex: what it is started with, and how both of its languages are understood.

mod app_server;
mod approval_requests;
mod exec;
mod hostile;
mod start;
mod unapproved_calls;

use std::fmt::Write as _;

use serde_json::Value;
use switchboard_cli_agents::adapters::{
    Adapter as _, Codex, Decision, Dialogue, Ending, Event, Failure, FailureKind, Launch, Order, Permission,
    Permissions, Session, Step, Steps, cut,
};

use crate::replay::{Played, Recording};

/// An order as the recordings were made with.
fn order(default: Permission) -> Order {
    Order {
        prompt: "Say hello. [[say Hello from fake LLM]]".to_owned(),
        session: Session::New("0d9a8f6e-3b7c-4f58-8d51-5d6a2f4f4c10".to_owned()),
        cwd: "/home/agent/project".into(),
        model: Some("fake-model".to_owned()),
        effort: None,
        permissions: Permissions { default, ..Permissions::default() },
        args: Vec::new(),
    }
}

fn resuming(id: &str, order: Order) -> Order {
    Order { session: Session::Resume(id.to_owned()), ..order }
}

fn start(order: &Order) -> (Launch, Box<dyn Dialogue>) {
    Codex.start(order).unwrap()
}

/// The dialogue with `codex exec`.
fn exec() -> Box<dyn Dialogue> {
    start(&order(Permission::Allow)).1
}

/// The dialogue with `codex app-server`.
fn app_server() -> Box<dyn Dialogue> {
    start(&order(Permission::Ask)).1
}

fn play(name: &str, mut dialogue: Box<dyn Dialogue>, decisions: &[Decision]) -> Played {
    recording(name).play(dialogue.as_mut(), decisions)
}

/// A recording. Most of the app server were made without asking for its configuration: it names no server then.
fn recording(name: &str) -> Recording {
    let mut recording = Recording::open(name);
    if name.contains("appserver") && !recording.outputs().any(|line| line.starts_with(r#"{"id":5,"result":{"config":"#))
    {
        recording.add_output(r#"{"id":1,"#, r#"{"id":5,"result":{"config":{}}}"#);
    }
    recording
}

/// Feeds one line and takes what it leads to.
fn feed(dialogue: &mut dyn Dialogue, line: &str) -> Vec<Step> {
    let mut steps = Steps::default();
    dialogue.line(line, &mut steps);
    steps.take()
}

fn decide(dialogue: &mut dyn Dialogue, request: &str, decision: &Decision) -> Vec<Step> {
    let mut steps = Steps::default();
    dialogue.decide(request, decision, &mut steps);
    steps.take()
}

/// What was written, as JSON.
fn written(steps: &[Step]) -> Vec<Value> {
    let lines = steps.iter().filter_map(|step| match step {
        Step::Write(line) => Some(line),
        _ => None,
    });
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

impl Played {
    fn events(&self) -> Vec<&Event> {
        let events = self.steps.iter().filter_map(|step| match step {
            Step::Event(event) => Some(event),
            _ => None,
        });
        events.collect()
    }

    fn texts(&self) -> Vec<&str> {
        let texts = self.events().into_iter().filter_map(|event| match event {
            Event::Text { text } => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    fn notices(&self) -> Vec<&str> {
        let notices = self.events().into_iter().filter_map(|event| match event {
            Event::Notice { text } => Some(text.as_str()),
            _ => None,
        });
        notices.collect()
    }

    fn ending(&self) -> &Ending {
        match self.steps.last() {
            Some(Step::Finish(ending)) => ending,
            other => panic!("no ending but {other:?}"),
        }
    }

    fn failure(&self) -> (FailureKind, &str) {
        match self.ending() {
            Ending::Failed(Failure { kind, message }) => (*kind, message),
            Ending::Done { answer } => panic!("done with {answer:?}"),
        }
    }

    fn answer(&self) -> &str {
        match self.ending() {
            Ending::Done { answer } => answer.as_deref().unwrap(),
            Ending::Failed(failure) => panic!("{failure:?}"),
        }
    }

    /// All steps, one to a line, long ones cut. Without the greeting, which has our version in it.
    fn listed(&self) -> String {
        let mut list = String::new();
        for step in &self.steps {
            let line = serde_json::to_string(step).unwrap();
            if line.contains("clientInfo") {
                continue;
            }
            writeln!(list, "{}", cut(&line, 600)).unwrap();
        }
        list
    }
}
