//! Tasks and what they hold, as lines that people read and scripts can rely on: `label: value`, and content that does not
//! fit on a line as a block: a line `label:`, the content, each line of it indented so that nothing in it can be taken for a
//! label, and an empty line.

use std::collections::BTreeSet;

use switchboard_a2a::{
    Artifact, ArtifactId, Message, Metadata, Part, PartContent, Role, SendResponse, StreamResponse, Task, TaskState,
    TaskStatus,
};
use switchboard_client::{is_secondary, readable_parts, response_text};
use switchboard_engine::state_label;
use switchboard_host::printer::Printer;

use crate::commands::calling::answer::AnswerOption;
use crate::commands::calling::{answer, sanitize};

/// A state in one word, as version 0.3 writes it.
pub(crate) fn state(state: TaskState) -> String {
    state_label(state).replace('_', "-")
}

pub(super) fn fields(task: &Task) -> [String; 3] {
    [
        format!("task: {}", sanitize::line(task.id.as_str())),
        format!("context: {}", sanitize::line(task.context_id.as_str())),
        format!("state: {}", state(task.status.state)),
    ]
}

/// Writes fields and blocks to standard output.
#[derive(Clone, Copy)]
pub(super) struct TaskPrinter {
    pub(super) printer: Printer,
    /// Whether every part is printed on its own with its metadata; else data and metadata are left out.
    pub(super) is_verbose: bool,
}

impl TaskPrinter {
    pub(super) fn field(self, label: &str, value: &str) {
        self.printer.line(format!("{label}: {}", sanitize::line(value)).trim_end());
    }

    pub(super) fn block(self, label: &str, content: &str) {
        self.printer.line(format!("{label}:"));
        let content = indented(&sanitize::text(content), true);
        if !content.trim_end().is_empty() {
            self.printer.line(content.trim_end_matches('\n'));
        }
        self.printer.line("");
    }

    pub(super) fn ids(self, task: &Task) {
        fields(task).iter().for_each(|field| self.printer.line(field));
    }

    pub(super) fn task(self, task: &Task) {
        let news = self.news(task);
        self.artifacts(task, news.is_some());
        if let Some(message) = news {
            self.said(&task.status, message);
        }
        for message in &task.history {
            self.message(who(message), message);
        }
        if self.is_verbose {
            self.metadata(task.metadata.as_ref());
        }
        if let Some(timestamp) = task.status.timestamp {
            self.field("since", &timestamp.to_string());
        }
        self.ids(task);
    }

    /// The response to a message, without what was printed while it streamed.
    pub(super) fn response(self, response: &SendResponse, written: &WrittenOutput) {
        let task = match response {
            SendResponse::Task(task) => task,
            SendResponse::Message(message) => {
                self.message("message", message);
                if let Some(context) = &message.context_id {
                    self.field("context", context.as_str());
                }
                return;
            }
        };
        let news = self.news(task);
        if !written.artifacts {
            self.artifacts(task, news.is_some());
        }
        match news {
            Some(message) if written.message.as_ref() != Some(&message.message_id) => self.said(&task.status, message),
            Some(_) => {}
            // Some agents leave their answer in the history.
            None if task.artifacts.is_empty() && task.status.message.is_none() && !task.history.is_empty() => {
                self.block("message", &response_text(response));
            }
            None => {}
        }
        self.ids(task);
    }

    /// The status message, unless the artifacts contain it.
    fn news(self, task: &Task) -> Option<&Message> {
        let said = || task.status.message.as_ref().filter(|message| !message.parts.is_empty());
        if self.is_verbose { said() } else { answer::news(task) }
    }

    fn artifacts(self, task: &Task, has_news: bool) {
        let has_answer = has_news || !task.artifacts.iter().all(is_secondary);
        let is_shown = |artifact: &&Artifact| self.is_verbose || !has_answer || !is_secondary(artifact);
        task.artifacts.iter().filter(is_shown).for_each(|artifact| self.artifact(artifact));
    }

    /// A status message, and the options of its question.
    pub(super) fn said(self, status: &TaskStatus, message: &Message) {
        self.message("message", message);
        let options = answer::options(status);
        if !options.is_empty() {
            self.block("options", &option_lines(&options));
        }
    }

    pub(super) fn artifact(self, artifact: &Artifact) {
        self.heading(artifact);
        self.parts(&artifact.parts);
    }

    pub(super) fn heading(self, artifact: &Artifact) {
        let Artifact { artifact_id, name, description, metadata, .. } = artifact;
        self.field("artifact", name.as_deref().unwrap_or(artifact_id.as_str()));
        if self.is_verbose {
            self.field("artifact-id", artifact_id.as_str());
            if let Some(description) = description {
                self.field("description", description);
            }
            self.metadata(metadata.as_ref());
        }
    }

    pub(super) fn message(self, label: &str, message: &Message) {
        if !self.is_verbose {
            self.block(label, &joined(&message.parts));
            return;
        }
        self.field(label, message.message_id.as_str());
        self.metadata(message.metadata.as_ref());
        self.parts(&message.parts);
    }

