//! The dialogue with a declared program that writes JSON lines.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::adapters::declared::json_line;
use crate::adapters::declared::open_calls::OpenCalls;
use crate::adapters::declared::questions::Questions;
use crate::adapters::declared::rule::{EventTemplate, Fields, IsError, Rule};
use crate::adapters::declared::run_state::RunState;
use crate::adapters::dialogue::{Dialogue, Exit, FailureKind, Steps};
use crate::adapters::event::{Decision, Event, Scope, Usage};

#[derive(Debug)]
pub(crate) struct RuleDialogue {
    pub(crate) run: RunState,
    pub(crate) rules: Arc<[Rule]>,
    /// Whether its questions can be answered.
    pub(crate) asks: bool,
    /// The key that would let them be answered.
    pub(crate) approvals_key: &'static str,
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
        match template {
            EventTemplate::Init(fields) => {
                steps.event(Event::Init { session: fields.text("session", value), model: fields.text("model", value) });
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
            EventTemplate::Approval(fields) => self.ask(fields, value, steps),
            EventTemplate::ApprovalWithdrawn(path) => {
                if let Some(request) = path.text(value).filter(|request| self.questions.close(request)) {
                    steps.event(Event::ApprovalWithdrawn { request });
                }
            }
            EventTemplate::ToolUse(fields) => {
                // Of a program that does not mark the end of a message, text after a call is another one.
                if !self.rules.iter().any(|rule| rule.has_event(|event| matches!(event, EventTemplate::TextEnd))) {
                    self.run.messages.end(steps);
                }
                let call = self.calls.open(fields.text("id", value), fields.text("tool", value));
                let input = fields.first("input", value).unwrap_or_else(|| json!({}));
                steps.event(Event::ToolUse { id: call.id, tool: call.tool, input });
            }
            EventTemplate::ToolResult(fields, is_error) => {
                let call = self.calls.close(fields.text("id", value), fields.text("tool", value));
                let output = fields.text("output", value).unwrap_or_default();
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
            EventTemplate::Usage(fields, scope) => {
                // One without any count would replace what was counted before.
                if fields.names().any(|name| !fields.find(name, value).is_empty()) {
                    steps.event(Event::Usage(usage(fields, *scope, value)));
                }
            }
            EventTemplate::Done(fields) => self.run.done(fields.text("answer", value), steps),
            EventTemplate::Error(fields, kind) => {
                let message = fields.text("message", value);
                let message = message.unwrap_or_else(|| format!("{} did not say why", self.run.title));
                self.run.fail(*kind, message, steps);
            }
            EventTemplate::Each(..) => {}
        }
    }

    fn ask(&mut self, fields: &Fields, value: &Value, steps: &mut Steps) {
        let title = &self.run.title;
        match self.questions.open(fields, value) {
            None => {}
            Some(Ok(approval)) if self.asks => steps.event(Event::ApprovalRequired(approval)),
            Some(Ok(approval)) => {
                let asked = crate::adapters::cut(&approval.prompt, 200);
                let key = self.approvals_key;
                let message = format!(
                    "{title} asked \"{asked}\", and answers to it are switched off: set {key}: {{ events: true }}"
                );
                self.run.fail(FailureKind::Refused, message, steps);
            }
            Some(Err(problem)) => self.run.fail(FailureKind::Reported, format!("{title} {problem}"), steps),
        }
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

fn usage(fields: &Fields, scope: Scope, value: &Value) -> Usage {
    let count =
        |name: &str| fields.find(name, value).into_iter().filter_map(json_line::count).fold(0, u64::saturating_add);
    Usage {
        scope,
        input_tokens: count("inputTokens"),
        cached_tokens: count("cachedTokens"),
        output_tokens: count("outputTokens"),
        reasoning_tokens: count("reasoningTokens"),
        cost_usd: fields.first("costUsd", value).and_then(|cost| cost.as_f64()),
    }
}

/// The items of a list; something else is its own only item.
fn items_of(value: &Value) -> &[Value] {
    match value {
        Value::Array(items) => items,
        other => std::slice::from_ref(other),
    }
}
