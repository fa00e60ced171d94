//! Tool calls, assembled from the updates about each.
//!
//! Agents announce a call before they know what it is called with, announce it only by asking for permission, or never
//! announce it. A call is announced once, as soon as it is complete: it runs, it needs approval, or the agent has gone
//! on to something else.

use std::collections::BTreeMap;

use agent_client_protocol_schema::v1::{ContentBlock, ToolCallContent, ToolCallStatus, ToolCallUpdate, ToolKind};
use serde_json::{Value, json};

use crate::adapters::dialogue::Steps;
use crate::adapters::event::Event;

/// More calls than this are not kept apart, so that an agent that never stops cannot fill the memory.
const MOST_CALLS: usize = 10_000;

#[derive(Default)]
pub(super) struct Tools {
    /// Kinds of which none may be used.
    denied: Vec<&'static str>,
    /// The first use of one of them without an approval request, for people.
    breach: Option<String>,
    calls: BTreeMap<String, Call>,
    /// Reported by the agent but not announced to the caller yet, in order.
    pending: Vec<String>,
}

#[derive(Default)]
pub(super) struct Call {
    kind: ToolKind,
    title: String,
    input: Value,
    status: ToolCallStatus,
    /// Its displayed content: before it runs what it will do, afterwards its output.
    content: Vec<ToolCallContent>,
    /// Whether `content` came while it ran or at its end.
    content_is_output: bool,
    output: Value,
    /// Files it shows a change of.
    changed: Vec<String>,
    /// Files it names as its subject.
    locations: Vec<String>,
    announced: bool,
    ended: bool,
    refused: bool,
    asked: bool,
}

impl Tools {
    pub(super) fn new(denied: Vec<&'static str>) -> Self {
        Self { denied, ..Self::default() }
    }

    /// A use of a denied kind without an approval request, if there was one.
    pub(super) fn take_breach(&mut self) -> Option<String> {
        self.breach.take()
    }

    pub(super) fn update(&mut self, update: ToolCallUpdate, steps: &mut Steps) {
        let id = update.tool_call_id.to_string();
        self.announce_pending(Some(&id), steps);
        let denied = self.denied.clone();
        let Some(call) = self.call(&id) else {
            return;
        };
        if call.ended {
            return;
        }
        call.merge(update);
        let is_breach = call.status == ToolCallStatus::Completed && !call.asked && denied.contains(&call.tool());
        let breach = is_breach.then(|| format!("{} ({})", call.tool(), call.prompt()));
        match call.status {
            ToolCallStatus::Completed => call.end(&id, false, steps),
            ToolCallStatus::Failed => call.end(&id, true, steps),
            ToolCallStatus::InProgress => call.announce(&id, steps),
            _ => self.pending.push(id),
        }
        self.breach = self.breach.take().or(breach);
    }

    /// The agent requests approval of a call. The request describes it best.
    pub(super) fn mark_asked(&mut self, update: ToolCallUpdate, steps: &mut Steps) -> Option<&Call> {
        let id = update.tool_call_id.to_string();
        self.announce_pending(Some(&id), steps);
        let call = self.call(&id)?;
        call.asked = true;
        call.merge(update);
        call.announce(&id, steps);
        Some(call)
    }

    pub(super) fn refused(&mut self, id: &str) {
        if let Some(call) = self.calls.get_mut(id) {
            call.refused = true;
        }
    }

    /// The agent has gone on to something else, or to the call `to`: announces all other pending calls.
    pub(super) fn announce_pending(&mut self, to: Option<&str>, steps: &mut Steps) {
        for id in std::mem::take(&mut self.pending) {
            if Some(id.as_str()) == to {
                continue;
            }
            if let Some(call) = self.calls.get_mut(&id) {
                call.announce(&id, steps);
            }
        }
    }

    /// The turn is over. Some agents say nothing more about a call that was refused.
    pub(super) fn close(&mut self, steps: &mut Steps) {
        self.announce_pending(None, steps);
        for (id, call) in &mut self.calls {
            if call.refused && !call.ended {
                call.output = "refused".into();
                call.end(id, true, steps);
            }
        }
    }

    fn call(&mut self, id: &str) -> Option<&mut Call> {
        if self.calls.len() >= MOST_CALLS && !self.calls.contains_key(id) {
            self.calls.retain(|_, call| !call.ended);
            if self.calls.len() >= MOST_CALLS {
                return None;
            }
        }
        Some(self.calls.entry(id.to_owned()).or_default())
    }
}

