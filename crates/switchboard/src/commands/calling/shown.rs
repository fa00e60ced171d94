//! Tasks and what they hold, as people read them: `label: value` lines, and content as blocks under a label.

use switchboard_a2a::{Artifact, Message, Part, PartContent, Role, Task, TaskState};
use switchboard_engine::state_label;

use crate::commands::calling::clean;
use crate::printer::Printer;

/// A state in one word, as version 0.3 writes it.
pub(super) fn state(state: TaskState) -> String {
    state_label(state).replace('_', "-")
}

/// What it takes to go on with a task.
pub(super) fn fields(task: &Task) -> [String; 3] {
    [
        format!("task: {}", clean::line(task.id.as_str())),
        format!("context: {}", clean::line(task.context_id.as_str())),
        format!("state: {}", state(task.status.state)),
    ]
}

/// A whole task.
pub(super) fn task(task: &Task, printer: Printer) {
    for field in fields(task) {
        printer.line(field);
    }
    if let Some(timestamp) = task.status.timestamp {
        printer.line(format!("since: {timestamp}"));
    }
    if let Some(message) = &task.status.message {
        block("message", &parts(&message.parts), printer);
    }
    for artifact in &task.artifacts {
        block(&heading(artifact), &parts(&artifact.parts), printer);
    }
    for message in &task.history {
        block(&format!("history {}", who(message)), &parts(&message.parts), printer);
    }
}

/// Something that does not fit on a line.
fn block(label: &str, content: &str, printer: Printer) {
    printer.line("");
    printer.line(format!("{label}:"));
    printer.line(content);
}

fn heading(artifact: &Artifact) -> String {
    let name = artifact.name.as_deref().unwrap_or(artifact.artifact_id.as_str());
    format!("artifact {}", clean::line(name))
}

fn who(message: &Message) -> &'static str {
    match message.role {
        Role::User => "user",
        Role::Agent => "agent",
        Role::Unspecified => "unspecified",
    }
}

/// Parts under each other; texts that follow each other are one.
fn parts(parts: &[Part]) -> String {
    let mut text = String::new();
    let mut follows_text = false;
    for next in parts {
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

/// One part: text as it is, data as JSON, a file by what is known of it.
pub(super) fn part(part: &Part) -> String {
    let media_type = part.media_type.as_deref().unwrap_or("type unknown");
    let name = part.filename.as_deref().unwrap_or("unnamed");
    match &part.content {
        PartContent::Text(text) => clean::text(text).into_owned(),
        PartContent::Data(data) => clean::text(&pretty(data.as_str())).into_owned(),
        PartContent::Url(url) => clean::line(&format!("[file {name}, {media_type}, at {url}]")),
        PartContent::Raw(bytes) => clean::line(&format!("[file {name}, {media_type}, {} bytes]", bytes.len())),
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
