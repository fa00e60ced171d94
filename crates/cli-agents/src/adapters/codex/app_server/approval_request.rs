//! Approval requests of the app server and their answers.

use serde_json::{Value, json};

use crate::adapters::codex::items::{Call, Items, SHELL, TYPED, bare, changes, either_text, mcp_tool, shell_input};
use crate::adapters::cut;
use crate::adapters::event::{Approval, Choice, ChoiceKind, Decision};
use crate::adapters::json::text;

pub(super) struct PendingApproval {
    /// Echoed exactly: it may be 0, and it may be a text.
    id: Value,
    form: AnswerForm,
    /// The item ids of the calls it may be about.
    pub(super) about: Vec<String>,
    /// Whether it is known which tool it is about.
    pub(super) is_named: bool,
}

enum AnswerForm {
    /// With `accept`, `decline` or `cancel`.
    Decision,
    /// With what is granted, for this turn only. What is left out is denied.
    Permissions(Value),
    /// As a form of an MCP server that has no fields.
    Elicitation,
}

/// Parses a request. One that is no approval request gives the response to write at once, so that Codex does not wait.
pub(super) fn parse(
    id: &Value,
    method: &str,
    params: &Value,
    items: &Items,
) -> Result<(Approval, PendingApproval), String> {
    let reason = text(params, "reason");
    let mut about = vec![either_text(params, "itemId", "item_id").to_owned()];
    let mut is_named = true;
    let (tool, input, prompt, form) = match method {
        "item/commandExecution/requestApproval" => {
            let (tool, input, prompt) = command(params);
            (tool, input, prompt, AnswerForm::Decision)
        }
        "item/fileChange/requestApproval" => {
            let input = items.call(either_text(params, "itemId", "item_id")).map(|call| call.input.clone());
            let input = input.unwrap_or_else(|| json!({ "changes": [] }));
            let files: Vec<String> = changes(&input).iter().map(|(how, path)| format!("{how} {path}")).collect();
            let prompt = if files.is_empty() {
                "Change files".to_owned()
            } else {
                format!("Change files: {}", files.join(", "))
            };
            ("apply_patch".to_owned(), input, prompt, AnswerForm::Decision)
        }
        "item/permissions/requestApproval" => {
            let wanted = params.get("permissions").cloned().unwrap_or_else(|| json!({}));
            let prompt = format!("Widen what it may do in this turn: {wanted}");
            ("request_permissions".to_owned(), wanted.clone(), prompt, AnswerForm::Permissions(wanted))
        }
        "mcpServer/elicitation/request" => {
            if params.pointer("/_meta/codex_approval_kind").and_then(Value::as_str) != Some("mcp_tool_call") {
                // The server wants something of a person that is no yes or no.
                return Err(json!({ "id": id, "result": { "action": "decline", "content": null } }).to_string());
            }
            let input = params.pointer("/_meta/tool_params").cloned().unwrap_or_default();
            let meant = mcp_calls(params, &input, items);
            about = meant.iter().map(|(id, _)| (*id).clone()).collect();
            let tool = mcp_tool_of(&meant);
            is_named = tool.is_some();
            let tool = tool.unwrap_or_else(|| format!("mcp__{}", text(params, "serverName")));
            (tool, input, text(params, "message").to_owned(), AnswerForm::Elicitation)
        }
        _ => {
            let message = format!("switchboard does not know {}", cut(method, 100));
            return Err(json!({ "id": id, "error": { "code": -32601, "message": message } }).to_string());
        }
    };
    let prompt = if reason.is_empty() { prompt } else { format!("{prompt} ({reason})") };
    let approval = Approval {
        request: id.to_string(),
        tool,
        input,
        prompt,
        choices: form.choices(),
        no_plain_yes: false,
        // None of its answers has a member for it.
        takes_reason: false,
    };
    Ok((approval, PendingApproval { id: id.clone(), form, about, is_named }))
}

impl PendingApproval {
    /// The line that answers it. Nothing but a yes allows: an answer that was not offered is a no.
    pub(super) fn answer(&self, decision: &Decision) -> String {
        let allowed = *decision == Decision::Allow;
        let result = match &self.form {
            AnswerForm::Decision if allowed => json!({ "decision": "accept" }),
            AnswerForm::Decision if *decision == Decision::Choose("cancel".to_owned()) => {
                json!({ "decision": "cancel" })
            }
            // Not among the decisions it offers, and yet the one that lets the turn go on.
            AnswerForm::Decision => json!({ "decision": "decline" }),
            AnswerForm::Permissions(wanted) if allowed => json!({ "permissions": wanted, "scope": "turn" }),
            AnswerForm::Permissions(_) => json!({ "permissions": {}, "scope": "turn" }),
            AnswerForm::Elicitation if allowed => json!({ "action": "accept", "content": {} }),
            AnswerForm::Elicitation => json!({ "action": "decline", "content": null }),
        };
        json!({ "id": self.id, "result": result }).to_string()
    }
}

impl AnswerForm {
    /// It also offers to remember a yes, for the session or in a file of rules. Neither is passed on: approvals are
    /// remembered by the server.
    fn choices(&self) -> Vec<Choice> {
        match self {
            Self::Decision => vec![Choice {
                id: "cancel".to_owned(),
                label: "Deny and stop the turn".to_owned(),
                kind: ChoiceKind::Other,
            }],
            Self::Permissions(_) | Self::Elicitation => Vec::new(),
        }
    }
}

/// A command, or a connection that a command has tried to make.
fn command(params: &Value) -> (String, Value, String) {
    let command = text(params, "command");
    if let Some(network) = params.get("networkApprovalContext").filter(|network| network.is_object()) {
        let (protocol, host) = (text(network, "protocol"), text(network, "host"));
        return ("network".to_owned(), network.clone(), format!("Connect to {host} ({protocol})"));
    }
    let mut input = shell_input(command, text(params, "cwd"));
    let prompt = match text(params, "kind") {
        TYPED => {
            input["kind"] = TYPED.into();
            format!("Type into a running command: {}", bare(command))
        }
        _ => format!("Run {}", bare(command)),
    };
    (SHELL.to_owned(), input, prompt)
}

/// The request names the server and not the tool, but the call has begun: it is one with the same arguments. If calls
/// of several tools match, those that the message quotes.
fn mcp_calls<'a>(params: &Value, input: &Value, items: &'a Items) -> Vec<(&'a String, &'a Call)> {
    let server = text(params, "serverName");
    let nothing = |value: &Value| value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
    let same = |call: &Call| call.input == *input || (nothing(&call.input) && nothing(input));
    let asked = |(_, call): &(&String, &Call)| call.server.as_deref() == Some(server) && same(call);
    let mut calls: Vec<_> = items.calls().filter(asked).collect();
    if mcp_tool_of(&calls).is_none() {
        let (message, prefix) = (text(params, "message"), mcp_tool(server, ""));
        calls.retain(|(_, call)| {
            message.contains(&format!("\"{}\"", call.tool.strip_prefix(&prefix).unwrap_or(&call.tool)))
        });
    }
    calls
}

/// The tool of these calls, if it is one. If it is none or several, no rule about one tool applies.
fn mcp_tool_of(calls: &[(&String, &Call)]) -> Option<String> {
    let (_, first) = calls.first()?;
    calls.iter().all(|(_, call)| call.tool == first.tool).then(|| first.tool.clone())
}
