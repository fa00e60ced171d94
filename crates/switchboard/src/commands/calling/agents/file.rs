//! Items of `agents.yaml` in a file of their own.

use std::io::Read;

use serde_json::{Map, Value};

use crate::commands::calling::{Failure, sanitize};

/// A file that holds more than this is not one of agents.
const LARGEST: u64 = 4 << 20;

/// The items of a file, or of standard input if it is `-`: one, a list, or a list under `agents`.
pub(super) fn items(path: &str) -> Result<Vec<Map<String, Value>>, Failure> {
    let shown = sanitize::line(path);
    let text = read(path).map_err(|error| {
        let next = "name a file with an item of agents.yaml, or write a URL such as https://agent.example";
        Failure::usage(format!("{shown} cannot be read: {error}"), next)
    })?;
    let value: Value = serde_saphyr::from_str(&text).map_err(|error| {
        Failure::usage(format!("{shown} is not YAML: {}", sanitize::line(&error.to_string())), "correct the file")
    })?;
    let list = match value {
        Value::Object(mut members) if members.len() == 1 && members.contains_key("agents") => {
            members.remove("agents").unwrap_or_default()
        }
        Value::Array(_) => value,
        single => Value::Array(vec![single]),
    };
    let Value::Array(list) = list else { return Err(no_items(&shown)) };
    let objects: Option<Vec<Map<String, Value>>> = list.into_iter().map(object).collect();
    objects.filter(|items| !items.is_empty()).ok_or_else(|| no_items(&shown))
}

/// The only item of a file.
pub(super) fn item(path: &str) -> Result<Map<String, Value>, Failure> {
    let mut items = items(path)?;
    match (items.pop(), items.len()) {
        (Some(item), 0) => Ok(item),
        (_, more) => {
            let problem = format!("{} has {} agents", sanitize::line(path), more + 1);
            Err(Failure::usage(problem, "name a file with one"))
        }
    }
}

/// What is in a file, or comes on standard input if it is `-`.
pub(in crate::commands::calling) fn read(path: &str) -> std::io::Result<String> {
    let mut text = String::new();
    match path {
        "-" => std::io::stdin().take(LARGEST).read_to_string(&mut text)?,
        path => std::fs::File::open(path)?.take(LARGEST).read_to_string(&mut text)?,
    };
    Ok(text)
}

fn object(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(members) => Some(members),
        _ => None,
    }
}

fn no_items(shown: &str) -> Failure {
    Failure::usage(format!("{shown} has no agent in it"), "write at least name and url, as in agents.yaml")
}
