//! The tools of the agents we know: what they are called and how their arguments are written.

use serde_json::{Value, json};

use crate::wire::Wire;

/// What the model wants done, whatever the tool is called.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Task {
    Shell { command: String },
    Write { path: String, text: String },
    Mcp { server: String, tool: String, arguments: Value },
}

/// One tool call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Call {
    /// What the name stands in, where the wire tells it apart.
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
    pub(crate) arguments: Value,
}

impl Task {
    /// The call of the tool that does it. A model may also call what is not offered, so the wire's usual tool is the last resort.
    pub(crate) fn call(&self, wire: Wire, offered: &[String]) -> Call {
        let names = match self {
            Self::Shell { .. } => SHELLS,
            // Codex writes files through its shell.
            Self::Write { .. } => WRITERS,
            Self::Mcp { .. } => &[],
        };
        let is_offered = |name: &&&str| offered.iter().any(|offered| offered == **name);
        let name = names.iter().find(is_offered).map_or_else(|| self.usual(wire), |name| (*name).to_owned());
        Call { namespace: self.namespace(wire), arguments: self.arguments(&name), name }
    }

    /// Codex offers the tools of an MCP server in a namespace.
    fn namespace(&self, wire: Wire) -> Option<String> {
        match (self, wire) {
            (Self::Mcp { server, .. }, Wire::OpenAiResponses) => Some(format!("mcp__{server}")),
            _ => None,
        }
    }

    fn usual(&self, wire: Wire) -> String {
        let name = match (self, wire) {
            (Self::Mcp { tool, .. }, Wire::OpenAiResponses) => tool,
            (Self::Mcp { server, tool, .. }, _) => return format!("mcp__{server}__{tool}"),
            (Self::Shell { .. }, Wire::AnthropicMessages) => "Bash",
            (Self::Shell { .. }, Wire::OpenAiChatCompletions) => "bash",
            (Self::Shell { .. }, Wire::GeminiGenerateContent) => "run_shell_command",
            (_, Wire::OpenAiResponses) => "exec_command",
            (Self::Write { .. }, Wire::AnthropicMessages) => "Write",
            (Self::Write { .. }, Wire::OpenAiChatCompletions) => "write",
            (Self::Write { .. }, Wire::GeminiGenerateContent) => "write_file",
        };
        name.to_owned()
    }

    fn arguments(&self, name: &str) -> Value {
        match (self, name) {
            (Self::Shell { command }, "exec_command") => json!({ "cmd": command }),
            (Self::Shell { command }, "shell") => json!({ "command": ["bash", "-lc", command] }),
            (Self::Shell { command }, _) => json!({ "command": command, "description": "Run the command" }),
            (Self::Write { path, text }, "exec_command") => json!({ "cmd": patch(path, text) }),
            (Self::Write { path, text }, "write") => json!({ "filePath": path, "content": text }),
            (Self::Write { path, text }, _) => json!({ "file_path": path, "content": text }),
            (Self::Mcp { arguments, .. }, _) => arguments.clone(),
        }
    }
}

const SHELLS: &[&str] = &["Bash", "exec_command", "shell", "bash", "run_shell_command"];
const WRITERS: &[&str] = &["Write", "write", "write_file"];

/// Codex takes a patch that is given to the command `apply_patch` for itself.
fn patch(path: &str, text: &str) -> String {
    let lines: String = text.lines().map(|line| format!("+{line}\n")).collect();
    format!("apply_patch <<'PATCH'\n*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch\nPATCH")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(name: &str, arguments: Value) -> Call {
        Call { namespace: None, name: name.to_owned(), arguments }
    }

    #[test]
    fn a_tool_of_a_server_is_called_as_the_agent_offers_it() {
        let arguments = json!({ "text": "a" });
        let task = Task::Mcp { server: "notes".to_owned(), tool: "add".to_owned(), arguments: arguments.clone() };
        let whole = called("mcp__notes__add", arguments.clone());
        assert_eq!(task.call(Wire::AnthropicMessages, &[]), whole);
        let namespace = Some("mcp__notes".to_owned());
        assert_eq!(task.call(Wire::OpenAiResponses, &[]), Call { namespace, ..called("add", arguments) });
    }

    #[test]
    fn the_tool_that_is_offered_is_called() {
        let task = Task::Shell { command: "ls".to_owned() };
        let offered = ["Read".to_owned(), "shell".to_owned()];
        let expected = called("shell", json!({ "command": ["bash", "-lc", "ls"] }));
        assert_eq!(task.call(Wire::OpenAiResponses, &offered), expected);
    }

    #[test]
    fn without_an_offer_the_usual_tool_is_called() {
        let shell = Task::Shell { command: "ls".to_owned() };
        let write = Task::Write { path: "a".to_owned(), text: "b\nc".to_owned() };
        let described = json!({ "command": "ls", "description": "Run the command" });
        for (wire, name, arguments, writer, written) in [
            (Wire::AnthropicMessages, "Bash", &described, "Write", json!({ "file_path": "a", "content": "b\nc" })),
            (Wire::OpenAiChatCompletions, "bash", &described, "write", json!({ "filePath": "a", "content": "b\nc" })),
            (
                Wire::GeminiGenerateContent,
                "run_shell_command",
                &described,
                "write_file",
                json!({ "file_path": "a", "content": "b\nc" }),
            ),
        ] {
            assert_eq!(shell.call(wire, &[]), called(name, arguments.clone()));
            assert_eq!(write.call(wire, &[]), called(writer, written));
        }
        assert_eq!(shell.call(Wire::OpenAiResponses, &[]).arguments, json!({ "cmd": "ls" }));
        let patch = "apply_patch <<'PATCH'\n*** Begin Patch\n*** Add File: a\n+b\n+c\n*** End Patch\nPATCH";
        assert_eq!(write.call(Wire::OpenAiResponses, &[]).arguments, json!({ "cmd": patch }));
    }
}