impl Call {
    /// The tool's name, as permissions name it.
    pub(super) fn tool(&self) -> &'static str {
        // As in `Acp::KINDS`.
        match self.kind {
            ToolKind::Read => "read",
            ToolKind::Edit => "edit",
            ToolKind::Delete => "delete",
            ToolKind::Move => "move",
            ToolKind::Search => "search",
            ToolKind::Execute => "execute",
            ToolKind::Think => "think",
            ToolKind::Fetch => "fetch",
            ToolKind::SwitchMode => "switch_mode",
            _ => "other",
        }
    }

    /// What it is called with. Agents that do not say get what they show instead.
    pub(super) fn input(&self) -> Value {
        let is_empty = self.input.as_object().is_some_and(serde_json::Map::is_empty);
        if !self.input.is_null() && !is_empty {
            return self.input.clone();
        }
        let mut shown = json!({ "title": self.title });
        if !self.locations.is_empty() {
            shown["locations"] = json!(self.locations);
        }
        if !self.content.is_empty() && !self.content_is_output {
            shown["content"] = json!(self.content);
        }
        shown
    }

    pub(super) fn prompt(&self) -> String {
        match self.kind {
            ToolKind::Execute => match self.command() {
                // A title may be a summary, or be cut.
                Some(command) if self.title.is_empty() || self.title.trim_matches('`') == command => {
                    format!("Run {command}")
                }
                Some(command) => format!("Run {command} ({})", self.title),
                None if self.title.is_empty() => format!("Use the tool {}", self.tool()),
                None => format!("Run {}", self.title),
            },
            _ if self.title.is_empty() => format!("Use the tool {}", self.tool()),
            // Some titles are but the file's name.
            ToolKind::Edit if self.locations.contains(&self.title) => format!("Edit {}", self.title),
            ToolKind::Read if self.locations.contains(&self.title) => format!("Read {}", self.title),
            _ => self.title.clone(),
        }
    }

    /// The command line that would be run: a text, or arguments that are quoted as a shell takes them.
    fn command(&self) -> Option<String> {
        let command = match self.input.get("command")? {
            Value::String(command) => command.clone(),
            Value::Array(arguments) => {
                let argument = |argument: &Value| argument.as_str().map_or_else(|| argument.to_string(), quoted);
                arguments.iter().map(argument).collect::<Vec<_>>().join(" ")
            }
            _ => return None,
        };
        (!command.is_empty()).then_some(command)
    }

    fn merge(&mut self, update: ToolCallUpdate) {
        let fields = update.fields;
        self.kind = fields.kind.unwrap_or(self.kind);
        self.status = fields.status.unwrap_or(self.status);
        self.title = fields.title.unwrap_or_else(|| std::mem::take(&mut self.title));
        self.input = fields.raw_input.unwrap_or_else(|| self.input.take());
        self.output = fields.raw_output.unwrap_or_else(|| self.output.take());
        if let Some(locations) = fields.locations {
            self.locations = locations.iter().map(|location| location.path.display().to_string()).collect();
        }
        if let Some(content) = fields.content {
            for item in &content {
                if let ToolCallContent::Diff(diff) = item {
                    add(&mut self.changed, diff.path.display().to_string());
                }
            }
            self.content = content;
            self.content_is_output = self.status != ToolCallStatus::Pending;
        }
    }

    fn announce(&mut self, id: &str, steps: &mut Steps) {
        if !std::mem::replace(&mut self.announced, true) {
            steps.event(Event::ToolUse { id: id.to_owned(), tool: self.tool().to_owned(), input: self.input() });
        }
    }

    fn end(&mut self, id: &str, is_error: bool, steps: &mut Steps) {
        self.announce(id, steps);
        let tool = self.tool().to_owned();
        steps.event(Event::ToolResult { id: id.to_owned(), tool, output: self.output(), is_error });
        let mut paths = std::mem::take(&mut self.changed);
        if matches!(self.kind, ToolKind::Edit | ToolKind::Delete | ToolKind::Move) {
            for location in std::mem::take(&mut self.locations) {
                add(&mut paths, location);
            }
        }
        if !is_error && !paths.is_empty() {
            steps.event(Event::FilesChanged { paths });
        }
        // Only that it has ended is needed from here on.
        *self = Self { announced: true, ended: true, ..Self::default() };
    }

    /// What it answered: plain text if the agent has it, else what it shows, else all there is.
    fn output(&self) -> String {
        if let Value::String(output) = &self.output {
            return output.clone();
        }
        let shown = self.content.iter().filter(|_| self.content_is_output).filter_map(|item| match item {
            ToolCallContent::Content(content) => match &content.content {
                ContentBlock::Text(text) => Some(text.text.as_str()),
                _ => None,
            },
            _ => None,
        });
        let shown = shown.collect::<Vec<_>>().join("\n");
        if shown.is_empty() && !self.output.is_null() { self.output.to_string() } else { shown }
    }
}

/// An argument as a shell takes it.
fn quoted(argument: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_./:=@%+,".contains(character);
    match !argument.is_empty() && argument.chars().all(is_plain) {
        true => argument.to_owned(),
        false => format!("'{}'", argument.replace('\'', r"'\''")),
    }
}

fn add(paths: &mut Vec<String>, path: String) {
    if !paths.contains(&path) {
        paths.push(path);
    }
}
