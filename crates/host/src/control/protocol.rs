//! The protocol of the control socket: one request and one reply, each one line of JSON.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::control::tasks::TaskRequest;
use crate::control::webhooks::WebhookRequest;
use crate::keys::NewKey;

/// The request of a command.
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
    /// Manage the tasks of all callers.
    #[serde(rename = "tasks")]
    Tasks(TaskRequest),
    /// Manage webhooks.
    #[serde(rename = "webhooks")]
    Webhooks(WebhookRequest),
    /// Reload the configuration.
    #[serde(rename = "config.reload")]
    Reload,
    /// Report the status of the server.
    #[serde(rename = "status")]
    Status,
}

/// The reply to a command.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Reply {
    /// The result.
    Done(Value),
    /// The error.
    Refused(ControlError),
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{problem}")]
pub struct ControlError {
    /// What is wrong.
    pub problem: String,
    /// What to do about it; empty if the problem says so already.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub next: String,
    /// Error code for programs; empty if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub code: String,
}

impl ControlError {
    /// An error with this message.
    pub fn new(problem: impl ToString) -> Self {
        Self { problem: problem.to_string(), next: String::new(), code: String::new() }
    }

    /// The same, with an error code.
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

/// The JSON of a result.
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

/// The status of a running server.
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
    /// The base URL for clients on this machine.
    #[serde(default)]
    pub url: String,
    /// Its certificate, which may be self-signed.
    #[serde(default)]
    pub certificate: Option<PathBuf>,
    /// The hosted agents.
    pub agents: Vec<String>,
    /// Whether requests need a key.
    pub keys_required: bool,
}
