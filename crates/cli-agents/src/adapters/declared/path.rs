//! A path into a JSON line: `message.content.0.text`. A number is an index of a list, `*` all items of a list, `.` alone
//! the whole line, and `|` stands between paths of which the first that leads to a value counts.

use serde_json::Value;

use crate::adapters::declared::json_line;

/// A path to a value, with its alternatives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path(Vec<Vec<Step>>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// A member, or an index of a list.
    Into(String),
    All,
}

impl Path {
    /// What would be right where a path is wrong.
    pub(crate) const RIGHT: &str = "write names with dots between, such as message.content.0.text";

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let step = |step: &str| match step {
            "" => None,
            "*" => Some(Step::All),
            name => Some(Step::Into(name.to_owned())),
        };
        let steps = |path: &str| match path {
            "." => Some(Vec::new()),
            path => path.split('.').map(step).collect(),
        };
        text.split('|').map(steps).collect::<Option<_>>().map(Self)
    }

    /// The values there that are not null.
    pub(crate) fn find<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        let all = self.0.iter().map(|steps| {
            let mut found = vec![value];
            for step in steps {
                found = found.into_iter().flat_map(|value| step.take(value)).collect();
            }
            found.retain(|value| !value.is_null());
            found
        });
        all.into_iter().find(|found| !found.is_empty()).unwrap_or_default()
    }

    /// The values there as text.
    pub(crate) fn text(&self, value: &Value) -> Option<String> {
        json_line::joined_text(&self.find(value))
    }
}

impl Step {
    fn take<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        match (self, value) {
            (Self::Into(name), Value::Object(members)) => members.get(name).into_iter().collect(),
            (Self::Into(name), Value::Array(list)) => {
                name.parse().ok().and_then(|index: usize| list.get(index)).into_iter().collect()
            }
            (Self::All, Value::Array(list)) => list.iter().collect(),
            _ => Vec::new(),
        }
    }
}
