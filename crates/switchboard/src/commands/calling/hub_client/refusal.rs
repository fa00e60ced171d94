//! Why a server has not done what it was asked for, and what to do next.

use http::StatusCode;
use serde_json::Value;

use super::HubClient;
use crate::commands::calling::{Failure, sanitize};

/// Why a request got no answer.
#[derive(Debug)]
pub(in crate::commands::calling) enum HubError {
    /// The server has refused it.
    Refused(Refusal),
    /// It did not come to that.
    Failed(Failure),
}

impl From<Failure> for HubError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<Refusal> for HubError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl HubError {
    pub(in crate::commands::calling) fn is_code(&self, code: &str) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.code == code)
    }

    /// Whether another key could do it.
    pub(in crate::commands::calling) fn is_forbidden(&self) -> bool {
        matches!(self, Self::Refused(refusal) if matches!(refusal.status.as_u16(), 401 | 403))
    }

    /// Whether the same request may be answered later.
    pub(in crate::commands::calling) fn is_temporary(&self) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.status.as_u16() == 429 || refusal.status.is_server_error())
    }

    pub(in crate::commands::calling) fn failure(self, hub: &HubClient) -> Failure {
        match self {
            Self::Refused(refusal) => refusal.failure(hub, ""),
            Self::Failed(failure) => failure,
        }
    }

    /// The same with what to do next, unless that follows from the refusal itself.
    pub(in crate::commands::calling) fn failure_with(self, hub: &HubClient, next: &str) -> Failure {
        match self {
            Self::Refused(refusal) => refusal.failure(hub, next),
            Self::Failed(failure) => failure,
        }
    }
}

/// A refusal of the server.
#[derive(Debug)]
pub(in crate::commands::calling) struct Refusal {
    status: StatusCode,
    code: String,
    message: String,
}

impl Refusal {
    pub(super) fn of(status: StatusCode, body: Value) -> Self {
        let error = &body["error"];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        // A refusal of the server itself, before any endpoint of the hub, has none.
        let code = text(&body["code"]).unwrap_or_default();
        let message = text(&error["message"]).or_else(|| text(error)).filter(|message| !message.is_empty());
        Self { status, code, message: message.unwrap_or_else(|| format!("the server answered {status}")) }
    }

    fn failure(self, hub: &HubClient, next: &str) -> Failure {
        let Self { status, code, message } = self;
        let message = sanitize::line(&message);
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => credentials(message, hub),
            StatusCode::NOT_FOUND if code != "NOT_FOUND" => hub.no_hub(),
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE if next.is_empty() => {
                Failure::by_server(&name(&code), message, "try again in a moment")
            }
            _ => Failure::by_server(&name(&code), message, next),
        }
    }
}

fn name(code: &str) -> String {
    if code.is_empty() { String::new() } else { format!("SWITCHBOARD_ERR_{code}") }
}

fn credentials(message: String, hub: &HubClient) -> Failure {
    let credentials = hub.flags.credentials();
    let is_anonymous = credentials.bearer.is_none() && credentials.api_key.is_none();
    let mut next = match credentials.variable {
        Some(variable) => format!("put a key that may do it into {variable}"),
        None if is_anonymous => "set A2ACLI_BEARER to a key".to_owned(),
        None => "check --bearer and --api-key".to_owned(),
    };
    if hub.is_local {
        let create = format!("switchboard keys create{} --role admin", hub.flags.workspace.again());
        next.push_str(&format!("; {create} makes one that may"));
    }
    match is_anonymous {
        true => Failure::no_credentials(message, next),
        false => Failure::refused_credentials(message, next),
    }
}