    fn parts(self, parts: &[Part]) {
        if self.is_verbose {
            for (index, part) in parts.iter().enumerate() {
                let kind = match &part.content {
                    PartContent::Text(_) => "text",
                    PartContent::Data(_) => "data",
                    PartContent::Url(_) | PartContent::Raw(_) => "file",
                };
                let media_type =
                    part.media_type.as_ref().map_or_else(String::new, |media_type| format!(", {media_type}"));
                self.field("part", &format!("{}, {kind}{media_type}", index + 1));
                self.metadata(part.metadata.as_ref());
                self.part(&part.content, part);
            }
            return;
        }
        let mut text = String::new();
        for part in readable_parts(parts) {
            match &part.content {
                PartContent::Text(piece) => text.push_str(piece),
                content => {
                    self.texts(&mut text);
                    self.part(content, part);
                }
            }
        }
        self.texts(&mut text);
    }

    /// Texts that follow each other are one.
    fn texts(self, text: &mut String) {
        if !text.is_empty() {
            self.block("text", text);
            text.clear();
        }
    }

    /// One part: text as it is, data as JSON, a file by what is known of it.
    pub(super) fn part(self, content: &PartContent, part: &Part) {
        match content {
            PartContent::Text(text) => self.block("text", text),
            PartContent::Data(data) if self.is_verbose => self.block("data", &pretty(data.as_str())),
            PartContent::Data(data) => self.block("data", data.as_str()),
            PartContent::Url(_) | PartContent::Raw(_) => self.field("file", &file(part)),
        }
    }

    fn metadata(self, metadata: Option<&Metadata>) {
        let json = metadata.filter(|metadata| !metadata.is_empty()).map(serde_json::to_string);
        if let Some(Ok(json)) = json {
            self.block("metadata", &pretty(&json));
        }
    }
}

/// What was printed while a task streamed.
#[derive(Default)]
pub(super) struct WrittenOutput {
    pub(super) artifacts: bool,
    pub(super) message: Option<switchboard_a2a::MessageId>,
    /// Artifacts that came in one update, printed or not.
    pub(super) whole: BTreeSet<ArtifactId>,
}

impl WrittenOutput {
    /// Records whether an artifact comes in one update or in chunks.
    pub(super) fn record(&mut self, event: &StreamResponse) {
        let StreamResponse::ArtifactUpdate(update) = event else { return };
        let id = &update.artifact.artifact_id;
        match update.append {
            true => drop(self.whole.remove(id)),
            false => drop(self.whole.insert(id.clone())),
        }
    }
}

/// The answers that a question offers, one a line.
pub(super) fn option_lines(options: &[AnswerOption]) -> String {
    let width = options.iter().map(|option| option.id.chars().count()).max().unwrap_or_default();
    let line = |option: &AnswerOption| format!("{:width$}  {}", option.id, option.label).trim_end().to_owned();
    options.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Text with every line that is not empty indented; the first one if a line begins there.
pub(super) fn indented(text: &str, mut is_at_line_start: bool) -> String {
    let mut indented = String::with_capacity(text.len() + 2);
    for character in text.chars() {
        if is_at_line_start && character != '\n' {
            indented.push_str("  ");
        }
        indented.push(character);
        is_at_line_start = character == '\n';
    }
    indented
}

fn who(message: &Message) -> &'static str {
    match message.role {
        Role::User => "history-user",
        Role::Agent => "history-agent",
        Role::Unspecified => "history",
    }
}

/// Parts under each other; texts that follow each other are one.
fn joined(parts: &[Part]) -> String {
    let mut text = String::new();
    let mut follows_text = false;
    for next in readable_parts(parts) {
        let is_text = matches!(next.content, PartContent::Text(_));
        let joins = follows_text && is_text;
        if !joins && !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&part(next));
        follows_text = is_text;
    }
    text
}

pub(super) fn part(part: &Part) -> String {
    match &part.content {
        PartContent::Text(text) => sanitize::text(text).into_owned(),
        PartContent::Data(data) => sanitize::text(data.as_str()).into_owned(),
        PartContent::Url(_) | PartContent::Raw(_) => sanitize::line(&format!("[file {}]", file(part))),
    }
}

fn file(part: &Part) -> String {
    let media_type = part.media_type.as_deref().unwrap_or("type unknown");
    let name = part.filename.as_deref().unwrap_or("unnamed");
    match &part.content {
        PartContent::Url(url) => format!("{name}, {media_type}, at {url}"),
        PartContent::Raw(bytes) => format!("{name}, {media_type}, {} bytes", bytes.len()),
        PartContent::Text(_) | PartContent::Data(_) => format!("{name}, {media_type}"),
    }
}

/// JSON as people read it. Numbers that would not survive it stay as they came.
fn pretty(json: &str) -> String {
    let value: Option<serde_json::Value> = serde_json::from_str(json).ok();
    let again = value.as_ref().and_then(|value| serde_json::to_string(value).ok());
    match value {
        Some(value) if again.is_some_and(|again| again.len() == json.len()) => {
            serde_json::to_string_pretty(&value).unwrap_or_else(|_| json.to_owned())
        }
        _ => json.to_owned(),
    }
}
