//! Calls that Codex makes without an approval request. It requests approval wherever it can, but a rule in the `rules`
//! folder of its home lets a command pass, and MCP servers of a plugin cannot be configured from here.

use serde_json::Value;

use crate::adapters::codex::items::{Call, TYPED_SOURCE, either_text, failed, permission};
use crate::adapters::json::text;
use crate::adapters::permissions::{Permission, Permissions};

pub(super) enum UnapprovedCall {
    /// A notice to the caller, since this call needed approval.
    Warn(String),
    Refuse(String),
}

/// A call has begun. Most wait for approval then; a command that has a process does not, unless it is input to a
/// running command that was approved. Subagents never do.
pub(super) fn begun(call: &Call, item: &Value, permissions: &Permissions) -> Option<UnapprovedCall> {
    let waits = match call.tool.as_str() {
        "shell" => either_text(item, "processId", "process_id").is_empty() || text(item, "source") == TYPED_SOURCE,
        "apply_patch" => true,
        _ => call.server.is_some(),
    };
    match permission(permissions, &call.tool, &call.input) {
        _ if waits => None,
        // Also after an approval request: the answer was no.
        Permission::Deny => Some(UnapprovedCall::Refuse(refusal(call))),
        Permission::Ask if call.tool == "shell" && !call.asked => {
            Some(UnapprovedCall::Warn(format!("codex did not ask about this command: a rule in {RULES} allows it")))
        }
        Permission::Ask | Permission::Allow => None,
    }
}

/// A call has ended. One that is denied must have been refused: it failed because the answer was no.
pub(super) fn ended(call: &Call, item: &Value, permissions: &Permissions) -> Option<UnapprovedCall> {
    let error = item.pointer("/error/message").and_then(Value::as_str).unwrap_or_default();
    let refused_itself = text(item, "status") == "declined" || error.contains("requires approval");
    let was_used = !failed(item) || !(call.asked || refused_itself);
    let is_denied = permission(permissions, &call.tool, &call.input) == Permission::Deny;
    (is_denied && was_used).then(|| UnapprovedCall::Refuse(refusal(call)))
}

const RULES: &str = "the `rules` folder of its home";

fn refusal(call: &Call) -> String {
    let tool = &call.tool;
    let used = format!("codex used {tool} without asking, and it is denied");
    match (&call.server, tool.as_str()) {
        (Some(server), _) => format!("{used}: switch off the plugin or the app that brings the server {server}"),
        (None, "shell") => format!("{used}: remove the rule from {RULES} that allows {}", call.input["command"]),
        (None, _) => used,
    }
}
