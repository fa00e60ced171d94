//! The dialogue with a declared program that writes JSON lines.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::adapters::declared::json_line;
use crate::adapters::declared::open_calls::OpenCalls;
use crate::adapters::declared::path::Path;
use crate::adapters::declared::questions::{MOST_QUESTIONS, Questions};
use crate::adapters::declared::rule::{EventTemplate, IsError, Rule, UsagePaths};
use crate::adapters::declared::run_state::RunState;
use crate::adapters::dialogue::{Dialogue, Exit, FailureKind, Steps};
use crate::adapters::event::{Approval, Decision, Event, Usage};

/// One run of a declared program.
#[derive(Debug)]
pub(crate) struct RuleDialogue {
    pub(crate) run: RunState,
    pub(crate) rules: Arc<[Rule]>,
    /// Whether its questions can be answered.
    pub(crate) asks: bool,
    pub(crate) questions: Questions,
    pub(crate) calls: OpenCalls,
}

impl RuleDialogue {
    /// Emits the events of the first rule that matches a value.
    fn apply(&mut self, rules: &[Rule], value: &Value, steps: &mut Steps) {
        let fits = |rule: &&Rule| rule.when.iter().all(|condition| condition.fits(value));
        let Some(rule) = rules.iter().find(fits) else { return };
        for template in &rule.events {
            if self.run.finished {
                return;
            }
            match template {
                EventTemplate::Each(items, rules) => {
                    for item in items.find(value).into_iter().flat_map(items_of) {
                        self.apply(rules, item, steps);
                    }
                }
                template => self.emit(template, value, steps),
            }
        }
    }

    fn emit(&mut self, template: &EventTemplate, value: &Value, steps: &mut Steps) {
        let text = |path: &Option<Path>| path.as_ref().and_then(|path| path.text(value));
        match template {
            EventTemplate::Init { session, model } => {
                steps.event(Event::Init { session: text(session), model: text(model) });
            }
            EventTemplate::Reasoning(path) => {
                if let Some(text) = path.text(value) {
                    steps.event(Event::Reasoning { text });
                }
            }
            EventTemplate::Text(path) => self.run.messages.push(path.text(value).unwrap_or_default(), steps),
            EventTemplate::Message(path) => {
                self.run.messages.end(steps);
                self.run.messages.push(path.text(value).unwrap_or_default(), steps);
                self.run.messages.end(steps);
            }
            EventTemplate::TextEnd => self.run.messages.end(steps),
            EventTemplate::Approval(places) => self.ask(places.of(value, self.questions.next()), steps),
            EventTemplate::ApprovalWithdrawn(path) => {
                if let Some(request) = path.text(value).filter(|request| self.questions.close(request)) {
                    steps.event(Event::ApprovalWithdrawn { request });
                }
            }
            EventTemplate::ToolUse { id, tool, input } => {
                // Text after a call is another message, whether the program marks that or not.
                self.run.messages.end(steps);
                let call = self.calls.open(text(id), text(tool));
                let input = input.as_ref().and_then(|path| path.first(value));
                let input = input.cloned().unwrap_or_else(|| json!({}));
                steps.event(Event::ToolUse { id: call.id, tool: call.tool, input });
            }
            EventTemplate::ToolResult { id, tool, output, is_error } => {
                let call = self.calls.close(text(id), text(tool));
                let output = text(output).unwrap_or_default();
                let is_error = is_error.of(value);
                steps.event(Event::ToolResult { id: call.id, tool: call.tool, output, is_error });
            }
            EventTemplate::FilesChanged(path) => {
                let paths: Vec<String> =
                    path.find(value).into_iter().flat_map(items_of).filter_map(json_line::text).collect();
                if !paths.is_empty() {
                    steps.event(Event::FilesChanged { paths });
                }
            }
            EventTemplate::Notice(path) => {
                if let Some(text) = path.text(value) {
                    steps.event(Event::Notice { text });
                }
            }
            EventTemplate::Usage(places) => steps.event(Event::Usage(places.of(value))),
            EventTemplate::Done { answer } => self.run.done(text(answer), steps),
            EventTemplate::Error { kind, message } => {
                let message = text(message).unwrap_or_else(|| format!("{} did not say why", self.run.title));
                self.run.fail(*kind, message, steps);
            }
            EventTemplate::Each(..) => {}
        }
    }

    fn ask(&mut self, (approval, spelled): (Approval, Value), steps: &mut Steps) {
        let title = &self.run.title;
        if !self.asks {
            let asked = crate::adapters::cut(&approval.prompt, 200);
            let message = format!(
                "{title} asked \"{asked}\", and answers to it are switched off: set approval: {{ events: true }}"
            );
            return self.run.fail(FailureKind::Refused, message, steps);
        }
        if self.questions.has(&approval.request) {
            return;
        }
        if self.questions.is_full() {
            let message = format!("{title} has more than {MOST_QUESTIONS} questions open");
            return self.run.fail(FailureKind::Reported, message, steps);
        }
        self.questions.open(&approval, spelled);
        steps.event(Event::ApprovalRequired(approval));
    }
}

impl Dialogue for RuleDialogue {
    fn begin(&mut self, steps: &mut Steps) {
        self.run.prompt_input.begin(steps);
    }

    fn line(&mut self, line: &str, steps: &mut Steps) {
        if self.run.finished {
            return;
        }
        let Some(members) = json_line::object(line, steps) else { return };
        let rules = Arc::clone(&self.rules);
        self.apply(&rules, &Value::Object(members), steps);
    }

    fn decide(&mut self, request: &str, decision: &Decision, steps: &mut Steps) {
        let answer = self.questions.answer(request, decision).filter(|_| !self.run.finished);
        answer.into_iter().for_each(|answer| steps.write(answer));
    }

    fn interrupt(&mut self, steps: &mut Steps) {
        self.run.interrupted = true;
        if self.asks && !self.run.finished {
            steps.write(json!({ "kind": "interrupt" }).to_string());
        }
    }

    fn ended(&mut self, exit: &Exit, steps: &mut Steps) {
        self.run.ended(exit, steps);
    }
}

impl IsError {
    fn of(&self, value: &Value) -> bool {
        match self {
            Self::Always(constant) => *constant,
            Self::At(path) => path.find(value).contains(&&Value::Bool(true)),
        }
    }
}

impl UsagePaths {
    fn of(&self, value: &Value) -> Usage {
        let count = |path: &Option<Path>| {
            let found = path.iter().flat_map(|path| path.find(value));
            found.filter_map(json_line::count).fold(0, u64::saturating_add)
        };
        let cost = self.cost_usd.as_ref().and_then(|path| path.first(value)?.as_f64());
        Usage {
            scope: self.scope,
            input_tokens: count(&self.input_tokens),
            cached_tokens: count(&self.cached_tokens),
            output_tokens: count(&self.output_tokens),
            reasoning_tokens: count(&self.reasoning_tokens),
            cost_usd: cost,
        }
    }
}

/// The items of a list; something else is its own only item.
fn items_of(value: &Value) -> &[Value] {
    match value {
        Value::Array(items) => items,
        other => std::slice::from_ref(other),
    }
}
