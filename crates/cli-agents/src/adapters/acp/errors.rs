//! Classifies the errors of an agent.

use agent_client_protocol_schema::v1::{Error, ErrorCode};
use serde_json::Value;

use crate::adapters::auth_failures::is_auth_failure;
use crate::adapters::dialogue::FailureKind;
use crate::adapters::json::parse;
use crate::adapters::truncate::cut;

/// Longer details are cut: some agents send whole answers of their model's server.
const LONGEST_DETAIL: usize = 1_000;

/// The failure kind of an error response to any request.
pub(super) fn kind(error: &Error) -> FailureKind {
    match error.code {
        // Gemini gives the status of its model's server as the code.
        ErrorCode::AuthRequired | ErrorCode::Other(401) => FailureKind::NotLoggedIn,
        // Opencode passes on the message of its model's server, without the status.
        _ if is_auth_failure(&describe(error)) => FailureKind::NotLoggedIn,
        _ => FailureKind::Reported,
    }
}

/// The failure kind of an error response to resuming a session: each agent reports an unknown session with another
/// code.
pub(super) fn kind_on_resume(error: &Error) -> FailureKind {
    match error.code {
        ErrorCode::ResourceNotFound
        | ErrorCode::InvalidParams
        | ErrorCode::InternalError
        | ErrorCode::MethodNotFound => FailureKind::UnknownSession,
        _ => kind(error),
    }
}

/// The agent's own error message, for people.
pub(super) fn describe(error: &Error) -> String {
    let message = inner_message(&error.message).unwrap_or_else(|| error.message.clone());
    let message = match message.trim() {
        "" => format!("error {}", i32::from(error.code)),
        message => cut(message.trim_end_matches('.'), LONGEST_DETAIL).into_owned(),
    };
    match &error.data {
        None => message,
        Some(data) => format!("{message} ({})", cut(&detail(data), LONGEST_DETAIL)),
    }
}

/// The text in what goes with an error; all of it if there is none.
fn detail(data: &Value) -> String {
    let text = data.as_str().or_else(|| data.get("details")?.as_str());
    text.map_or_else(|| data.to_string(), str::to_owned)
}

/// Some messages are a whole answer of the model's server as JSON: the message within.
fn inner_message(message: &str) -> Option<String> {
    let answer = parse(message)?;
    answer.pointer("/error/message")?.as_str().map(str::to_owned)
}
