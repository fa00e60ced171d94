//! What the operator denies, denied before the program looks at any rule of its own.
//!
//! The program asks only about what it does not allow by itself, and it allows much: files of its folder may be read,
//! and what settings allow is done. So where something is denied it is told to call back before each use of a tool, in
//! agents that it starts too. It does so before its own rules and those of all settings, and also if settings turn
//! hooks off. An answer that it cannot read would count for nothing, so every call is answered.

use serde_json::{Value, json};

use super::read::text;
use super::tools::permission;
use crate::adapters::permissions::{Permission, Permissions};

/// What we call the callback and the request for it.
const NAME: &str = "rules";

/// The tool with which the model looks up how other tools are called. Without it those that are allowed could not be
/// used, and it does nothing else; so it is denied only by its name.
const LOOK_UP: &str = "ToolSearch";

/// The rules of a run in which something is denied.
#[derive(Debug)]
pub(super) struct Rules {
    permissions: Permissions,
}

/// What the program says to the request for callbacks.
pub(super) enum Reply {
    /// It will call.
    Taken,
    /// It will not, for this reason.
    Refused(String),
}

/// A call that was answered.
pub(super) struct Answered {
    /// What to write.
    pub(super) line: String,
    /// The call and the tool, if it was refused.
    pub(super) refused: Option<(String, String)>,
}

impl Rules {
    /// The rules, if they deny anything.
    pub(super) fn new(permissions: &Permissions) -> Option<Self> {
        let denies = permissions.default == Permission::Deny || !permissions.deny.is_empty();
        denies.then(|| Self { permissions: permissions.clone() })
    }

    /// The request for callbacks. Nothing may be done before it is taken.
    pub(super) fn request(&self) -> String {
        let hooks = json!({"PreToolUse": [{"matcher": "", "hookCallbackIds": [NAME]}]});
        let request = json!({"subtype": "initialize", "hooks": hooks});
        json!({"type": "control_request", "request_id": NAME, "request": request}).to_string()
    }

    /// What a line of type `control_response` says to that request; nothing if it answers another.
    pub(super) fn reply(&self, line: &Value) -> Option<Reply> {
        let response = line.get("response").filter(|response| text(response, "request_id") == NAME)?;
        Some(match text(response, "subtype") {
            "success" => Reply::Taken,
            _ => Reply::Refused(text(response, "error").to_owned()),
        })
    }

    /// The answer to a line of type `control_request`, if it is a callback. One that names no tool is refused.
    pub(super) fn answer(&self, line: &Value) -> Option<Answered> {
        let id = line.get("request_id").filter(|id| !id.is_null())?;
        let asked = line.get("request").filter(|asked| text(asked, "subtype") == "hook_callback")?;
        let input = asked.get("input").unwrap_or(&Value::Null);
        let tool = text(input, "tool_name");
        let denied =
            tool.is_empty() || self.of(tool, input.get("tool_input").unwrap_or(&Value::Null)) == Permission::Deny;
        let answer = if denied {
            let reason = format!("{tool} may not be used here. Do not try it again in another way.");
            json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
                "permissionDecisionReason": reason}})
        } else {
            json!({})
        };
        let response = json!({"subtype": "success", "request_id": id, "response": answer});
        Some(Answered {
            line: json!({"type": "control_response", "response": response}).to_string(),
            refused: denied.then(|| (text(input, "tool_use_id").to_owned(), tool.to_owned())),
        })
    }

    fn of(&self, tool: &str, input: &Value) -> Permission {
        if tool == LOOK_UP && self.permissions.default == Permission::Deny {
            return Permissions { default: Permission::Ask, ..self.permissions.clone() }.of(tool);
        }
        permission(&self.permissions, tool, input)
    }
}
