//! Permission rules translated to opencode's.
//!
//! The variable is laid over the permissions of its configuration files, name by name; the last rule that fits wins,
//! and a name that is in both keeps the place it has in the file. So that ours are last whatever the files say, they
//! are spelled in an unusual way: `**` for everything, and `bash *` for `bash` (a space and a star at the end
//! may stand for nothing). What a file grants to one of opencode's own agents still comes after.

use serde_json::Value;

use crate::adapters::field_error::FieldError;
use crate::adapters::permissions::{Permission, Permissions};

/// One permission stands for all tools that change files.
const EDIT: &str = "edit";
const EDITING: [&str; 3] = [EDIT, "write", "apply_patch"];

/// Tools that ask the user; a turn has no user at a terminal.
const QUESTIONS: [&str; 3] = ["question", "plan_enter", "plan_exit"];

/// Requested when a tool is called with the same input again and again. No answer comes, so the turn ends instead of
/// paying for a loop.
const LOOP: &str = "doom_loop";

/// Read-only tools need no approval where the rest does, except for files that hold secrets, as in opencode's default.
const FREE: [&str; 5] = ["glob", "grep", "list", "todoread", "todowrite"];
const READ: &str = r#"{"*":"allow","*.env":"ask","*.env.*":"ask","*.env.example":"allow"}"#;

/// Its tools and its other permissions. Those of MCP servers are called `SERVER_TOOL`.
pub(crate) const TOOLS: [&str; 18] = [
    "bash",
    EDIT,
    "write",
    "apply_patch",
    "read",
    "glob",
    "grep",
    "list",
    "webfetch",
    "websearch",
    "codesearch",
    "task",
    "skill",
    "lsp",
    "todoread",
    "todowrite",
    "question",
    "*_*",
];

/// The value of the variable. Where the default is to ask, rules that name a tool are opencode's to keep: then it does
/// not ask about that tool at all.
pub(crate) fn variable(permissions: &Permissions) -> Result<String, FieldError> {
    for (key, rules) in permissions.lists() {
        if let Some(rule) = rules.iter().find(|rule| !is_rule(rule)) {
            let wrong = format!("opencode has no tool named \"{rule}\"");
            return Err(FieldError::new(key, wrong, "name a tool as opencode does; a * stands for any characters"));
        }
    }
    let action = |permission| match permission {
        Permission::Allow => quoted("allow"),
        Permission::Deny => quoted("deny"),
        Permission::Ask => quoted("ask"),
    };
    let mut rules = vec![("**".to_owned(), action(permissions.default))];
    match permissions.default {
        Permission::Allow => rules.push((spelled(LOOP), quoted("ask"))),
        Permission::Ask => {
            rules.extend(FREE.map(|tool| (spelled(tool), quoted("allow"))));
            rules.push((spelled("read"), READ.to_owned()));
        }
        Permission::Deny => {}
    }
    rules.extend(permissions.allow.iter().map(|rule| (spelled(rule), quoted("allow"))));
    rules.extend(permissions.deny.iter().map(|rule| (spelled(rule), quoted("deny"))));
    if names_editing(&permissions.deny) {
        rules.push((spelled(EDIT), quoted("deny")));
    } else if permissions.of(EDIT) != Permission::Allow
        && let Some(tool) = EDITING.iter().find(|tool| permissions.of(tool) == Permission::Allow)
    {
        let wrong = format!("opencode cannot be told to allow \"{tool}\" alone");
        let right = format!("write {EDIT}, which stands for {}", EDITING.join(", "));
        return Err(FieldError::new("allow", wrong, right));
    }
    if permissions.default != Permission::Ask {
        rules.extend(QUESTIONS.map(|question| (spelled(question), quoted("deny"))));
    }
    Ok(object(&rules))
}

/// Whether opencode was configured to leave out or refuse a tool.
pub(super) fn is_denied(permissions: &Permissions, tool: &str) -> bool {
    if EDITING.contains(&tool) {
        names_editing(&permissions.deny) || permissions.of(EDIT) == Permission::Deny
    } else {
        permissions.of(tool) == Permission::Deny
    }
}

/// Whether rules are about any tool that changes files.
fn names_editing(rules: &[String]) -> bool {
    let only = Permissions { default: Permission::Allow, deny: rules.to_vec(), ..Permissions::default() };
    EDITING.iter().any(|tool| only.of(tool) == Permission::Deny)
}

/// Whether a rule means the same to opencode as here: to it, a question mark is any character.
fn is_rule(rule: &str) -> bool {
    !rule.is_empty()
        && rule.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/' | '*'))
}

fn spelled(rule: &str) -> String {
    format!("{rule} *")
}

fn quoted(action: &str) -> String {
    Value::from(action).to_string()
}

/// A JSON object with its members in this order; of two with the same name, the last. The values are JSON.
fn object(rules: &[(String, String)]) -> String {
    let mut members = Vec::new();
    for (at, (name, action)) in rules.iter().enumerate() {
        if !rules.iter().skip(at + 1).any(|(later, _)| later == name) {
            members.push(format!("{}:{action}", Value::from(name.as_str())));
        }
    }
    format!("{{{}}}", members.join(","))
}
