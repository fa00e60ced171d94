//! Classifies the failures of Codex.
//!
//! `exec` has only messages; the app server adds a name for some errors. A failure of the endpoint may come as the raw
//! body of its answer.

use serde_json::Value;

use crate::adapters::cut;
use crate::adapters::dialogue::{Exit, Failure, FailureKind};
use crate::adapters::json::parse;

/// How to log in, as a beginning of a sentence.
pub(super) const LOGIN: &str = "run `codex login`";

/// The longest text of an error that is passed on, in characters.
const LONGEST: usize = 2000;

/// A turn that Codex reports as failed. `info` is the app server's name for the error.
pub(super) fn reported(message: &str, info: &Value) -> Failure {
    let message = readable(message);
    if is_unauthorized(info) || lacks_login(&message) {
        return not_logged_in(&message);
    }
    let named_limit =
        matches!(info.as_str(), Some("contextWindowExceeded" | "sessionBudgetExceeded" | "usageLimitExceeded"));
    let told_limit = message.contains("context window") || message.contains("usage limit");
    let kind = if named_limit || told_limit { FailureKind::Limit } else { FailureKind::Reported };
    Failure { kind, message }
}

/// The failure of an error during the turn, if the credentials were rejected: Codex retries all the same.
pub(super) fn rejected(message: &str, info: &Value) -> Option<Failure> {
    // `Reconnecting... 2/5 (unexpected status 401 Unauthorized: …)`
    let inside = message.strip_prefix("Reconnecting").and_then(|rest| rest.split_once('(')?.1.strip_suffix(')'));
    // Other errors speak of authorization too, such as those of MCP servers that need a login of their own.
    let is_rejected = is_unauthorized(info) || message.contains("unexpected status 401");
    is_rejected.then(|| not_logged_in(&readable(inside.unwrap_or(message))))
}

/// A thread that could not be started or resumed.
pub(super) fn not_opened(message: &str) -> Failure {
    if is_unknown_session(message) {
        return Failure { kind: FailureKind::UnknownSession, message: readable(message) };
    }
    if is_in_use(message) {
        return in_use();
    }
    reported(message, &Value::Null)
}

/// The exit of a process without a result. `has_begun` is whether the thread had started.
pub(super) fn at_exit(exit: &Exit, has_begun: bool) -> Failure {
    // Log lines and a trace may come after the error, so its line is looked for. Where there is none, what it always
    // says first is no reason either.
    let error = exit.stderr.lines().rfind(|line| line.starts_with("Error: ") || line.starts_with("error: "));
    let last = || exit.stderr.lines().rfind(|line| !line.is_empty() && !line.starts_with("Reading "));
    let how = Exit { stderr: error.or_else(last).unwrap_or_default().to_owned(), ..exit.clone() };
    let message = format!("codex {}", how.describe());
    if is_unknown_session(&exit.stderr) {
        Failure { kind: FailureKind::UnknownSession, message }
    } else if is_in_use(&exit.stderr) {
        in_use()
    } else if lacks_login(&exit.stderr) {
        not_logged_in(&message)
    } else if !has_begun && lost_a_race(&exit.stderr) {
        Failure { kind: FailureKind::NotReady, message }
    } else {
        Failure { kind: FailureKind::NoResult, message }
    }
}

pub(super) fn interrupted() -> Failure {
    Failure { kind: FailureKind::Interrupted, message: "the turn was stopped".to_owned() }
}

fn not_logged_in(said: &str) -> Failure {
    Failure { kind: FailureKind::NotLoggedIn, message: format!("{said}; {LOGIN} as the user who runs it") }
}

/// A message for people: what is inside, if it is the raw body of an endpoint's answer.
pub(super) fn readable(message: &str) -> String {
    let body = parse(message).unwrap_or_default();
    let inside = body.pointer("/error/message").and_then(Value::as_str);
    cut(inside.unwrap_or(message), LONGEST).into_owned()
}

fn is_unauthorized(info: &Value) -> bool {
    let status = |named: &Value| named.get("httpStatusCode").and_then(Value::as_u64);
    info == "unauthorized" || info.as_object().is_some_and(|info| info.values().any(|named| status(named) == Some(401)))
}

fn lacks_login(text: &str) -> bool {
    ["401 Unauthorized", "Missing environment variable", "Not logged in"].iter().any(|words| text.contains(words))
}

fn is_unknown_session(text: &str) -> bool {
    text.contains("no rollout found for thread id") || text.contains("invalid session id")
}

fn is_in_use(text: &str) -> bool {
    text.contains("already has an active writer")
}

/// Of processes that are the first in a new home at the same time, one makes the databases and the others end.
fn lost_a_race(text: &str) -> bool {
    text.contains("failed to initialize sqlite state runtime")
}

/// The process of an earlier turn may outlive the one that started it, and keeps its session locked.
fn in_use() -> Failure {
    Failure {
        kind: FailureKind::Reported,
        message: "another codex process still holds this conversation: end it, then send the message again".to_owned(),
    }
}
