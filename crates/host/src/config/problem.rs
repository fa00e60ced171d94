//! What is wrong with a configuration, and where a setting came from.
//! An operator fixes one file at a time, so problems are collected and reported together; each names its location, the
//! key, what is wrong and what would be right.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

/// Everything that is wrong with a workspace's configuration, in the order it was found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.lines())]
pub struct Problems(pub Vec<Problem>);

impl Problems {
    fn lines(&self) -> String {
        let lines: Vec<String> = self.0.iter().map(Problem::to_string).collect();
        lines.join("\n")
    }
}

/// One configuration error with its location.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{}", self.sentence())]
pub struct Problem {
    /// Where the wrong value was read from.
    pub origin: Origin,
    /// The full key, such as `server.bind`; empty when the file as a whole is wrong.
    pub key: String,
    /// What is wrong, with the value.
    pub wrong: String,
    /// What would be right.
    pub right: String,
}

impl Problem {
    /// A problem of the value that `mismatch` describes.
    pub fn new(origin: Origin, key: impl Into<String>, mismatch: Mismatch) -> Self {
        Self { origin, key: key.into(), wrong: mismatch.wrong, right: mismatch.right }
    }

    fn sentence(&self) -> String {
        if self.key.is_empty() {
            format!("{}: {}: {}", self.origin, self.wrong, self.right)
        } else {
            format!("{}: {}: {}: {}", self.origin, self.key, self.wrong, self.right)
        }
    }
}

/// Where a setting was read from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "from")]
pub enum Origin {
    /// The built-in default.
    Default,
    /// A file of the workspace.
    File {
        /// The file, relative to the current folder.
        file: Arc<str>,
        /// The line, counted from 1; absent when the file as a whole is meant.
        line: Option<u64>,
    },
    /// An environment variable.
    Environment {
        /// The variable's name.
        variable: String,
    },
    /// A command-line flag.
    Flag {
        /// The flag, with its dashes.
        flag: &'static str,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => formatter.write_str("default"),
            Self::File { file, line: Some(line) } => write!(formatter, "{file}:{line}"),
            Self::File { file, line: None } => formatter.write_str(file),
            Self::Environment { variable } => formatter.write_str(variable),
            Self::Flag { flag } => formatter.write_str(flag),
        }
    }
}

/// A value that does not fit its key: a [`Problem`] without its location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// What is wrong, with the value.
    pub wrong: String,
    /// What would be right.
    pub right: String,
}

impl Mismatch {
    /// A mismatch in these words.
    pub fn new(wrong: impl Into<String>, right: impl Into<String>) -> Self {
        Self { wrong: wrong.into(), right: right.into() }
    }
}
