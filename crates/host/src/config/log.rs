//! `log`: how much is logged, and in which form. The log goes to standard error.

use serde::Serialize;

use crate::config::problem::Mismatch;
use crate::config::section::Section;
use crate::config::value::{Scalar, choice};

/// The log.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(default, deny_unknown_fields))]
#[serde(rename_all = "camelCase")]
pub struct Log {
    /// Least important message that is logged.
    pub level: LogLevel,
    /// Form of a log line.
    pub format: LogFormat,
}

/// How important a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum LogLevel {
    /// Something failed and somebody should look.
    Error,
    /// Something is odd.
    Warn,
    /// What an operator wants to know.
    Info,
    /// What a developer wants to know.
    Debug,
    /// Everything.
    Trace,
}

/// The form of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line, for machines.
    Json,
}

impl Default for Log {
    fn default() -> Self {
        Self { level: LogLevel::Info, format: LogFormat::Text }
    }
}

impl Log {
    pub(crate) fn read(&mut self, section: &mut Section<'_, '_>) {
        section.read("level", &mut self.level);
        section.read("format", &mut self.format);
    }
}

impl Scalar for LogLevel {
    const WRITE: &'static str = "error, warn, info, debug or trace";

    fn from_text(text: &str) -> Result<Self, Mismatch> {
        let levels = [
            ("error", Self::Error),
            ("warn", Self::Warn),
            ("info", Self::Info),
            ("debug", Self::Debug),
            ("trace", Self::Trace),
        ];
        choice(text, &levels)
    }
}

impl Scalar for LogFormat {
    const WRITE: &'static str = "text or json";

    fn from_text(text: &str) -> Result<Self, Mismatch> {
        choice(text, &[("text", Self::Text), ("json", Self::Json)])
    }
}
