//! Strict readers of tasks, messages and events in each dialect: a state or a member in the spelling of another dialect
//! is not found.

use serde_json::Value;
use switchboard_a2a::Dialect;

use crate::redact::CUT;

/// States as v0.3 calls them, and whether they are terminal.
const STATES: [(&str, bool); 9] = [
    ("submitted", false),
    ("working", false),
    ("completed", true),
    ("failed", true),
    ("canceled", true),
    ("input-required", false),
    ("rejected", true),
    ("auth-required", false),
    ("unknown", false),
];

#[derive(Clone, Debug)]
pub(crate) enum SendResult {
    Task(Value),
    Message(Value),
}

pub(crate) fn sent(dialect: Dialect, result: &Value) -> Result<SendResult, String> {
    let (task, message) = match dialect {
        Dialect::V03Rpc => match result["kind"].as_str() {
            Some("task") => (Some(result), None),
            Some("message") => (None, Some(result)),
            _ => return Err("the result has neither kind \"task\" nor kind \"message\"".to_owned()),
        },
        _ => (result.get("task"), result.get("message")),
    };
    match (task, message) {
        (Some(task), None) => Ok(SendResult::Task(task.clone())),
        (None, Some(message)) => Ok(SendResult::Message(message.clone())),
        (Some(_), Some(_)) => Err("the result has both a task and a message".to_owned()),
        (None, None) => Err("the result has neither a task nor a message".to_owned()),
    }
}

/// The state of a task or of a status update, as v0.3 calls it.
pub(crate) fn state(dialect: Dialect, holder: &Value) -> Option<&'static str> {
    let text = holder["status"]["state"].as_str()?;
    let found = STATES.iter().find(|(name, _)| {
        let v1 = || format!("TASK_STATE_{}", name.to_uppercase().replace('-', "_"));
        match dialect {
            Dialect::V1 => text == v1(),
            Dialect::V03Rpc => text == *name,
            Dialect::V03Rest => text == v1() || (*name == "canceled" && text == "TASK_STATE_CANCELLED"),
        }
    });
    found.map(|(name, _)| *name)
}

/// Whether the state of a task or of an update is terminal.
pub(crate) fn has_ended(dialect: Dialect, holder: &Value) -> bool {
    let state = state(dialect, holder);
    STATES.iter().any(|(name, ends)| Some(*name) == state && *ends)
}

pub(crate) fn is_interrupted(dialect: Dialect, holder: &Value) -> bool {
    matches!(state(dialect, holder), Some("input-required" | "auth-required"))
}

/// Those of the members that are no text, or an empty one.
pub(crate) fn without_text<'a>(object: &'a Value, members: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    members.iter().copied().filter(|member| object[*member].as_str().is_none_or(str::is_empty))
}

/// The entries of a list; none where it is no list.
pub(crate) fn entries(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

pub(crate) fn task_problems(dialect: Dialect, task: &Value) -> Vec<String> {
    let required: &[&str] = if dialect == Dialect::V03Rpc { &["id", "contextId"] } else { &["id"] };
    let mut problems: Vec<String> =
        without_text(task, required).map(|member| format!("the task has no {member}")).collect();
    if state(dialect, task).is_none() {
        problems.push(format!("the task's state is {}", short(&task["status"]["state"])));
    }
    let timestamp = &task["status"]["timestamp"];
    if dialect == Dialect::V1 && !timestamp.is_null() && !timestamp.as_str().is_some_and(is_utc) {
        problems.push(format!("the status has the timestamp {}", short(timestamp)));
    }
    for artifact in entries(&task["artifacts"]) {
        problems.extend(without_text(artifact, &["artifactId"]).map(|member| format!("an artifact has no {member}")));
        if artifact["parts"].as_array().is_none_or(Vec::is_empty) {
            problems.push("an artifact has no parts".to_owned());
        }
    }
    problems
}

pub(crate) fn message_problems(dialect: Dialect, message: &Value) -> Vec<String> {
    let mut problems: Vec<String> =
        without_text(message, &["messageId"]).map(|member| format!("the message has no {member}")).collect();
    let roles: &[&str] = match dialect {
        Dialect::V1 => &["ROLE_AGENT"],
        Dialect::V03Rpc => &["agent"],
        Dialect::V03Rest => &["ROLE_AGENT", "agent"],
    };
    if !message["role"].as_str().is_some_and(|role| roles.contains(&role)) {
        problems.push(format!("the message's role is {}, not {}", short(&message["role"]), roles[0]));
    }
    let parts = message["parts"].as_array().or_else(|| message["content"].as_array());
    // Only 1.0 demands at least one.
    if parts.is_none_or(|parts| parts.is_empty() && dialect == Dialect::V1) {
        problems.push("the message has no parts".to_owned());
    }
    problems
}

fn is_utc(text: &str) -> bool {
    text.ends_with('Z') && switchboard_a2a::Timestamp::parse(text).is_some()
}

pub(crate) enum Event<'a> {
    Task(&'a Value),
    Message(&'a Value),
    Status(&'a Value),
    Artifact(&'a Value),
    Unknown,
}

pub(crate) fn event(dialect: Dialect, frame: &Value) -> Event<'_> {
    if dialect == Dialect::V03Rpc {
        return match frame["kind"].as_str() {
            Some("task") => Event::Task(frame),
            Some("message") => Event::Message(frame),
            Some("status-update") => Event::Status(frame),
            Some("artifact-update") => Event::Artifact(frame),
            _ => Event::Unknown,
        };
    }
    match kinds(dialect, frame).first() {
        Some(&"task") => Event::Task(&frame["task"]),
        Some(&"message") => Event::Message(&frame["message"]),
        Some(&"statusUpdate") => Event::Status(&frame["statusUpdate"]),
        Some(&"artifactUpdate") => Event::Artifact(&frame["artifactUpdate"]),
        _ => Event::Unknown,
    }
}

/// The members of an event that give its kind: the definition's oneof demands one. A null member is absent, and later
/// versions may add others. JSON-RPC 0.3 has a member `kind` instead.
pub(crate) fn kinds(dialect: Dialect, frame: &Value) -> Vec<&'static str> {
    if dialect == Dialect::V03Rpc {
        return Vec::new();
    }
    let names = ["task", "message", "statusUpdate", "artifactUpdate"];
    names.into_iter().filter(|name| !frame[*name].is_null()).collect()
}

pub(crate) fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}{CUT}", &text[..end]),
        None => text,
    }
}
