//! A path into a JSON line: `message.content.0.text`. A number is an index of a list, `*` all items of a list, and `.`
//! alone the whole line.

use serde_json::Value;

use crate::adapters::generic::json_line;

/// A path to a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// A member, or an index of a list.
    Into(String),
    /// All items of a list.
    All,
}

impl Path {
    /// What would be right where a path is wrong.
    pub(crate) const RIGHT: &str = "write names with dots between, such as message.content.0.text";

    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text == "." {
            return Some(Self(Vec::new()));
        }
        let step = |step: &str| match step {
            "" => None,
            "*" => Some(Step::All),
            name => Some(Step::Into(name.to_owned())),
        };
        text.split('.').map(step).collect::<Option<_>>().map(Self)
    }

    /// The values there.
    pub(crate) fn find<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        let mut found = vec![value];
        for step in &self.0 {
            found = found.into_iter().flat_map(|value| step.take(value)).collect();
        }
        found
    }

    /// The values there as text, each on a line of its own.
    pub(crate) fn text(&self, value: &Value) -> Option<String> {
        let texts: Vec<String> = self.find(value).into_iter().filter_map(json_line::text).collect();
        (!texts.is_empty()).then(|| texts.join("\n"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_step_through_members_and_lists() {
        let line = serde_json::json!({"a": {"b": [{"c": "x"}, {"c": 2}, {"d": null}], "0": "zero"}, "n": null});
        for (path, text) in [
            ("a.b.0.c", Some("x")),
            ("a.b.1.c", Some("2")),
            ("a.b.*.c", Some("x\n2")),
            ("a.0", Some("zero")),
            ("a.b.2", Some(r#"{"d":null}"#)),
            ("n", None),
            ("a.b.c", None),
            ("a.b.9.c", None),
            ("a.b.-1.c", None),
            ("a.*", None),
        ] {
            assert_eq!(Path::parse(path).unwrap().text(&line).as_deref(), text, "{path}");
        }
        assert_eq!(Path::parse(".").unwrap().find(&line), [&line]);
        for path in ["", "a.", ".a", "a..b"] {
            assert_eq!(Path::parse(path), None, "{path}");
        }
    }
}
