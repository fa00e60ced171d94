//! Claude Code against what it said: version 2.1.325 with a model that was made up.
//!
//! Recordings named `claude-rules-…` were made as this adapter starts the program, in a hostile project; those named
//! `claude-state-…` in pieces and with the lines that say when it is idle; the others without, as versions that do not
//! know these do.

mod approvals;
mod deny_hook;
mod endings;
mod launch;
mod messages;
mod outside;
mod recordings;

use serde_json::Value;
use switchboard_cli_agents::adapters::{
    Adapter, ClaudeCode, Decision, Dialogue, Ending, Event, FailureKind, Launch, Order, OrderError, Permissions,
    Session, Step, Steps, Usage,
};

use crate::replay::Recording;

const SESSION: &str = "0b6f3f0e-6a51-4a5e-9d0e-2f6d1c7a9e10";

fn order() -> Order {
    Order {
        prompt: "Say hello.".to_owned(),
        session: Session::New(SESSION.to_owned()),
        cwd: "/home/agent/project".into(),
        model: None,
        effort: None,
        permissions: Permissions::default(),
        args: Vec::new(),
    }
}

fn start(order: &Order) -> Result<(Launch, Box<dyn Dialogue>), OrderError> {
    ClaudeCode.start(order)
}

fn dialogue() -> Box<dyn Dialogue> {
    start(&order()).unwrap().1
}

/// What became of a recording.
struct Told {
    steps: Vec<Step>,
}

fn play(name: &str, decisions: &[Decision]) -> Told {
    play_to(dialogue().as_mut(), name, decisions)
}

fn play_to(dialogue: &mut dyn Dialogue, name: &str, decisions: &[Decision]) -> Told {
    Told { steps: Recording::open(name).play(dialogue, decisions).steps }
}

fn allow() -> Decision {
    Decision::Allow
}

fn deny(reason: &str) -> Decision {
    Decision::Deny { reason: Some(reason.to_owned()) }
}

/// What a dialogue makes of lines that were not recorded.
fn hear(dialogue: &mut dyn Dialogue, lines: &[Value]) -> Vec<Step> {
    let mut steps = Steps::default();
    lines.iter().for_each(|line| dialogue.line(&line.to_string(), &mut steps));
    steps.take()
}

impl Told {
    fn events(&self) -> impl Iterator<Item = &Event> {
        self.steps.iter().filter_map(|step| if let Step::Event(event) = step { Some(event) } else { None })
    }

    /// What was said, each message ended with a bar.
    fn said(&self) -> String {
        let said = |event: &Event| match event {
            Event::Text { text } => text.clone(),
            Event::TextEnd => "|".to_owned(),
            _ => String::new(),
        };
        self.events().map(said).collect()
    }

    fn notices(&self) -> Vec<&str> {
        self.events()
            .filter_map(|event| if let Event::Notice { text } = event { Some(text.as_str()) } else { None })
            .collect()
    }

    fn usage(&self) -> Option<Usage> {
        self.events().filter_map(|event| if let Event::Usage(usage) = event { Some(*usage) } else { None }).last()
    }

    /// What was written to the program after the prompt.
    fn answers(&self) -> Vec<Value> {
        let written = |step: &Step| if let Step::Write(line) = step { serde_json::from_str(line).ok() } else { None };
        self.steps.iter().filter_map(written).skip(1).collect()
    }

    fn ending(&self) -> &Ending {
        match self.steps.last() {
            Some(Step::Finish(ending)) => ending,
            other => panic!("no ending but {other:?}"),
        }
    }

    fn answer(&self) -> &str {
        match self.ending() {
            Ending::Done { answer } => answer.as_deref().unwrap_or_default(),
            Ending::Failed(failure) => panic!("{failure:?}"),
        }
    }

    fn failure(&self) -> (FailureKind, &str) {
        match self.ending() {
            Ending::Failed(failure) => (failure.kind, &failure.message),
            Ending::Done { answer } => panic!("{answer:?}"),
        }
    }
}
