//! The conditions under which a rule matches a line.

use serde_json::Value;

use crate::adapters::declared::path::Path;
use crate::adapters::declared::section::Section;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Condition {
    path: Path,
    test: Test,
}

#[derive(Clone, Debug, PartialEq)]
enum Test {
    /// The value is one of these. A missing value counts as null.
    OneOf(Vec<Value>),
    /// Whether a value other than null exists.
    Exists(bool),
}

impl Condition {
    /// The conditions of a rule's `when`; all must be true.
    pub(crate) fn read_all(section: &mut Section<'_, '_>) -> Vec<Self> {
        const RIGHT: &str = "write a value, a list of values, or { exists: true }";
        let Some(value) = section.value("when") else { return Vec::new() };
        let Some(members) = value.as_object() else {
            section.refuse("when", "is not a mapping", "write places with their values, such as { type: result }");
            return Vec::new();
        };
        let mut conditions = Vec::new();
        for (place, value) in members {
            let path = Path::parse(place);
            let test = Test::read(value);
            match (path, test) {
                (Some(path), Some(test)) => conditions.push(Self { path, test }),
                (None, _) => section.refuse(&format!("when.{place}"), "is not a place", Path::RIGHT),
                (_, None) => section.refuse(&format!("when.{place}"), "cannot be compared with", RIGHT),
            }
        }
        conditions
    }

    pub(crate) fn fits(&self, line: &Value) -> bool {
        let found = self.path.find(line);
        match &self.test {
            Test::Exists(exists) => *exists != found.is_empty(),
            Test::OneOf(values) if found.is_empty() => values.contains(&Value::Null),
            Test::OneOf(values) => found.iter().any(|found| values.iter().any(|value| same(value, found))),
        }
    }
}

impl Test {
    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Object(members) if members.len() == 1 => members.get("exists")?.as_bool().map(Self::Exists),
            Value::Object(_) => None,
            Value::Array(values) if values.is_empty() || values.iter().any(|value| !is_scalar(value)) => None,
            Value::Array(values) => Some(Self::OneOf(values.clone())),
            value => Some(Self::OneOf(vec![value.clone()])),
        }
    }
}

fn is_scalar(value: &Value) -> bool {
    !value.is_array() && !value.is_object()
}

/// Whether two values are the same; `1` and `1.0` are.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        _ => one == other,
    }
}
