//! Compares JSON of two writers who agree on the meaning. What is evened out is listed here and nowhere else:
//!
//! - numbers by value: protocol buffer peers write 42 as 42.0;
//! - times by milliseconds: peers write 3 or 6 digits, `Z` or `+00:00`;
//! - what a protocol buffer prints or omits at will: `""`, `[]` and `false`.

use serde_json::Value;
use switchboard_a2a::Timestamp;

pub(crate) fn even_out(value: &Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().map_or_else(|| value.clone(), Value::from),
        Value::String(text) if text.starts_with("2026-01-02T") => {
            Timestamp::parse(text).unwrap_or_else(|| panic!("no time: {text}")).to_string().into()
        }
        Value::Array(items) => items.iter().map(even_out).collect(),
        Value::Object(members) => {
            let member = |(key, value): (&String, &Value)| match (key.as_str(), value) {
                ("timestamp", Value::String(text)) => (key.clone(), time(text)),
                _ => (key.clone(), even_out(value)),
            };
            let kept = members.iter().map(member);
            kept.filter(|(_, value)| !is_default(value)).collect()
        }
        _ => value.clone(),
    }
}

fn time(text: &str) -> Value {
    Timestamp::parse(text).unwrap_or_else(|| panic!("no time: {text}")).to_string().into()
}

fn is_default(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Bool(flag) => !flag,
        _ => false,
    }
}

/// Both sides parsed from bytes, evened out and compared.
#[track_caller]
pub(crate) fn assert_same(name: &str, ours: &[u8], theirs: &Value) {
    let ours: Value = serde_json::from_slice(ours).unwrap();
    assert_eq!(even_out(&ours), even_out(theirs), "{name}\nours {ours}\ntheirs {theirs}");
}
