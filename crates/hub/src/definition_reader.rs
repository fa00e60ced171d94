//! Reads definitions that people write, of routes and of ceremonies: every problem is found before any is told, each with the
//! member that it is about and what would be right.

use serde_json::{Map, Value};
use switchboard_host::config::suggestion::did_you_mean;

/// The longest topic, agent or skill.
pub(crate) const WORD_BYTES: usize = 256;
/// Agents that a message may go to; `hub.fanout.max` may allow fewer.
const MOST_TARGETS: usize = 64;
/// What is quoted of a wrong value, in characters.
const QUOTED: usize = 80;

/// What is wrong with a definition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} {wrong}: {right}")]
pub(crate) struct Problem {
    pub(crate) key: String,
    pub(crate) wrong: String,
    pub(crate) right: String,
}

impl Problem {
    pub(crate) fn new(key: impl Into<String>, wrong: impl Into<String>, right: impl Into<String>) -> Self {
        Self { key: key.into(), wrong: wrong.into(), right: right.into() }
    }
}

/// Collects what is wrong.
#[derive(Default)]
pub(crate) struct DefinitionReader {
    pub(crate) problems: Vec<Problem>,
}

impl DefinitionReader {
    pub(crate) fn add(&mut self, key: &str, wrong: impl Into<String>, right: impl Into<String>) {
        self.problems.push(Problem::new(key, wrong, right));
    }

    /// Whether a member was found to be wrong.
    pub(crate) fn has_problem(&self, key: &str) -> bool {
        self.problems.iter().any(|problem| problem.key == key)
    }

    /// An object with no members but these.
    pub(crate) fn object<'a>(&mut self, given: &'a Value, key: &str, known: &[&str]) -> Option<&'a Map<String, Value>> {
        let Value::Object(members) = given else {
            let wrong = if given.is_null() { "is missing".to_owned() } else { format!("is {}", kind(given)) };
            let key = if key.is_empty() { "body" } else { key };
            self.add(key, wrong, format!("an object with {}", known.join(", ")));
            return None;
        };
        for name in members.keys().filter(|name| !known.contains(&name.as_str())) {
            self.add(&member(key, &quoted(name)), "is no member here", did_you_mean(name, known, "there are"));
        }
        Some(members)
    }

    /// A short text that may be absent.
    pub(crate) fn text<'a>(
        &mut self,
        members: &'a Map<String, Value>,
        place: (&str, &str),
        right: &str,
    ) -> Option<&'a str> {
        self.text_within(members, place, right, WORD_BYTES)
    }

    /// A text of at most so many bytes that may be absent.
    pub(crate) fn text_within<'a>(
        &mut self,
        members: &'a Map<String, Value>,
        (below, name): (&str, &str),
        right: &str,
        most: usize,
    ) -> Option<&'a str> {
        let key = member(below, name);
        match members.get(name)? {
            Value::Null => None,
            Value::String(text) if text.is_empty() || text.len() > most => {
                self.add(&key, format!("has {} bytes", text.len()), format!("{right}, of 1 to {most} bytes"));
                None
            }
            Value::String(text) => Some(text),
            other => {
                self.add(&key, format!("is {}", kind(other)), right);
                None
            }
        }
    }

    /// True or false.
    pub(crate) fn flag(&mut self, members: &Map<String, Value>, name: &str, default: bool) -> bool {
        match members.get(name) {
            None | Some(Value::Null) => default,
            Some(Value::Bool(flag)) => *flag,
            Some(other) => {
                self.add(name, format!("is {}", kind(other)), "true or false");
                default
            }
        }
    }

    /// One of some words.
    pub(crate) fn word<T: Copy>(&mut self, members: &Map<String, Value>, name: &str, words: &[(&str, T)]) -> Option<T> {
        let right = || words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(" or ");
        let given = self.text(members, ("", name), &right())?;
        let found = words.iter().find(|(word, _)| *word == given).map(|(_, value)| *value);
        if found.is_none() {
            self.add(name, format!("is {:?}", quoted(given)), right());
        }
        found
    }

    /// The agents that a message goes to: one or a list.
    pub(crate) fn targets(&mut self, members: &Map<String, Value>, below: &str) -> Vec<String> {
        let (key, right) = (member(below, "targets"), "the name of an agent or a list of names");
        let given = match members.get("targets") {
            None | Some(Value::Null) => return Vec::new(),
            Some(Value::Array(names)) => names.as_slice(),
            Some(one) => std::slice::from_ref(one),
        };
        let names: Option<Vec<String>> = given.iter().map(|name| name.as_str().map(str::to_owned)).collect();
        let is_name = |name: &String| !name.is_empty() && name.len() <= WORD_BYTES;
        match names.filter(|names| !names.is_empty() && names.iter().all(is_name)) {
            Some(names) if names.len() > MOST_TARGETS => {
                self.add(&key, format!("has {} names", names.len()), format!("at most {MOST_TARGETS}"));
                Vec::new()
            }
            Some(names) => names,
            None => {
                self.add(&key, "has what is no name", right);
                Vec::new()
            }
        }
    }

    /// The name of a variable of the environment.
    pub(crate) fn variable(&mut self, members: &Map<String, Value>, place: (&str, &str)) -> Option<String> {
        let variable = self.text(members, place, "the name of a variable of the environment")?;
        if !is_variable(variable) {
            let right = "the name of a variable of the server's environment: letters, digits and _";
            self.add(&member(place.0, place.1), format!("is {:?}", quoted(variable)), right);
        }
        Some(variable.to_owned())
    }
}

/// The path of a member.
pub(crate) fn member(below: &str, name: &str) -> String {
    if below.is_empty() { name.to_owned() } else { format!("{below}.{name}") }
}

fn is_variable(name: &str) -> bool {
    !name.starts_with(|first: char| first.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

pub(crate) fn quoted(text: &str) -> String {
    text.chars().take(QUOTED).collect()
}

pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
