//! A YAML file as a tree of nodes with line numbers.
//! The sections read from this tree instead of letting serde fill them, because serde stops at the first error and
//! an operator wants to see all of them, each with its line.

#![expect(missing_docs, reason = "only what a name and its type do not say is written down")]

use std::fmt;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{Error, Location, Spanned, UserMessageFormatter};

use crate::config::problem::{Mismatch, Origin, Problem};

/// How deep lists and mappings may be nested: deeper than any key goes, and no deeper than fits the stack. The parser and all
/// that walk the tree call themselves for each level, and a build without optimisation takes some 30 KiB of the stack for it.
const DEEPEST: usize = 24;

/// A value of the file and its location.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    pub origin: Origin,
    pub content: Content,
}

/// What a node holds. Scalars stay text: what they mean is for the key to say, also after `${VAR}` was filled in.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    Empty,
    /// A value whose problem is already reported, so that it is not reported twice.
    Reported,
    Text(String),
    List(Vec<Node>),
    /// A mapping, in the order of the file.
    Mapping(Vec<Entry>),
}

/// One key of a mapping with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub key: String,
    /// The location of the key.
    pub origin: Origin,
    pub value: Node,
}

impl Content {
    /// What kind of value this is, as the end of a sentence about it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Empty | Self::Reported => "has no value",
            Self::Text(_) => "is a single value",
            Self::List(_) => "is a list",
            Self::Mapping(_) => "is a mapping",
        }
    }
}

/// Reads the text of one file. `file` is the name that errors show.
pub fn parse(file: &Arc<str>, source: &str) -> Result<Node, Problem> {
    // Counted while it is read, with what aliases repeat.
    let budget = serde_saphyr::budget! { max_depth: DEEPEST };
    let options = serde_saphyr::options! { with_snippet: false, budget: budget };
    let read: Result<Spanned<Raw>, _> = serde_saphyr::from_str_with_options(source, options);
    match read {
        Ok(raw) => Ok(NodeBuilder { file, source }.node(raw)),
        Err(error) => {
            let line = error.location().map(|location| location.line()).filter(|line| *line > 0);
            if let Some(location) = depth_breach(&error) {
                return Err(too_deep(file, location));
            }
            let reason = error.render_with_formatter(&UserMessageFormatter);
            let reason = reason.lines().next().unwrap_or_default();
            // The line is already in front of the sentence; the parser's own mention of it would only repeat it.
            let reason = reason.split(" at line ").next().unwrap_or_default();
            let origin = Origin::File { file: file.clone(), line };
            let mismatch = Mismatch::new(
                format!("this is not YAML that can be read ({})", reason.trim_start_matches("error: ")),
                "check the indentation, the quotes and the brackets there",
            );
            Err(Problem::new(origin, "", mismatch))
        }
    }
}

/// Where a document is nested too deep, if that is what is wrong with it; of what an alias repeats, where it is repeated.
fn depth_breach(error: &Error) -> Option<Location> {
    match error {
        Error::Budget { breach: BudgetBreach::Depth { .. }, location, .. } => Some(*location),
        Error::AliasError { error: inner, .. } => depth_breach(inner).map(|at| error.location().unwrap_or(at)),
        _ => None,
    }
}

/// The problem of a document that is nested too deep. Its column is named as well: the body of a request is one line.
fn too_deep(file: &Arc<str>, location: Location) -> Problem {
    let line = Some(location.line()).filter(|line| *line > 0);
    let wrong = format!("column {} is nested deeper than {DEEPEST} levels", location.column());
    let mismatch = Mismatch::new(wrong, "remove the brackets or the indentation that are too many");
    Problem::new(Origin::File { file: file.clone(), line }, "", mismatch)
}

/// Turns the parser's tree into nodes with locations.
struct NodeBuilder<'a> {
    file: &'a Arc<str>,
    source: &'a str,
}

impl NodeBuilder<'_> {
    fn node(&self, raw: Spanned<Raw>) -> Node {
        let origin = self.origin(raw.referenced);
        let content = match raw.value {
            Raw::Empty => Content::Empty,
            Raw::Text(text) => Content::Text(text),
            Raw::Plain(fallback) => Content::Text(self.written(raw.defined).unwrap_or(fallback)),
            Raw::List(items) => Content::List(items.into_iter().map(|item| self.node(item)).collect()),
            Raw::Mapping(entries) => Content::Mapping(
                entries
                    .into_iter()
                    .map(|(key, value)| Entry {
                        origin: self.origin(key.referenced),
                        key: key.value,
                        value: self.node(value),
                    })
                    .collect(),
            ),
        };
        Node { origin, content }
    }

    fn origin(&self, location: Location) -> Origin {
        let line = Some(location.line()).filter(|line| *line > 0);
        Origin::File { file: self.file.clone(), line }
    }

    /// A number or truth value exactly as written in the file, so that `1.10` does not become `1.1`.
    fn written(&self, location: Location) -> Option<String> {
        let start = usize::try_from(location.span().byte_offset()?).ok()?;
        let length = usize::try_from(location.span().byte_len()?).ok()?;
        let text = self.source.get(start..start.checked_add(length)?)?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }
}

/// The tree as the parser delivers it.
enum Raw {
    Empty,
    Text(String),
    /// A scalar that YAML takes for something else than text, in its normal form.
    Plain(String),
    List(Vec<Spanned<Raw>>),
    Mapping(Vec<(Spanned<String>, Spanned<Raw>)>),
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

/// Takes what this parser calls for a value of any type: nothing is a unit there, and whole numbers have 64 bits.
struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value, a list or a mapping")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Empty)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Plain(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
        Ok(Raw::Plain(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
        Ok(Raw::Plain(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Raw, E> {
        Ok(Raw::Plain(value.to_string()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Raw, E> {
        Ok(Raw::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Raw, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Raw::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Raw, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        Ok(Raw::Mapping(entries))
    }
}
