//! Reads members of JSON from a program: a missing one reads as empty, since lines are untrusted input.

use serde_json::Value;
use switchboard_a2a::jsonrpc::depth_exceeds;

/// As deep as `serde_json` reads.
const MAX_DEPTH: usize = 128;

/// A value that a program has written; nothing if it is no JSON, or so deep that the stack could be too short for it.
pub(crate) fn parse(text: &str) -> Option<Value> {
    if depth_exceeds(text.as_bytes(), MAX_DEPTH) { None } else { serde_json::from_str(text).ok() }
}

/// A member that is a text; empty if it is missing or something else.
pub(crate) fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value.get(member).and_then(Value::as_str).unwrap_or_default()
}

/// A member that is a whole number; 0 if it is missing or something else.
pub(crate) fn number(value: &Value, member: &str) -> u64 {
    value.get(member).and_then(Value::as_u64).unwrap_or_default()
}

/// A member that is a list; empty if it is missing or something else.
pub(crate) fn list<'a>(value: &'a Value, member: &str) -> &'a [Value] {
    value.get(member).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}
