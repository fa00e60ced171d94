//! How questions read, and which messages answer them.

mod answers;
mod disguise;
mod shown;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use serde_json::json;
use switchboard_a2a::{Json, Message, Part, PartContent, Role, Task, TaskState};
use switchboard_cli_agents::adapters::{
    About, Adapter, Approval, Choice, ChoiceKind, Decision, Dialogue, Event, Exit, FailureKind, Launch, Order,
    OrderError, Steps,
};
use switchboard_cli_agents::{Settings, Worker};

use crate::fixture::Fixture;
use crate::harness::*;

/// The longest prompt that is shown whole.
const PROMPT_CHARACTERS: usize = 16_000;

/// An adapter whose questions are a test's, whatever its program writes. Each is asked twice.
struct Asker {
    about: About,
    question: Arc<Mutex<Approval>>,
    decided: Arc<Mutex<Vec<Decision>>>,
}

struct Asking {
    waiting: VecDeque<Approval>,
    decided: Arc<Mutex<Vec<Decision>>>,
}

impl Adapter for Asker {
    fn about(&self) -> &About {
        &self.about
    }

    fn start(&self, _: &Order) -> Result<(Launch, Box<dyn Dialogue>), OrderError> {
        let question = self.question.lock().unwrap().clone();
        let again = Approval { request: "again".to_owned(), ..question.clone() };
        let dialogue = Asking { waiting: VecDeque::from([question, again]), decided: self.decided.clone() };
        Ok((Launch { input: true, ..Launch::default() }, Box::new(dialogue)))
    }
}

impl Dialogue for Asking {
    fn begin(&mut self, steps: &mut Steps) {
        match self.waiting.pop_front() {
            Some(approval) => steps.event(Event::ApprovalRequired(approval)),
            None => steps.done(None),
        }
    }

    fn line(&mut self, _: &str, _: &mut Steps) {}

    fn decide(&mut self, _: &str, decision: &Decision, steps: &mut Steps) {
        self.decided.lock().unwrap().push(decision.clone());
        self.begin(steps);
    }

    fn ended(&mut self, _: &Exit, steps: &mut Steps) {
        steps.fail(FailureKind::NoResult, "the program has ended");
    }
}

/// An agent whose questions are a test's.
struct Questions {
    harness: Harness,
    question: Arc<Mutex<Approval>>,
    decided: Arc<Mutex<Vec<Decision>>>,
    _fixture: Fixture,
}

impl Questions {
    fn new(choices: &[(&str, ChoiceKind)]) -> Self {
        let choice =
            |(id, kind): &(&str, ChoiceKind)| Choice { id: (*id).to_owned(), label: (*id).to_owned(), kind: *kind };
        let question = Arc::new(Mutex::new(Approval {
            request: "0".to_owned(),
            tool: "Bash".to_owned(),
            input: json!({"command": "cargo test"}),
            prompt: "Bash: cargo test".to_owned(),
            choices: choices.iter().map(choice).collect(),
            no_plain_yes: false,
            takes_reason: true,
        }));
        let fixture = Fixture::new();
        let (about, decided) = (fixture.asking("").about().clone(), Arc::default());
        let adapter = Asker { about, question: Arc::clone(&question), decided: Arc::clone(&decided) };
        let worker = Worker { program: Some("/bin/cat".into()), ..Worker::new(adapter) };
        let settings = Settings { repo_lock: false, ..Settings::new("coder", worker, fixture.work()) };
        Self { harness: Harness::open(&fixture, settings), question, decided, _fixture: fixture }
    }

    fn change(&self, change: impl FnOnce(&mut Approval)) {
        change(&mut self.question.lock().unwrap());
    }

    fn asked(&self) -> Task {
        self.harness.run(self.harness.send("go"))
    }

    /// Denies what a task asks until it ends: open questions hold permits.
    fn close(&self, mut task: Task) {
        while task.status.state == TaskState::InputRequired {
            task = self.harness.run(self.harness.reply(&task, "n"));
        }
    }

    /// The words of the question.
    fn words(&self) -> String {
        let asked = self.asked();
        let words = status_text(&asked);
        self.close(asked);
        words
    }

    /// What is shown of the call: the words before those about answers.
    fn shown(&self) -> String {
        let words = self.words();
        words.strip_prefix("Approve: ").unwrap().split("\nAnswer ").next().unwrap().to_owned()
    }

    fn is_incomplete(&self) -> bool {
        self.words().contains("\nThis is not all of it: ")
    }

    /// What comes of an answer: how the question was decided, twice if for the whole task, or why it was not.
    /// `$id` in data is the question's.
    fn answer(&self, parts: Vec<Part>) -> String {
        self.decided.lock().unwrap().clear();
        let asked = self.asked();
        let id = question(&asked)["approvalId"].as_str().unwrap().to_owned();
        let parts = parts.into_iter().map(|part| match part.content {
            PartContent::Data(json) => Part::data(Json::parse(&json.as_str().replace("$id", &id)).unwrap()),
            content => Part::new(content),
        });
        let message = Message { parts: parts.collect(), ..Message::text(Role::User, "") };
        let next = self.harness.run(self.harness.reply(&asked, Said(message)));
        let decision = |decision: &Decision| match decision {
            Decision::Allow => "allow".to_owned(),
            Decision::Deny { reason: None } => "deny".to_owned(),
            Decision::Deny { reason: Some(reason) } => format!("deny: {reason}"),
            Decision::Choose(choice) => format!("choose: {choice}"),
        };
        let decided: Vec<String> = self.decided.lock().unwrap().iter().map(decision).collect();
        let note = status_text(&next).lines().next().unwrap_or_default().to_owned();
        self.close(next);
        if decided.is_empty() { note } else { decided.join(", ") }
    }
}
