//! Commands and arguments. Each is given to the program exactly as it is written: no shell splits it, and spaces at its
//! ends stay.

use std::path::PathBuf;

use serde::{Serialize, Serializer};
use switchboard_host::config::document::Content;
use switchboard_host::config::problem::Mismatch;
use switchboard_host::config::value::Value;
use switchboard_host::json_schema_of;

/// Arguments of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Arguments(Vec<String>);

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Its path, or a name to look up on the path.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Arguments,
}

impl Arguments {
    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

/// The items of a list as they are written.
fn words(content: &Content, right: &str) -> Result<Vec<String>, Mismatch> {
    let items = match content {
        Content::List(items) => items,
        Content::Text(_) => return Err(Mismatch::new("is one text, and no shell is there to split it", right)),
        other => return Err(Mismatch::new(other.kind(), right)),
    };
    let mut words = Vec::new();
    for item in items.iter().filter(|item| item.content != Content::Reported) {
        match &item.content {
            Content::Text(text) if text.contains('\0') => {
                return Err(Mismatch::new(format!("{text:?} holds a zero character"), "no argument can; remove it"));
            }
            Content::Text(text) => words.push(text.clone()),
            other => return Err(Mismatch::new(format!("an item {}", other.kind()), right)),
        }
    }
    Ok(words)
}

impl Value for Arguments {
    fn from_content(content: &Content) -> Result<Self, Mismatch> {
        words(content, "write a list in brackets, each argument by itself, such as [--flag, value]").map(Self)
    }
}

impl Value for Command {
    fn from_content(content: &Content) -> Result<Self, Mismatch> {
        let right = "write a list in brackets, the program first, such as [./lint.sh, --json]";
        let mut words = words(content, right)?.into_iter();
        match words.next() {
            Some(program) if !program.trim().is_empty() => {
                Ok(Self { program: program.into(), args: Arguments(words.collect()) })
            }
            _ => Err(Mismatch::new("names no program", right)),
        }
    }
}

impl Serialize for Command {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let program = self.program.to_string_lossy();
        serializer.collect_seq(std::iter::once(&*program).chain(self.args.iter()))
    }
}

json_schema_of!(Arguments, { "type": "array", "items": { "type": ["string", "number", "boolean"] } });

json_schema_of!(Command, {
    "type": "array", "items": { "type": ["string", "number", "boolean"] }, "minItems": 1
});
