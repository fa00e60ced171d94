//! What Codex does without asking. It asks about everything that it can ask about, but a rule in the `rules` folder of its
//! home lets a command pass, and servers that a plugin brings are not ours to set.

use serde_json::Value;

use crate::adapters::codex::items::{Call, TYPED_SOURCE, failed, permission, text};
use crate::adapters::permissions::{Permission, Permissions};

/// What is to be done about it.
pub(super) enum Unasked {
    /// The caller is told, since this would have been asked.
    Tell(String),
    /// The turn ends here.
    Refuse(String),
}

/// A call has begun. Most wait for an answer then; a command that has a process does not, unless it is something that is
/// typed into a command which was asked about. Agents of its own never do.
pub(super) fn begun(call: &Call, item: &Value, permissions: &Permissions) -> Option<Unasked> {
    let waits = match call.tool.as_str() {
        "shell" => text(item, "processId", "process_id").is_empty() || text(item, "source", "source") == TYPED_SOURCE,
        "apply_patch" => true,
        _ => call.server.is_some(),
    };
    match permission(permissions, &call.tool, &call.input) {
        _ if waits => None,
        // Also if it has asked: the answer was no.
        Permission::Deny => Some(Unasked::Refuse(refusal(call))),
        Permission::Ask if call.tool == "shell" && !call.asked => {
            Some(Unasked::Tell(format!("codex did not ask about this command: a rule in {RULES} allows it")))
        }
        Permission::Ask | Permission::Allow => None,
    }
}

/// A call has ended. One that is denied must have been refused: it failed because the answer was no.
pub(super) fn ended(call: &Call, item: &Value, permissions: &Permissions) -> Option<Unasked> {
    let error = item.pointer("/error/message").and_then(Value::as_str).unwrap_or_default();
    let refused_itself = text(item, "status", "status") == "declined" || error.contains("requires approval");
    let was_used = !failed(item) || !(call.asked || refused_itself);
    let is_denied = permission(permissions, &call.tool, &call.input) == Permission::Deny;
    (is_denied && was_used).then(|| Unasked::Refuse(refusal(call)))
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
