//! Enforces the operator's deny rules with a `PreToolUse` hook, before the program looks at rules of its own.
//!
//! The program asks only about what it does not allow by itself, and it allows much: files of its folder may be read,
//! and what settings allow is done. So where something is denied, a hook makes it call back before each tool call, in
//! subagents too. It does so before its own rules and those of all settings, and also if settings turn
//! hooks off. An answer that it cannot read would count for nothing, so every call is answered.

use serde_json::{Value, json};

use super::tools::permission;
use crate::adapters::json::text;
use crate::adapters::permissions::{Permission, Permissions};

/// The id of the callback and of the request that registers it.
const NAME: &str = "rules";

/// The tool with which the model looks up how other tools are called. Without it those that are allowed could not be
/// used, and it does nothing else; so it is denied only by its name.
const LOOK_UP: &str = "ToolSearch";

/// The hook of a run in which something is denied.
#[derive(Debug)]
pub(super) struct DenyHook {
    permissions: Permissions,
}

pub(super) struct HookAnswer {
    pub(super) line: String,
    /// The call and the tool, if it was refused.
    pub(super) refused: Option<(String, String)>,
}

impl DenyHook {
    /// The hook, if the rules deny anything.
    pub(super) fn new(permissions: &Permissions) -> Option<Self> {
        let denies = permissions.default == Permission::Deny || !permissions.deny.is_empty();
        denies.then(|| Self { permissions: permissions.clone() })
    }

    /// The request that registers the hook. The prompt must wait until it is accepted.
    pub(super) fn request(&self) -> String {
        let hooks = json!({"PreToolUse": [{"matcher": "", "hookCallbackIds": [NAME]}]});
        let request = json!({"subtype": "initialize", "hooks": hooks});
        json!({"type": "control_request", "request_id": NAME, "request": request}).to_string()
    }

    /// The response to that request in a line of type `control_response`: accepted, or why not. None if it answers
    /// another.
    pub(super) fn reply(&self, line: &Value) -> Option<Result<(), String>> {
        let response = line.get("response").filter(|response| text(response, "request_id") == NAME)?;
        Some(match text(response, "subtype") {
            "success" => Ok(()),
            _ => Err(text(response, "error").to_owned()),
        })
    }

    /// The answer to a line of type `control_request`, if it is a callback. One that names no tool is refused.
    pub(super) fn answer(&self, line: &Value) -> Option<HookAnswer> {
        let id = line.get("request_id").filter(|id| !id.is_null())?;
        let asked = line.get("request").filter(|asked| text(asked, "subtype") == "hook_callback")?;
        let input = &asked["input"];
        let tool = text(input, "tool_name");
        let denied = tool.is_empty() || self.of(tool, &input["tool_input"]) == Permission::Deny;
        let answer = if denied {
            let reason = format!("{tool} may not be used here. Do not try it again in another way.");
            json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
                "permissionDecisionReason": reason}})
        } else {
            json!({})
        };
        let response = json!({"subtype": "success", "request_id": id, "response": answer});
        Some(HookAnswer {
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
