//! Reads a declaration key by key. A key that is never read is unknown; problems are collected while reading goes on,
//! so that all of them are reported at once.

use serde_json::{Map, Value};

use crate::adapters::declared::path::Path;
use crate::adapters::field_error::FieldError;

pub(crate) struct Section<'a, 'p> {
    problems: &'p mut Vec<FieldError>,
    /// The full name of the mapping; empty for the whole file.
    name: String,
    members: Option<&'a Map<String, Value>>,
    known_keys: Vec<&'static str>,
}

pub(crate) fn read<'a, T>(
    problems: &mut Vec<FieldError>,
    name: String,
    value: &'a Value,
    read: impl FnOnce(&mut Section<'a, '_>) -> T,
) -> T {
    let members = value.as_object();
    if members.is_none() {
        problems.push(FieldError::new(name.clone(), kind(value), "write keys and values here"));
    }
    let mut section = Section { problems, name, members, known_keys: Vec::new() };
    let outcome = read(&mut section);
    section.finish();
    outcome
}

impl<'a> Section<'a, '_> {
    /// Whether there is anything to read; if not, that is already a problem.
    pub(crate) fn is_mapping(&self) -> bool {
        self.members.is_some()
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.members.is_some_and(|members| members.contains_key(key))
    }

    pub(crate) fn value(&mut self, key: &'static str) -> Option<&'a Value> {
        self.known_keys.push(key);
        self.members?.get(key)
    }

    /// A key's value as `convert` makes it; where that makes nothing of it, the value is refused.
    fn converted<T>(
        &mut self,
        key: &'static str,
        right: impl Into<String>,
        convert: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.value(key)?;
        let converted = convert(value);
        if converted.is_none() {
            self.refuse(key, kind(value), right);
        }
        converted
    }

    pub(crate) fn text(&mut self, key: &'static str) -> Option<String> {
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        self.converted(key, "write a text, in quotes if it looks like something else", text)
    }

    pub(crate) fn path(&mut self, key: &'static str) -> Option<Path> {
        let text = self.text(key)?;
        let path = Path::parse(&text);
        if path.is_none() {
            self.refuse(key, format!("\"{}\" is not a place", crate::adapters::cut(&text, 100)), Path::RIGHT);
        }
        path
    }

    /// Refuses that a key is missing.
    pub(crate) fn require(&mut self, key: &'static str, right: &str) {
        if !self.has(key) && self.is_mapping() {
            self.refuse(key, "is missing", right);
        }
    }

    pub(crate) fn needed_text(&mut self, key: &'static str, right: &str) -> String {
        self.require(key, right);
        self.text(key).unwrap_or_default()
    }

    pub(crate) fn texts(&mut self, key: &'static str) -> Option<Vec<String>> {
        let texts = |value: &Value| value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect();
        self.converted(key, "write a list of texts, in quotes where they look like something else", texts)
    }

    pub(crate) fn variables(&mut self, key: &'static str) -> Vec<(String, String)> {
        const RIGHT: &str = "write names with a text each, in quotes where it looks like something else";
        let mut variables = Vec::new();
        for (name, value) in self.converted(key, RIGHT, Value::as_object).into_iter().flatten() {
            self.check_variable(&format!("{key}.{name}"), name);
            match value.as_str() {
                Some(text) => variables.push((name.clone(), text.to_owned())),
                None => self.refuse(&format!("{key}.{name}"), kind(value), RIGHT),
            }
        }
        variables
    }

    pub(crate) fn variable_names(&mut self, key: &'static str) -> Vec<String> {
        let names = self.texts(key).unwrap_or_default();
        for name in &names {
            self.check_variable(key, name);
        }
        names
    }

    fn check_variable(&mut self, key: &str, name: &str) {
        let fits = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        if name.is_empty() || !name.chars().all(fits) || name.starts_with(|letter: char| letter.is_ascii_digit()) {
            let wrong = format!("\"{}\" cannot be the name of a variable", crate::adapters::cut(name, 100));
            self.refuse(key, wrong, "write letters, digits and _");
        }
    }

    pub(crate) fn flag(&mut self, key: &'static str) -> Option<bool> {
        self.converted(key, "write true or false", Value::as_bool)
    }

    pub(crate) fn number(&mut self, key: &'static str) -> Option<i32> {
        self.converted(key, "write a whole number", |value| i32::try_from(value.as_i64()?).ok())
    }

    pub(crate) fn choice<T: Copy>(&mut self, key: &'static str, words: &[(&str, T)]) -> Option<T> {
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let meaning = |value: &Value| words.iter().find(|(word, _)| value.as_str() == Some(word));
        self.converted(key, format!("write {}", known.join(" or ")), meaning).map(|(_, meaning)| *meaning)
    }

    pub(crate) fn section<T>(&mut self, key: &'static str, inner: impl FnOnce(&mut Section<'a, '_>) -> T) -> Option<T> {
        let value = self.value(key)?;
        Some(read(self.problems, name_of(&self.name, key), value, inner))
    }

    pub(crate) fn each<T>(
        &mut self,
        key: &'static str,
        mut inner: impl FnMut(&mut Section<'a, '_>) -> T,
    ) -> Option<Vec<T>> {
        let value = self.value(key)?;
        let Some(list) = value.as_array() else {
            self.refuse(key, kind(value), "write a list, each item on a line that begins with -");
            return Some(Vec::new());
        };
        let name = name_of(&self.name, key);
        let items = list.iter().enumerate();
        Some(items.map(|(index, item)| read(self.problems, format!("{name}[{index}]"), item, &mut inner)).collect())
    }

    pub(crate) fn refuse(&mut self, key: &str, wrong: impl Into<String>, right: impl Into<String>) {
        self.problems.push(FieldError::new(name_of(&self.name, key), wrong, right));
    }

    pub(crate) fn refuse_whole(&mut self, wrong: impl Into<String>, right: impl Into<String>) {
        self.problems.push(FieldError::new(self.name.clone(), wrong, right));
    }

    /// Takes over a problem that was found elsewhere in one of its keys.
    pub(crate) fn refuse_with(&mut self, error: FieldError) {
        self.refuse(&error.field, error.wrong, error.right);
    }

    fn finish(self) {
        let unknown = self.members.into_iter().flatten().filter(|(key, _)| !self.known_keys.contains(&key.as_str()));
        for (key, _) in unknown {
            let right = format!("remove it, or write one of {}", self.known_keys.join(", "));
            self.problems.push(FieldError::new(name_of(&self.name, key), "is not a key", right));
        }
    }
}

/// A value as the end of a sentence about it.
fn kind(value: &Value) -> String {
    match value {
        Value::Null => "has no value".to_owned(),
        Value::Bool(flag) => format!("is the truth value {flag}"),
        Value::Number(number) => format!("is the number {number}"),
        Value::String(text) if text.is_empty() => "is empty".to_owned(),
        Value::String(text) => format!("is \"{}\"", crate::adapters::cut(text, 100)),
        Value::Array(_) => "is a list".to_owned(),
        Value::Object(_) => "is a mapping".to_owned(),
    }
}

fn name_of(outer: &str, key: &str) -> String {
    if outer.is_empty() { key.to_owned() } else { format!("{outer}.{key}") }
}
