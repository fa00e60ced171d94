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
    #[serde(rename = "keys.create")]
    CreateKey(NewKey),
    #[serde(rename = "keys.list")]
    ListKeys,
    #[serde(rename = "keys.revoke")]
    RevokeKey { id: String },
    #[serde(rename = "db.backup")]
    Backup {
        /// Where to; an absolute path that does not exist yet.
        file: PathBuf,
    },
    /// Manage the tasks of all callers.
    #[serde(rename = "tasks")]
    Tasks(TaskRequest),
    #[serde(rename = "webhooks")]
    Webhooks(WebhookRequest),
    #[serde(rename = "config.reload")]
    Reload,
    #[serde(rename = "status")]
    Status,
}

impl From<WebhookRequest> for Request {
    fn from(request: WebhookRequest) -> Self {
        Self::Webhooks(request)
    }
}

/// The reply to a command.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Reply {
    Done(Value),
    Refused(ControlError),
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{problem}")]
pub struct ControlError {
    pub problem: String,
    /// What to do about it; empty if the problem says so already.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub next: String,
    /// Error code for programs; empty if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub code: String,
}

impl ControlError {
    pub fn new(problem: impl ToString) -> Self {
        Self { problem: problem.to_string(), next: String::new(), code: String::new() }
    }

    pub fn with_code(mut self, code: impl Into<String>) -> Self {
        self.code = code.into();
        self
    }

    pub fn with_next(mut self, next: impl Into<String>) -> Self {
        self.next = next.into();
        self
    }
}

pub(super) fn value(answer: impl Serialize) -> Result<Value, ControlError> {
    serde_json::to_value(answer).map_err(ControlError::new)
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupReport {
    pub file: PathBuf,
    pub bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    pub pid: u32,
    pub version: String,
    pub address: String,
    #[serde(default)]
    pub tls: bool,
    /// The base URL for clients on this machine.
    #[serde(default)]
    pub url: String,
    /// Its certificate, which may be self-signed.
    pub certificate: Option<PathBuf>,
    pub agents: Vec<String>,
    pub keys_required: bool,
}
