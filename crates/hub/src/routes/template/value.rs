//! The values of an event, as texts.

use serde_json::Value;

const NOTHING: &Value = &Value::Null;

/// What is at a path; null if nothing is.
pub(super) fn at<'a>(values: &'a Value, path: &[String]) -> &'a Value {
    let step = |value: &'a Value, name: &String| match value {
        Value::Object(members) => members.get(name),
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        _ => None,
    };
    path.iter().try_fold(values, step).unwrap_or(NOTHING)
}

/// A text as it is, nothing as an empty one, and all else as JSON.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
