//! The errors of the protocol, in every dialect.
//!
//! An [`Error`] holds only what the caller may see. Its numbers, names and statuses come from the one table in
//! [`kind`]; how it is written in each dialect and binding is in `encode`, and how a peer's is read in `decode`.

mod decode;
mod encode;
pub mod kind;

use std::fmt;

pub use kind::ErrorKind;

/// One error, ready to be written in any dialect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// Which one it is.
    pub kind: ErrorKind,
    /// For people: what was wrong and what would be right.
    pub message: String,
    /// For programs: `ErrorInfo.metadata`, text only.
    pub metadata: Vec<(String, String)>,
    /// Which fields were wrong, for invalid parameters.
    pub violations: Vec<Violation>,
    /// The number that a peer gave it, where that is another than the kind's own. Never written.
    pub received_code: Option<i64>,
    /// The status of the HTTP response that it came in, if it came in one. Never written.
    pub received_status: Option<u16>,
}

/// One field that was wrong.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Violation {
    /// Its path, such as `message.parts[0].text`.
    pub field: String,
    /// What is wrong with it.
    pub description: String,
}

impl Error {
    /// An error with the protocol's own wording.
    pub fn new(kind: ErrorKind) -> Self {
        let message = kind.entry().message.to_owned();
        Self { kind, message, metadata: Vec::new(), violations: Vec::new(), received_code: None, received_status: None }
    }

    /// An error with wording of its own.
    pub fn with_message(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::new(kind) }
    }

    /// The task is unknown, or not the caller's.
    pub fn task_not_found(task_id: impl fmt::Display) -> Self {
        Self::new(ErrorKind::TaskNotFound).detail("taskId", task_id)
    }

    /// One parameter is wrong.
    pub fn invalid_field(field: impl Into<String>, description: impl Into<String>) -> Self {
        Self::from_violations(vec![Violation { field: field.into(), description: description.into() }])
    }

    /// Several parameters are wrong; the message names the first.
    pub fn from_violations(violations: Vec<Violation>) -> Self {
        let mut error = Self::new(ErrorKind::InvalidParams);
        if let Some(first) = violations.first() {
            error.message = match first.field.as_str() {
                "" => format!("{}: {}", error.message, first.description),
                field => format!("{}: {field}: {}", error.message, first.description),
            };
        }
        error.violations = violations;
        error
    }

    /// The server is too busy; the caller may try again after the given time.
    pub fn overloaded(message: impl Into<String>, retry_after_ms: u64) -> Self {
        Self::with_message(ErrorKind::Overloaded, message).detail("retryAfterMs", retry_after_ms)
    }

    /// Its JSON-RPC code: the peer's own number if it came from one.
    pub fn code(&self) -> i64 {
        self.received_code.unwrap_or_else(|| i64::from(self.kind.entry().code))
    }

    /// Adds one fact for programs.
    #[must_use]
    pub fn detail(mut self, key: impl Into<String>, value: impl fmt::Display) -> Self {
        self.metadata.push((key.into(), value.to_string()));
        self
    }

    /// Adds one wrong field.
    #[must_use]
    pub fn violation(mut self, field: impl Into<String>, description: impl Into<String>) -> Self {
        self.violations.push(Violation { field: field.into(), description: description.into() });
        self
    }
}
