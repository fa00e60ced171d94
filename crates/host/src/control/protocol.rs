//! What is said over the socket: one request and one reply, each one line of JSON.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::control::tasks::TaskRequest;
use crate::control::webhooks::WebhookRequest;
use crate::keys::NewKey;

/// What a command asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command")]
pub enum Request {
    /// Make a key.
    #[serde(rename = "keys.create")]
    CreateKey(NewKey),
    /// List all keys.
    #[serde(rename = "keys.list")]
    ListKeys,
    /// Revoke a key.
    #[serde(rename = "keys.revoke")]
    RevokeKey {
        /// Which one.
        id: String,
    },
    /// Copy the database.
    #[serde(rename = "db.backup")]
    Backup {
        /// Where to; an absolute path that does not exist yet.
        file: PathBuf,
    },
    /// Look after the tasks of all callers.
    #[serde(rename = "tasks")]
    Tasks(TaskRequest),
    /// Look after webhooks.
    #[serde(rename = "webhooks")]
    Webhooks(WebhookRequest),
    /// Read the configuration again.
    #[serde(rename = "config.reload")]
    Reload,
    /// Say who you are.
    #[serde(rename = "status")]
    Status,
}

/// What a command is told.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Reply {
    /// It was done.
    Done(Value),
    /// It was not.
    Refused(ControlError),
}

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{problem}")]
pub struct ControlError {
    /// What is wrong.
    pub problem: String,
    /// What to do about it; empty if that is said already.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub next: String,
    /// What programs know it by; empty if they need not tell it from others.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub code: String,
}

impl ControlError {
    /// A refusal in the words of an error.
    pub fn new(problem: impl ToString) -> Self {
        Self { problem: problem.to_string(), next: String::new(), code: String::new() }
    }

    /// The same, with what programs know it by.
    #[must_use]
    pub fn with_code(mut self, code: impl Into<String>) -> Self {
        self.code = code.into();
        self
    }

    /// The same, with what to do about it.
    #[must_use]
    pub fn with_next(mut self, next: impl Into<String>) -> Self {
        self.next = next.into();
        self
    }
}

/// An answer as it is sent.
pub(super) fn value(answer: impl Serialize) -> Result<Value, ControlError> {
    serde_json::to_value(answer).map_err(ControlError::new)
}

/// A backup that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupReport {
    /// Where it is.
    pub file: PathBuf,
    /// How large it is.
    pub bytes: u64,
}

/// What a running server says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// Its process.
    pub pid: u32,
    /// Its version.
    pub version: String,
    /// Where it listens.
    pub address: String,
    /// Whether it speaks TLS there.
    #[serde(default)]
    pub tls: bool,
    /// What stands in front of every path for callers on this machine.
    #[serde(default)]
    pub url: String,
    /// The certificate it shows, which may be self-signed.
    #[serde(default)]
    pub certificate: Option<PathBuf>,
    /// Who is served.
    pub agents: Vec<String>,
    /// Whether requests need a key.
    pub keys_required: bool,
}
