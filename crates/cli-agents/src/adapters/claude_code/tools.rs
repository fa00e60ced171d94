//! Tools: what is called, what it answers, and how a call reads.

use std::collections::HashMap;
use std::path::Path;

use serde_json::Value;

use crate::adapters::adapter::command_alone;
use crate::adapters::dialogue::Steps;
use crate::adapters::event::Event;
use crate::adapters::json::text;
use crate::adapters::permissions::{Permission, Permissions};

/// Calls that are remembered until they are answered. No model makes so many at once.
const MOST_OPEN: usize = 1000;

/// The members that describe a call best, and whether they are locations: `Edit src/main.rs`, but `Bash: cargo test`.
const SUBJECTS: [(&str, bool); 10] = [
    ("command", false),
    ("file_path", true),
    ("notebook_path", true),
    ("url", true),
    ("query", false),
    ("pattern", false),
    ("path", true),
    ("skill", true),
    ("plan", false),
    ("description", false),
];

/// Two names of one tool: it is listed by the first, and approval requests use either.
const STARTS_AGENTS: [&str; 2] = ["Task", "Agent"];

/// The tool that runs commands.
pub(super) const SHELL: &str = "Bash";

pub(super) fn permission(permissions: &Permissions, tool: &str, input: &Value) -> Permission {
    if STARTS_AGENTS.contains(&tool) {
        return permissions.of_any(&STARTS_AGENTS);
    }
    // A command that leaves the program's own sandbox is more than the command that a rule allows.
    let in_sandbox = input.get("dangerouslyDisableSandbox").is_none_or(|leaves| leaves == &Value::Bool(false));
    let command = command_alone(input, &["run_in_background", "dangerouslyDisableSandbox"]);
    permissions.of_call(&[tool], command.filter(|_| tool == SHELL && in_sandbox))
}

#[derive(Debug, Default)]
pub(super) struct Calls {
    open: HashMap<String, Call>,
}

#[derive(Debug)]
struct Call {
    tool: String,
    /// The file that is changed if it succeeds.
    changes: Option<String>,
}

impl Calls {
    /// A block of type `tool_use`.
    pub(super) fn call(&mut self, block: &Value, steps: &mut Steps) {
        let (id, tool) = (text(block, "id").to_owned(), text(block, "name").to_owned());
        let input = block.get("input").cloned().unwrap_or_default();
        let changes = match tool.as_str() {
            "Edit" | "Write" | "MultiEdit" => Some(text(&input, "file_path")),
            "NotebookEdit" => Some(text(&input, "notebook_path")),
            _ => None,
        };
        let changes = changes.filter(|path| !path.is_empty()).map(str::to_owned);
        if self.open.len() < MOST_OPEN {
            self.open.insert(id.clone(), Call { tool: tool.clone(), changes });
        }
        steps.event(Event::ToolUse { id, tool, input });
    }

    /// A block of type `tool_result`.
    pub(super) fn answer(&mut self, block: &Value, steps: &mut Steps) {
        let id = text(block, "tool_use_id").to_owned();
        let is_error = block.get("is_error").and_then(Value::as_bool).unwrap_or_default();
        let output = block.get("content").map(output).unwrap_or_default();
        let call = self.open.remove(&id);
        let (tool, changes) = call.map(|call| (call.tool, call.changes)).unwrap_or_default();
        steps.event(Event::ToolResult { id, tool, output, is_error });
        if let Some(path) = changes
            && !is_error
        {
            steps.event(Event::FilesChanged { paths: vec![path] });
        }
    }
}

/// What a tool answered: a text, or a list of blocks of which some are texts.
fn output(content: &Value) -> String {
    let block = |block: &Value| match text(block, "type") {
        "text" => Some(text(block, "text").to_owned()),
        "image" => Some("[image]".to_owned()),
        _ => None,
    };
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().filter_map(block).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}

pub(super) fn describe(tool: &str, input: &Value, cwd: &Path) -> String {
    let subject = SUBJECTS.iter().find_map(|(member, place)| {
        let subject = text(input, member);
        (!subject.is_empty()).then_some((subject, *place))
    });
    match subject {
        Some((place, true)) => format!("{tool} {}", within(place, cwd)),
        Some((subject, false)) => format!("{tool}: {subject}"),
        None if input.as_object().is_none_or(serde_json::Map::is_empty) => tool.to_owned(),
        None => format!("{tool}: {input}"),
    }
}

/// A path as seen from the working directory, if it is in it.
fn within<'a>(path: &'a str, cwd: &Path) -> &'a str {
    let inside = Path::new(path).strip_prefix(cwd).ok().and_then(Path::to_str);
    inside.filter(|inside| !inside.is_empty()).unwrap_or(path)
}
