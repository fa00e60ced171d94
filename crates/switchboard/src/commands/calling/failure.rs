//! What went wrong with a call, for people and for programs: the one place that knows exit codes and code words.
//!
//! Exit codes: 1 failed, 2 typed wrongly, 3 the agent or its card cannot be reached, 4 credentials, 5 time is over. What
//! the protocol has a name for is called by that name; everything else has a word of its own.

use std::process::ExitCode;

use serde_json::json;
use switchboard_a2a::ErrorKind;
use switchboard_client::{ClientError, NoCardAt};

use crate::commands::calling::{API_KEY, BEARER, Call, clean};
use crate::printer::Printer;

const FAILED: u8 = 1;
const USAGE: u8 = 2;
const UNREACHABLE: u8 = 3;
const CREDENTIALS: u8 = 4;
const TIMEOUT: u8 = 5;

/// Why a command that calls an agent could not do its work.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: u8,
    code: String,
    message: String,
    hint: String,
    a2a_code: Option<i32>,
}

impl Failure {
    fn new(exit: u8, code: impl Into<String>, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { exit, code: code.into(), message: message.into(), hint: hint.into(), a2a_code: None }
    }

    /// It was typed wrongly.
    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(USAGE, "A2ACLI_ERR_USAGE", message, hint)
    }

    /// There is no such agent.
    pub(super) fn no_agent(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(UNREACHABLE, "A2ACLI_ERR_CARD_NOT_FOUND", message, hint)
    }

    /// Nobody is there to be asked.
    pub(super) fn unreachable(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(UNREACHABLE, "A2ACLI_ERR_UNREACHABLE", message, hint)
    }

    /// Something on this side.
    pub(super) fn internal(message: impl Into<String>) -> Self {
        Self::new(FAILED, "A2ACLI_ERR_INTERNAL", message, "")
    }

    /// The same with what to do about it.
    pub(super) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// What a call came to.
    pub(super) fn of_call(error: &ClientError, call: &Call) -> Self {
        let message = error.to_string();
        match error {
            ClientError::Invalid { .. } => Self::new(USAGE, "A2ACLI_ERR_USAGE", message, ""),
            ClientError::Address { .. } => Self::usage(message, "write a URL such as https://agent.example"),
            ClientError::NoCard(places) => Self::no_card(message, places, call),
            ClientError::NoInterface { .. } => {
                let hint = "leave out --transport and --a2a-version, or call an agent that offers them";
                Self::new(FAILED, "A2ACLI_ERR_CARD_INVALID", message, hint)
            }
            ClientError::Unreachable { .. } => {
                Self::unreachable(message, "check the address, and whether the agent runs")
            }
            ClientError::Lost { .. } => {
                Self::unreachable(message, "the agent may have done it; look before trying again")
            }
            ClientError::Timeout { task, .. } => {
                let hint = match task {
                    Some(task) => call.command("task get", &clean::word(task.as_str())),
                    None => "give it more time with --timeout, or do not wait with --async".to_owned(),
                };
                Self::new(TIMEOUT, "A2ACLI_ERR_TIMEOUT", message, hint)
            }
            ClientError::Credentials { .. } | ClientError::Secret(_) => Self::credentials(message, call),
            ClientError::Agent(error) => Self::refused(error.kind, &error.message, call),
            ClientError::NotA2a { .. } => {
                let hint = "check the address: it must be an agent's base, card or endpoint";
                Self::new(FAILED, ErrorName(ErrorKind::InvalidAgentResponse).to_string(), message, hint)
            }
            ClientError::Gap(gap) => {
                let hint = call.command("task get", &clean::word(gap.task.as_str()));
                Self::new(FAILED, "SWITCHBOARD_ERR_GAP", message, hint)
            }
            _ => Self::internal(message),
        }
    }

    fn no_card(message: String, places: &[NoCardAt], call: &Call) -> Self {
        if places.iter().any(|place| matches!(place.status, Some(401 | 403))) {
            return Self::credentials(message, call);
        }
        if places.iter().all(|place| place.status == Some(404)) {
            return Self::no_agent(message, "check the address: its card must be at /.well-known/agent-card.json");
        }
        let hint = "check the address: something answers there that is no agent";
        Self::new(FAILED, "A2ACLI_ERR_CARD_INVALID", message, hint)
    }

    fn credentials(message: String, call: &Call) -> Self {
        let code = if call.has_credentials { "A2ACLI_ERR_AUTH_FAILED" } else { "A2ACLI_ERR_CREDENTIALS_MISSING" };
        let mut hint = format!("set {BEARER} or {API_KEY} in the environment to what the agent wants");
        if call.is_local {
            hint.push_str("; switchboard keys create makes a key for this server");
        }
        Self::new(CREDENTIALS, code, message, hint)
    }

    fn refused(kind: ErrorKind, message: &str, call: &Call) -> Self {
        let hint = match kind {
            ErrorKind::Unauthenticated | ErrorKind::PermissionDenied => {
                return Self { a2a_code: Some(kind.entry().code), ..Self::credentials(message.to_owned(), call) };
            }
            ErrorKind::TaskNotFound => call.command("task list", ""),
            ErrorKind::PushNotSupported => call.command("task subscribe", "ID"),
            ErrorKind::VersionNotSupported => "leave out --a2a-version".to_owned(),
            ErrorKind::Overloaded => "try again in a moment".to_owned(),
            _ => String::new(),
        };
        let message = match message.is_empty() {
            true => kind.entry().message,
            false => message,
        };
        let failure = Self::new(FAILED, ErrorName(kind).to_string(), format!("the agent refused: {message}"), hint);
        Self { a2a_code: Some(kind.entry().code), ..failure }
    }

    /// Tells it, and turns it into the exit code.
    #[must_use]
    pub(crate) fn print(&self, printer: Printer) -> ExitCode {
        let Self { code, message, hint, a2a_code, .. } = self;
        if printer.is_json() {
            let hint = (!hint.is_empty()).then_some(hint);
            // One line, so that it can end a stream of lines.
            let error = json!({ "code": code, "message": message, "hint": hint, "a2aCode": a2a_code });
            printer.json_line(&json!({ "error": error }));
        } else {
            printer.error(&clean::line(message), hint);
        }
        ExitCode::from(self.exit)
    }
}

/// An error of the protocol by its name, one of ours by a word that nobody takes for that.
struct ErrorName(ErrorKind);

impl std::fmt::Display for ErrorName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self.0 {
            ErrorKind::Parse => "JSONParseError",
            ErrorKind::InvalidRequest => "InvalidRequestError",
            ErrorKind::MethodNotFound => "MethodNotFoundError",
            ErrorKind::InvalidParams => "InvalidParamsError",
            ErrorKind::Internal => "InternalError",
            ErrorKind::TaskNotFound => "TaskNotFoundError",
            ErrorKind::TaskNotCancelable => "TaskNotCancelableError",
            ErrorKind::PushNotSupported => "PushNotificationNotSupportedError",
            ErrorKind::UnsupportedOperation => "UnsupportedOperationError",
            ErrorKind::ContentTypeNotSupported => "ContentTypeNotSupportedError",
            ErrorKind::InvalidAgentResponse => "InvalidAgentResponseError",
            ErrorKind::ExtendedCardNotConfigured => "ExtendedAgentCardNotConfiguredError",
            ErrorKind::ExtensionRequired => "ExtensionSupportRequiredError",
            ErrorKind::VersionNotSupported => "VersionNotSupportedError",
            other => return write!(formatter, "SWITCHBOARD_ERR_{}", other.entry().reason),
        })
    }
}
