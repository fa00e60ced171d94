//! The dialogue with a program that speaks this crate's events as JSON lines.

use serde_json::{Value, json};

use crate::adapters::dialogue::{Dialogue, Exit, FailureKind, Steps};
use crate::adapters::event::{Approval, Decision, Event};
use crate::adapters::generic::event_line::{self, ParsedLine};
use crate::adapters::generic::exit_result::{self, Success};
use crate::adapters::generic::json_line;
use crate::adapters::generic::open_calls::OpenCalls;
use crate::adapters::generic::prompt_input::PromptInput;
use crate::adapters::messages::Messages;

/// The most open questions; a program with more has lost count.
const MOST_QUESTIONS: usize = 100;

/// One run of a program that writes JSON lines. Its `done` or `error` line is the result of the turn.
#[derive(Debug)]
pub(crate) struct EventLines {
    title: String,
    prompt_input: PromptInput,
    /// Whether its questions can be answered.
    answers: bool,
    messages: Messages,
    calls: OpenCalls,
    questions: Vec<PendingQuestion>,
    asked: u64,
    interrupted: bool,
    finished: bool,
}

/// A question without an answer.
#[derive(Debug)]
struct PendingQuestion {
    request: String,
    /// The same as the program spelled it: perhaps a number.
    spelled: Value,
    choices: Vec<String>,
}

impl EventLines {
    pub(crate) fn new(title: String, prompt_input: PromptInput, answers: bool) -> Self {
        Self {
            title,
            prompt_input,
            answers,
            messages: Messages::default(),
            calls: OpenCalls::default(),
            questions: Vec::new(),
            asked: 0,
            interrupted: false,
            finished: false,
        }
    }

    fn fail(&mut self, kind: FailureKind, message: String, steps: &mut Steps) {
        self.finished = true;
        self.messages.end(steps);
        steps.fail(kind, message);
    }

    fn ask(&mut self, approval: Approval, spelled: Value, steps: &mut Steps) {
        let title = &self.title;
        if !self.answers {
            let message = format!(
                "{title} asked \"{}\", and answers to it are switched off: set approval: {{ events: true }}",
                crate::adapters::cut(&approval.prompt, 200)
            );
            return self.fail(FailureKind::Refused, message, steps);
        }
        if self.questions.iter().any(|question| question.request == approval.request) {
            return;
        }
        if self.questions.len() == MOST_QUESTIONS {
            let message = format!("{title} has more than {MOST_QUESTIONS} questions open");
            return self.fail(FailureKind::Reported, message, steps);
        }
        self.asked += 1;
        let choices = approval.choices.iter().map(|choice| choice.id.clone()).collect();
        self.questions.push(PendingQuestion { request: approval.request.clone(), spelled, choices });
        steps.event(Event::ApprovalRequired(approval));
    }
}

impl Dialogue for EventLines {
    fn begin(&mut self, steps: &mut Steps) {
        self.prompt_input.begin(steps);
    }

    fn line(&mut self, line: &str, steps: &mut Steps) {
        if self.finished {
            return;
        }
        let Some(members) = json_line::object(line, steps) else { return };
        match event_line::read(&members, &mut self.calls, self.asked + 1) {
            None => {}
            Some(ParsedLine::Event(event)) => steps.event(event),
            Some(ParsedLine::Text(text)) => self.messages.push(text, steps),
            Some(ParsedLine::TextEnd) => self.messages.end(steps),
            Some(ParsedLine::Approval(approval, spelled)) => self.ask(approval, spelled, steps),
            Some(ParsedLine::Withdrawn(request)) => {
                let open = self.questions.len();
                self.questions.retain(|question| question.request != request);
                if self.questions.len() < open {
                    steps.event(Event::ApprovalWithdrawn { request });
                }
            }
            Some(ParsedLine::Done { usage, answer }) => {
                self.finished = true;
                self.messages.end(steps);
                if let Some(usage) = usage {
                    steps.event(Event::Usage(usage));
                }
                steps.done(answer.or_else(|| self.messages.answer()));
            }
            Some(ParsedLine::Error(kind, message)) => self.fail(kind, message, steps),
        }
    }

    fn decide(&mut self, request: &str, decision: &Decision, steps: &mut Steps) {
        let Some(question) = self.questions.iter().find(|question| question.request == request) else { return };
        if self.finished {
            return;
        }
        let mut answer = json!({ "kind": "approval", "request": question.spelled });
        match decision {
            Decision::Allow => answer["decision"] = json!("allow"),
            Decision::Deny { reason } => {
                answer["decision"] = json!("deny");
                if let Some(reason) = reason {
                    answer["reason"] = json!(reason);
                }
            }
            Decision::Choose(choice) if question.choices.contains(choice) => {
                answer["decision"] = json!("choose");
                answer["choice"] = json!(choice);
            }
            Decision::Choose(_) => return,
        }
        self.questions.retain(|question| question.request != request);
        steps.write(answer.to_string());
    }

    fn interrupt(&mut self, steps: &mut Steps) {
        self.interrupted = true;
        if self.answers && !self.finished {
            steps.write(json!({ "kind": "interrupt" }).to_string());
        }
    }

    fn ended(&mut self, exit: &Exit, steps: &mut Steps) {
        if !self.finished {
            self.finished = true;
            exit_result::finish(&self.title, Success::Result, self.interrupted, exit, &mut self.messages, steps);
        }
    }
}
