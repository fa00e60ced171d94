//! The Agent Client Protocol against three real agents: gemini, opencode and the adapter of claude.

mod approvals;
mod captures;
mod edge_cases;
mod session_settings;
mod usage;

use serde_json::{Value, json};
use switchboard_cli_agents::adapters::{
    Acp, Adapter, Decision, Dialogue, Ending, Event, Failure, FailureKind, Order, Permissions, Session, Step, Steps,
};

pub(crate) const CWD: &str = "/home/agent/project";

pub(crate) fn order(prompt: &str) -> Order {
    Order {
        prompt: prompt.to_owned(),
        session: Session::New("0198c5a4-0000-7000-8000-000000000000".to_owned()),
        cwd: CWD.into(),
        model: None,
        effort: None,
        permissions: Permissions::default(),
        args: Vec::new(),
    }
}

pub(crate) fn resume(session: &str, prompt: &str) -> Order {
    Order { session: Session::Resume(session.to_owned()), ..order(prompt) }
}

pub(crate) fn dialogue(order: &Order) -> Box<dyn Dialogue> {
    Acp::any("some", "some-agent", Vec::new()).start(order).unwrap().1
}

/// An agent that says what a test wants it to say.
pub(crate) struct Run {
    dialogue: Box<dyn Dialogue>,
    steps: Steps,
}

impl Run {
    /// Begun, and the greeting taken.
    pub(crate) fn begin(order: &Order) -> Self {
        let mut run = Self { dialogue: dialogue(order), steps: Steps::default() };
        run.dialogue.begin(&mut run.steps);
        assert_eq!(methods(&run.take()), ["initialize"]);
        run
    }

    /// In the middle of a turn.
    pub(crate) fn prompted() -> Self {
        Self::with(&order("Work."))
    }

    /// The same for an order.
    pub(crate) fn with(order: &Order) -> Self {
        let mut run = Self::begin(order);
        run.answer(1, json!({"protocolVersion": 1}));
        run.answer(2, json!({"sessionId": "s"}));
        assert_eq!(methods(&run.take()), ["session/new", "session/prompt"]);
        run
    }

    pub(crate) fn say(&mut self, line: impl ToString) -> Vec<Step> {
        self.dialogue.line(&line.to_string(), &mut self.steps);
        self.steps.take()
    }

    pub(crate) fn update(&mut self, update: Value) -> Vec<Step> {
        self.say(json!({"method": "session/update", "params": {"sessionId": "s", "update": update}}))
    }

    /// Answers a request; what comes of it stays until it is taken.
    pub(crate) fn answer(&mut self, id: i64, result: Value) {
        self.dialogue.line(&json!({"id": id, "result": result}).to_string(), &mut self.steps);
    }

    pub(crate) fn refuse(&mut self, id: i64, code: i64, message: &str) -> Vec<Step> {
        self.say(json!({"id": id, "error": {"code": code, "message": message}}))
    }

    pub(crate) fn decide(&mut self, request: &str, decision: Decision) -> Vec<Step> {
        self.dialogue.decide(request, &decision, &mut self.steps);
        self.steps.take()
    }

    pub(crate) fn interrupt(&mut self) -> Vec<Step> {
        self.dialogue.interrupt(&mut self.steps);
        self.steps.take()
    }

    pub(crate) fn end(&mut self, exit: &switchboard_cli_agents::adapters::Exit) -> Vec<Step> {
        self.dialogue.ended(exit, &mut self.steps);
        self.steps.take()
    }

    pub(crate) fn take(&mut self) -> Vec<Step> {
        self.steps.take()
    }
}

/// What was written, as JSON.
pub(crate) fn written(steps: &[Step]) -> Vec<Value> {
    let lines = steps.iter().filter_map(|step| match step {
        Step::Write(line) => Some(serde_json::from_str(line).unwrap()),
        _ => None,
    });
    lines.collect()
}

pub(crate) fn methods(steps: &[Step]) -> Vec<String> {
    written(steps).iter().map(|message| message["method"].as_str().unwrap_or("answer").to_owned()).collect()
}

pub(crate) fn events(steps: &[Step]) -> Vec<&Event> {
    let events = steps.iter().filter_map(|step| match step {
        Step::Event(event) => Some(event),
        _ => None,
    });
    events.collect()
}

/// All that was said, and how often a message ended.
pub(crate) fn said(steps: &[Step]) -> String {
    let pieces = events(steps).into_iter().filter_map(|event| match event {
        Event::Text { text } => Some(text.as_str()),
        Event::TextEnd => Some("|"),
        _ => None,
    });
    pieces.collect()
}

pub(crate) fn failure(steps: &[Step]) -> (FailureKind, &str) {
    match steps.last() {
        Some(Step::Finish(Ending::Failed(Failure { kind, message }))) => (*kind, message),
        other => panic!("no failure but {other:?}"),
    }
}
