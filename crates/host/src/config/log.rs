//! `log`: how much is logged, and in which form. The log goes to standard error.

use serde::Serialize;

use crate::section_keys;
use crate::word_setting;

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
    /// Something failed and an operator should look.
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

section_keys!(Log, {
    level: LogLevel::Info,
    format: LogFormat::Text,
});

word_setting!(LogLevel: "error" => Error, "warn" => Warn, "info" => Info, "debug" => Debug or "trace" => Trace);

word_setting!(LogFormat: "text" => Text or "json" => Json);
