//! The dialogue with a declared program that writes JSON lines.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::adapters::declared::path::Path;
use crate::adapters::declared::rule::{EventTemplate, IsError, Rule, UsagePaths};
use crate::adapters::dialogue::{Dialogue, Exit, Steps};
use crate::adapters::event::{Event, Usage};
use crate::adapters::generic::exit_result::{self, Success};
use crate::adapters::generic::json_line;
use crate::adapters::generic::open_calls::OpenCalls;
use crate::adapters::generic::prompt_input::PromptInput;
use crate::adapters::messages::Messages;

/// One run of a declared program.
#[derive(Debug)]
pub(crate) struct RuleDialogue {
    title: String,
    prompt_input: PromptInput,
    rules: Arc<[Rule]>,
    success: Success,
    messages: Messages,
    calls: OpenCalls,
    interrupted: bool,
    finished: bool,
}

impl RuleDialogue {
    pub(crate) fn new(title: String, prompt_input: PromptInput, rules: Arc<[Rule]>, success: Success) -> Self {
        Self {
            title,
            prompt_input,
            rules,
            success,
            messages: Messages::default(),
            calls: OpenCalls::default(),
            interrupted: false,
            finished: false,
        }
    }

    /// Emits the events of the first rule that matches a value.
    fn apply(&mut self, rules: &[Rule], value: &Value, steps: &mut Steps) {
        let fits = |rule: &&Rule| rule.when.iter().all(|condition| condition.fits(value));
        let Some(rule) = rules.iter().find(fits) else { return };
        for template in &rule.events {
            if self.finished {
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
            EventTemplate::Text(path) => self.messages.push(path.text(value).unwrap_or_default(), steps),
            EventTemplate::Message(path) => {
                self.messages.end(steps);
                self.messages.push(path.text(value).unwrap_or_default(), steps);
                self.messages.end(steps);
            }
            EventTemplate::ToolUse { id, tool, input } => {
                // Text after a call is another message, whether the program marks that or not.
                self.messages.end(steps);
                let call = self.calls.open(text(id), text(tool));
                let input = input.as_ref().and_then(|path| path.find(value).into_iter().next());
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
            EventTemplate::Done { answer } => {
                self.finished = true;
                self.messages.end(steps);
                steps.done(text(answer).or_else(|| self.messages.answer()));
            }
            EventTemplate::Error { kind, message } => {
                self.finished = true;
                self.messages.end(steps);
                let message = text(message);
                steps.fail(*kind, message.unwrap_or_else(|| format!("{} did not say why", self.title)));
            }
            EventTemplate::Each(..) => {}
        }
    }
}

impl Dialogue for RuleDialogue {
    fn begin(&mut self, steps: &mut Steps) {
        self.prompt_input.begin(steps);
    }

    fn line(&mut self, line: &str, steps: &mut Steps) {
        if self.finished {
            return;
        }
        let Some(members) = json_line::object(line, steps) else { return };
        let rules = Arc::clone(&self.rules);
        self.apply(&rules, &Value::Object(members), steps);
    }

    fn interrupt(&mut self, _: &mut Steps) {
        self.interrupted = true;
    }

    fn ended(&mut self, exit: &Exit, steps: &mut Steps) {
        if !self.finished {
            self.finished = true;
            exit_result::finish(&self.title, self.success, self.interrupted, exit, &mut self.messages, steps);
        }
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
        let cost = self.cost_usd.as_ref().and_then(|path| path.find(value).into_iter().find_map(Value::as_f64));
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
