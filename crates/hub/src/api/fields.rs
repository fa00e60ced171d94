//! The members of a JSON body. Every problem is found before any is told: an unknown member, a missing one, a wrong type.
//!
//! Values are kept as they came: what goes on to an agent, such as the parts of a message, may be JSON that no
//! `serde_json::Value` can hold, like `1e400`.

use std::ops::RangeInclusive;
use std::time::Duration;

use switchboard_a2a::{Json, Metadata};
use switchboard_host::config::time_span::TimeSpan;
use switchboard_host::config::value::Scalar as _;

use super::error::{ApiError, Problem};
use super::request::offered;

/// The members of a body, taken one by one.
pub(crate) struct Fields {
    members: Metadata,
    problems: Vec<Problem>,
}

impl Fields {
    /// Reads an object with no members but these.
    pub(crate) fn read(body: &[u8], known: &[&'static str]) -> Result<Self, ApiError> {
        let members: Metadata = match serde_json::from_slice(body) {
            Ok(members) => members,
            Err(error) if error.is_data() => return Err(ApiError::invalid("body", "is no object", "a JSON object")),
            Err(error) => return Err(ApiError::invalid("body", error.to_string(), "a JSON object")),
        };
        let unknown = members.iter().map(|(name, _)| name).filter(|name| !known.contains(name));
        let problems = unknown
            .map(|name| {
                let shown: String = name.chars().take(80).collect();
                Problem::new(shown, "is no member here", offered(name, known))
            })
            .collect();
        Ok(Self { members, problems })
    }

    /// A value of any type.
    pub(crate) fn value(&mut self, name: &str) -> Option<Json> {
        self.members.remove(name).filter(|value| value.as_str() != "null")
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
        let given = self.value(name)?;
        let text = given.as_text();
        if text.is_none() {
            self.problem(name, format!("is {}", kind(&given)), right);
        }
        text.filter(|text| !text.is_empty())
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
        let number = given.read::<usize>().ok();
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
        let Some(given) = self.value(name) else { return false };
        let flag = given.read::<bool>().ok();
        if flag.is_none() {
            self.problem(name, format!("is {}", kind(&given)), "true or false");
        }
        flag.unwrap_or(false)
    }

    /// A name or a list of names; empty ones count as absent.
    pub(crate) fn names(&mut self, name: &str) -> Vec<String> {
        let right = "a name or a list of names";
        let Some(given) = self.value(name) else { return Vec::new() };
        let names = match (given.as_text(), given.read::<Vec<Json>>()) {
            (Some(_), _) => vec![given],
            (None, Ok(names)) => names,
            (None, Err(_)) => {
                self.problem(name, format!("is {}", kind(&given)), right);
                Vec::new()
            }
        };
        let mut read = Vec::new();
        for given in names {
            match given.as_text() {
                Some(text) if text.is_empty() => {}
                Some(text) => read.push(text),
                None => self.problem(name, format!("has {} in it", kind(&given)), right),
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

/// What a value is, by how it begins.
pub(super) fn kind(value: &Json) -> &'static str {
    match value.as_str().as_bytes().first() {
        Some(b'n') => "null",
        Some(b't' | b'f') => "true or false",
        Some(b'"') if value.as_text().is_none() => "a text with a lone surrogate",
        Some(b'"') => "a text",
        Some(b'[') => "a list",
        Some(b'{') => "an object",
        _ => "a number",
    }
}
