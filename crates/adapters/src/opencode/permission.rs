//! Our permissions in opencode's words.
//!
//! The variable is laid over the permissions of its configuration files, name by name; the last rule that fits wins,
//! and a name that is in both keeps the place it has in the file. So that ours are last whatever the files say, they
//! are spelled as nobody spells them there: `**` for everything, and `bash *` for `bash` (a space and a star at the end
//! may stand for nothing). What a file grants to one of opencode's own agents still comes after.

use serde_json::Value;

use crate::order::OrderError;
use crate::permissions::{Permission, Permissions};

/// One permission stands for all tools that change files.
const EDIT: &str = "edit";
const EDITING: [&str; 3] = [EDIT, "write", "apply_patch"];

/// Nobody is there to answer.
const QUESTIONS: [&str; 3] = ["question", "plan_enter", "plan_exit"];

/// Asked when a tool is called with the same input again and again. Nobody answers, so the turn ends: better than to
/// pay for a loop.
const LOOP: &str = "doom_loop";

/// The value of the variable.
pub(super) fn variable(permissions: &Permissions) -> Result<String, OrderError> {
    let default = match permissions.default {
        Permission::Allow => "allow",
        Permission::Deny => "deny",
        Permission::Ask => {
            return Err(OrderError::Unsupported(
                "opencode cannot ask in this form: set the default permission to allow or deny".to_owned(),
            ));
        }
    };
    if let Some(rule) = permissions.allow.iter().chain(&permissions.deny).find(|rule| !is_rule(rule)) {
        return Err(OrderError::Unsupported(format!(
            "opencode has no tool named `{rule}`: name a tool as opencode does; a `*` stands for any characters"
        )));
    }
    let mut rules = vec![("**".to_owned(), default)];
    if permissions.default == Permission::Allow {
        rules.push((spelled(LOOP), "ask"));
    }
    for rule in &permissions.allow {
        rules.push((spelled(rule), "allow"));
    }
    for rule in &permissions.deny {
        rules.push((spelled(rule), "deny"));
    }
    if names_editing(&permissions.deny) {
        rules.push((spelled(EDIT), "deny"));
    } else if permissions.of(EDIT) == Permission::Deny
        && let Some(tool) = EDITING.iter().find(|tool| permissions.of(tool) == Permission::Allow)
    {
        return Err(OrderError::Unsupported(format!(
            "opencode cannot be told to allow `{tool}` alone: allow `{EDIT}`, which stands for {}",
            EDITING.join(", ")
        )));
    }
    rules.extend(QUESTIONS.map(|question| (spelled(question), "deny")));
    Ok(object(&rules))
}

/// Whether a tool is one that opencode was told to leave out.
pub(super) fn is_denied(permissions: &Permissions, tool: &str) -> bool {
    if EDITING.contains(&tool) {
        names_editing(&permissions.deny) || permissions.of(EDIT) == Permission::Deny
    } else {
        permissions.of(tool) == Permission::Deny
    }
}

/// Whether rules that deny are about any tool that changes files.
fn names_editing(deny: &[String]) -> bool {
    let only = Permissions { default: Permission::Allow, allow: Vec::new(), deny: deny.to_vec() };
    EDITING.iter().any(|tool| only.of(tool) == Permission::Deny)
}

/// Whether a rule means the same to opencode as to us: to it, a question mark is any character.
fn is_rule(rule: &str) -> bool {
    !rule.is_empty()
        && rule.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/' | '*'))
}

fn spelled(rule: &str) -> String {
    format!("{rule} *")
}

/// A JSON object with its members in this order; of two with the same name, the last.
fn object(rules: &[(String, &str)]) -> String {
    let mut members = Vec::new();
    for (at, (name, action)) in rules.iter().enumerate() {
        if !rules.iter().skip(at + 1).any(|(later, _)| later == name) {
            members.push(format!("{}:{}", Value::from(name.as_str()), Value::from(*action)));
        }
    }
    format!("{{{}}}", members.join(","))
}
