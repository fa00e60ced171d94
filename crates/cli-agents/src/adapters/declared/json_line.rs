//! Parses one line of a program that writes JSON.

use serde_json::{Map, Value};

use crate::adapters::dialogue::Steps;
use crate::adapters::event::Event;
use crate::adapters::json::parse;
use crate::adapters::plain_text::plain_line;
use crate::adapters::truncate::cut;

/// Notices are truncated to this many characters.
const LONGEST_NOTICE: usize = 2_000;

/// The members of a line that is a JSON object. Any other line becomes a notice: such programs, and the processes they
/// start, write warnings in between.
pub(crate) fn object(line: &str, steps: &mut Steps) -> Option<Map<String, Value>> {
    if let Some(Value::Object(members)) = parse(line) {
        return Some(members);
    }
    let text = plain_line(line);
    if !text.trim().is_empty() {
        steps.event(Event::Notice { text: cut(&text, LONGEST_NOTICE).into_owned() });
    }
    None
}

/// A value as text: strings are themselves, nothing is nothing, other values are written as JSON.
pub(crate) fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// Values as text, each on a line of its own.
pub(crate) fn joined_text(values: &[&Value]) -> Option<String> {
    let texts: Vec<String> = values.iter().filter_map(|value| text(value)).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// A count, which some programs write as a fraction or a text.
pub(crate) fn count(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64().or_else(|| number.as_f64().map(|number| number as u64)),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

/// Whether a line is JSON or the beginning of it. Text inside it is data and no prompt on a terminal.
pub(crate) fn is_json(line: &str) -> bool {
    let line = line.trim();
    if !line.starts_with(['{', '[']) {
        return false;
    }
    match serde_json::from_str::<serde::de::IgnoredAny>(line) {
        Ok(_) => true,
        Err(error) => error.is_eof(),
    }
}
