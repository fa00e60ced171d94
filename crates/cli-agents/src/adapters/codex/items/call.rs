//! One tool call, under the name that permission rules use.

use serde_json::{Value, json};

use super::either_text;
use crate::adapters::event::Event;
use crate::adapters::json::{list, text};
use crate::adapters::permissions::{Permission, Permissions};

/// The tool that runs commands.
pub(in crate::adapters::codex) const SHELL: &str = "shell";
/// The kind of an approval request about input to a running command.
pub(in crate::adapters::codex) const TYPED: &str = "writeStdin";
/// The source of an item that is input to a running command.
pub(in crate::adapters::codex) const TYPED_SOURCE: &str = "unifiedExecInteraction";

pub(in crate::adapters::codex) struct Call {
    /// As permissions name it.
    pub(in crate::adapters::codex) tool: String,
    pub(in crate::adapters::codex) input: Value,
    /// The MCP server whose tool it is.
    pub(in crate::adapters::codex) server: Option<String>,
    pub(in crate::adapters::codex) asked: bool,
}

impl Call {
    /// The call that an item is, if it is one.
    pub(super) fn of(item: &Value) -> Option<Self> {
        let member = |name: &str| item.get(name).cloned().unwrap_or_default();
        let (tool, input) = match text(item, "type") {
            "command_execution" | "commandExecution" => {
                let mut input = shell_input(text(item, "command"), text(item, "cwd"));
                if text(item, "source") == TYPED_SOURCE {
                    input["kind"] = TYPED.into();
                }
                (SHELL.to_owned(), input)
            }
            "file_change" | "fileChange" => ("apply_patch".to_owned(), json!({ "changes": member("changes") })),
            "mcp_tool_call" | "mcpToolCall" => {
                let server = text(item, "server");
                return Some(Self {
                    tool: mcp_tool(server, text(item, "tool")),
                    input: member("arguments"),
                    server: Some(server.to_owned()),
                    asked: false,
                });
            }
            "web_search" | "webSearch" => ("web_search".to_owned(), json!({ "query": text(item, "query") })),
            "collab_tool_call" | "collabAgentToolCall" => {
                (with_underscores(text(item, "tool")), json!({ "prompt": text(item, "prompt") }))
            }
            _ => return None,
        };
        Some(Self { tool, input, server: None, asked: false })
    }

    pub(super) fn use_event(&self, id: &str) -> Event {
        Event::ToolUse { id: id.to_owned(), tool: self.tool.clone(), input: self.input.clone() }
    }

    /// What became of it, from the item as it ended.
    pub(super) fn result_event(&self, id: &str, item: &Value) -> Event {
        Event::ToolResult { id: id.to_owned(), tool: self.tool.clone(), output: output(item), is_error: failed(item) }
    }
}

/// What to do about a call. Rules with a pattern are about a command, not about input to a running one.
pub(in crate::adapters::codex) fn permission(permissions: &Permissions, tool: &str, input: &Value) -> Permission {
    let is_command = tool == SHELL && text(input, "kind") != TYPED;
    let command = input.get("command").and_then(Value::as_str).filter(|_| is_command);
    permissions.of_call(&[tool], command.map(bare))
}

/// The command without the shell around it, where nothing in it had to be quoted for that.
pub(in crate::adapters::codex) fn bare(command: &str) -> &str {
    let Some(inside) = command.strip_prefix("/bin/bash -lc ") else { return command };
    match inside.strip_prefix('\'').and_then(|inside| inside.strip_suffix('\'')) {
        Some(quoted) if !quoted.contains('\'') => quoted,
        None if !inside.contains(['\'', '"', '\\', ' ']) => inside,
        _ => command,
    }
}

/// A tool of an MCP server, as permissions name it.
pub(in crate::adapters::codex) fn mcp_tool(server: &str, tool: &str) -> String {
    format!("mcp__{server}__{tool}")
}

pub(in crate::adapters::codex) fn shell_input(command: &str, cwd: &str) -> Value {
    if cwd.is_empty() { json!({ "command": command }) } else { json!({ "command": command, "cwd": cwd }) }
}

/// Each changed file and how: `add`, `update`, `delete`.
pub(in crate::adapters::codex) fn changes(holder: &Value) -> Vec<(&str, &str)> {
    let list = list(holder, "changes");
    let how = |change| match text(change, "kind") {
        "" => change.get("kind").map(|kind| text(kind, "type")).unwrap_or_default(),
        kind => kind,
    };
    list.iter().map(|change| (how(change), text(change, "path"))).collect()
}

/// Files that were changed by a call that went well, also those they were moved to.
pub(super) fn changed_files(item: &Value) -> Vec<String> {
    if failed(item) {
        return Vec::new();
    }
    let list = list(item, "changes");
    let places = list.iter().flat_map(|change| {
        let moved = change.get("kind").map(|kind| either_text(kind, "move_path", "movePath")).unwrap_or_default();
        [text(change, "path"), moved]
    });
    places.filter(|path| !path.is_empty()).map(str::to_owned).collect()
}

/// Whether it failed or was refused. A command that ends with anything but 0 has failed, whatever its status.
pub(in crate::adapters::codex) fn failed(item: &Value) -> bool {
    let code = item.get("exit_code").or_else(|| item.get("exitCode")).and_then(Value::as_i64);
    matches!(text(item, "status"), "failed" | "declined") || code.is_some_and(|code| code != 0)
}

fn output(item: &Value) -> String {
    let said = either_text(item, "aggregated_output", "aggregatedOutput");
    if !said.is_empty() {
        return said.to_owned();
    }
    if let Some(error) = item.pointer("/error/message").and_then(Value::as_str) {
        return error.to_owned();
    }
    if let Some(content) = item.pointer("/result/content").and_then(Value::as_array) {
        return content.iter().map(block).collect::<Vec<_>>().join("\n");
    }
    if let Some(agents) = item.get("agents_states").or_else(|| item.get("agentsStates")).and_then(Value::as_object) {
        let state = |agent: &Value| match (text(agent, "status"), text(agent, "message")) {
            (status, "") => status.to_owned(),
            (status, message) => format!("{status}: {message}"),
        };
        return agents.values().map(state).collect::<Vec<_>>().join("\n");
    }
    let files: Vec<String> = changes(item).iter().map(|(how, path)| format!("{how} {path}")).collect();
    match text(item, "status") {
        "declined" => "declined".to_owned(),
        "failed" if !files.is_empty() => format!("failed: {}", files.join("\n")),
        _ => files.join("\n"),
    }
}

/// A content block of an MCP tool's result.
fn block(block: &Value) -> String {
    block.get("text").and_then(Value::as_str).map_or_else(|| block.to_string(), str::to_owned)
}

/// `spawnAgent` and `spawn_agent` are one tool.
fn with_underscores(name: &str) -> String {
    let mut written = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            written.push('_');
        }
        written.push(letter.to_ascii_lowercase());
    }
    written
}
