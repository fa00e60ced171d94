//! The members of a JSON body. Every problem is found before any is told: an unknown member, a missing one, a wrong type.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::{Map, Value};
use switchboard_host::config::time_span::TimeSpan;
use switchboard_host::config::value::Scalar as _;

use super::error::{ApiError, Problem};
use super::request::offered;

/// The members of a body, taken one by one.
pub(crate) struct Fields {
    members: Map<String, Value>,
    problems: Vec<Problem>,
}

impl Fields {
    /// Reads an object with no members but these.
    pub(crate) fn read(body: &[u8], known: &[&'static str]) -> Result<Self, ApiError> {
        let members = match serde_json::from_slice(body) {
            Ok(Value::Object(members)) => members,
            Ok(_) => return Err(ApiError::invalid("body", "is no object", "a JSON object")),
            Err(error) => return Err(ApiError::invalid("body", error.to_string(), "a JSON object")),
        };
        let unknown = members.keys().filter(|name| !known.contains(&name.as_str()));
        let problems = unknown
            .map(|name| {
                let shown: String = name.chars().take(80).collect();
                Problem::new(shown, "is no member here", offered(name, known))
            })
            .collect();
        Ok(Self { members, problems })
    }

    /// A value of any type.
    pub(crate) fn value(&mut self, name: &str) -> Option<Value> {
        self.members.remove(name).filter(|value| !value.is_null())
    }

    /// A text that has to be there.
    pub(crate) fn text(&mut self, name: &str, right: &str) -> String {
        let text = self.optional_text(name, right);
        if text.is_none() && !self.has_problem(name) {
            self.problem(name, "is missing", right);
        }
        text.unwrap_or_default()
    }

    /// A text that may be absent; an empty one counts as absent.
    pub(crate) fn optional_text(&mut self, name: &str, right: &str) -> Option<String> {
        match self.value(name)? {
            Value::String(text) => Some(text).filter(|text| !text.is_empty()),
            other => {
                self.problem(name, format!("is {}", kind(&other)), right);
                None
            }
        }
    }

    /// One of some words.
    pub(crate) fn word<T: Copy>(&mut self, name: &str, words: &[(&str, T)]) -> Option<T> {
        let right = words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(" or ");
        let given = self.optional_text(name, &right)?;
        let found = words.iter().find(|(word, _)| *word == given).map(|(_, value)| *value);
        if found.is_none() {
            let shown: String = given.chars().take(80).collect();
            self.problem(name, format!("is {shown:?}"), &right);
        }
        found
    }

    /// A whole number within a range.
    pub(crate) fn number(&mut self, name: &str, default: usize, range: RangeInclusive<usize>) -> usize {
        let Some(given) = self.value(name) else { return default };
        let number = given.as_u64().and_then(|number| usize::try_from(number).ok());
        match number.filter(|number| range.contains(number)) {
            Some(number) => number,
            None => {
                let right = format!("a whole number from {} to {}", range.start(), range.end());
                self.problem(name, format!("is {}", kind(&given)), &right);
                default
            }
        }
    }

    /// True or false; false if it is absent.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        match self.value(name) {
            None => false,
            Some(Value::Bool(flag)) => flag,
            Some(other) => {
                self.problem(name, format!("is {}", kind(&other)), "true or false");
                false
            }
        }
    }

    /// A name or a list of names; empty ones count as absent.
    pub(crate) fn names(&mut self, name: &str) -> Vec<String> {
        let right = "a name or a list of names";
        let names = match self.value(name) {
            None => Vec::new(),
            Some(Value::String(one)) => vec![Value::String(one)],
            Some(Value::Array(names)) => names,
            Some(other) => {
                self.problem(name, format!("is {}", kind(&other)), right);
                Vec::new()
            }
        };
        let mut read = Vec::new();
        for given in names {
            match given {
                Value::String(given) if given.is_empty() => {}
                Value::String(given) => read.push(given),
                other => self.problem(name, format!("has {} in it", kind(&other)), right),
            }
        }
        read
    }

    /// A length of time up to the longest one, such as `30s`.
    pub(crate) fn span(&mut self, name: &str, longest: TimeSpan) -> Option<Duration> {
        let right = format!("{}, up to {longest}", TimeSpan::WRITE);
        let given = self.optional_text(name, &right)?;
        let span = TimeSpan::from_text(&given).ok().filter(|span| *span <= longest);
        if span.is_none() {
            let shown: String = given.chars().take(80).collect();
            self.problem(name, format!("is {shown:?}"), &right);
        }
        span.map(TimeSpan::duration)
    }

    /// Whether a member was found to be wrong.
    pub(crate) fn has_problem(&self, name: &str) -> bool {
        self.problems.iter().any(|problem| problem.key == name)
    }

    /// Adds what only the endpoint knows to be wrong.
    pub(crate) fn problem(&mut self, name: &str, wrong: impl Into<String>, right: &str) {
        self.problems.push(Problem::new(name, wrong, right));
    }

    /// Refuses the request if there was any problem.
    pub(crate) fn finish(self) -> Result<(), ApiError> {
        if self.problems.is_empty() { Ok(()) } else { Err(ApiError::Invalid(self.problems)) }
    }
}

pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
