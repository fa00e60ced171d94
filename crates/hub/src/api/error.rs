//! Why a request of the hub's API is refused. Each refusal has a code for programs and a sentence for people; what is wrong
//! with input is said field by field, with what would be right.

use http::header::RETRY_AFTER;
use http::{HeaderValue, Response, StatusCode};
use serde::Serialize;
use serde_json::{Value, json};
use switchboard_a2a::{Error, ErrorKind};
use switchboard_engine::store::StoreError;
use switchboard_server::{Body, json_response, protocol_error};

use super::route::Style;

/// What is wrong with one parameter or member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Problem {
    /// Its name.
    pub(crate) key: String,
    pub(crate) wrong: String,
    pub(crate) right: String,
}

impl Problem {
    pub(crate) fn new(key: impl Into<String>, wrong: impl Into<String>, right: impl Into<String>) -> Self {
        Self { key: key.into(), wrong: wrong.into(), right: right.into() }
    }
}

/// Why a request is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    #[error("{}", sentence(.0))]
    Invalid(Vec<Problem>),
    #[error("{0}")]
    Forbidden(String),
    #[error("{0}")]
    NotFound(String),
    /// What is there is not as the request expects it.
    #[error("{message}")]
    Conflict { status: StatusCode, code: &'static str, message: String, more: Value },
    /// Too many requests of this caller.
    #[error("{problem}")]
    Later { problem: String, seconds: u64 },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Engine(#[from] switchboard_engine::Error),
    /// What the bindings refuse too, such as a header.
    #[error("{}", .0.message)]
    Protocol(Error),
    /// The server has refused the body, and this is its response.
    #[error("the body was refused")]
    Refused(RefusedBody),
}

/// The server's response to a body that it does not take.
pub(crate) struct RefusedBody(pub(crate) Box<Response<Body>>);

impl std::fmt::Debug for RefusedBody {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("RefusedBody").field(&self.0.status()).finish()
    }
}

impl ApiError {
    /// One problem with the input.
    pub(crate) fn invalid(key: &str, wrong: impl Into<String>, right: impl Into<String>) -> Self {
        Self::Invalid(vec![Problem::new(key, wrong, right)])
    }

    /// A failure of the store, where what it may refuse for its size is made of a member.
    pub(crate) fn of_store(member: &str, error: StoreError) -> Self {
        Self::Store(match error {
            StoreError::TooLarge { bytes, max, .. } => StoreError::TooLarge { what: member.to_owned(), bytes, max },
            other => other,
        })
    }

    pub(crate) fn response(self, style: Style) -> Response<Body> {
        let message = self.to_string();
        let (status, code, more) = match self {
            Self::Invalid(problems) => (StatusCode::BAD_REQUEST, "INVALID", json!({ "problems": problems })),
            Self::Forbidden(_) => (StatusCode::FORBIDDEN, "FORBIDDEN", json!({})),
            Self::NotFound(_) => (StatusCode::NOT_FOUND, "NOT_FOUND", json!({})),
            Self::Conflict { status, code, more, .. } => (status, code, more),
            Self::Later { seconds, .. } => {
                let refusal = refused(style, StatusCode::TOO_MANY_REQUESTS, "TOO_MANY", &message, json!({}));
                return retry_after(refusal, seconds);
            }
            Self::Store(error) => return store_refusal(style, &error),
            Self::Engine(error) => return protocol_refusal(style, &protocol_error(error)),
            Self::Protocol(error) => return protocol_refusal(style, &error),
            Self::Refused(RefusedBody(response)) => return *response,
        };
        refused(style, status, code, &message, more)
    }
}

/// A refusal in the style of its path, with members beside it.
fn refused(style: Style, status: StatusCode, code: &str, message: &str, more: Value) -> Response<Body> {
    let mut body = match style {
        Style::Own => {
            let error = json!({ "code": status.as_u16(), "status": code, "message": message });
            json!({ "error": error, "code": code })
        }
        Style::Envelope => json!({ "success": false, "error": message, "code": code }),
        Style::Tool => {
            let is_retryable = matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
            json!({ "error": message, "code": code, "retryable": is_retryable })
        }
    };
    if let (Some(body), Value::Object(more)) = (body.as_object_mut(), more) {
        body.extend(more);
    }
    json_response::json(status, &body)
}

/// 405: the path has other methods.
pub(crate) fn wrong_method(style: Style, message: &str) -> Response<Body> {
    refused(style, StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", message, json!({}))
}

/// What the store refuses or fails. Only what may work soon is told to be tried again: who is told so of what never works
/// tries for ever.
fn store_refusal(style: Style, error: &StoreError) -> Response<Body> {
    let (status, code, more) = match error {
        StoreError::TooLarge { what, bytes, max } => {
            let problem = Problem::new(what.as_str(), format!("has {bytes} bytes"), format!("at most {max}"));
            (StatusCode::PAYLOAD_TOO_LARGE, "REQUEST_TOO_LARGE", json!({ "problems": [problem] }))
        }
        StoreError::VersionConflict { current } => {
            (StatusCode::PRECONDITION_FAILED, "VERSION", json!({ "version": current }))
        }
        StoreError::Missing => (StatusCode::NOT_FOUND, "NOT_FOUND", json!({})),
        StoreError::Ended => (StatusCode::CONFLICT, "NOT_RUNNING", json!({})),
        StoreError::KeyTaken => (StatusCode::CONFLICT, "EXISTS", json!({})),
        StoreError::TooManyWebhooks { .. } | StoreError::TreeFull { .. } => {
            (StatusCode::CONFLICT, "LIMIT_REACHED", json!({}))
        }
        StoreError::Fenced
        | StoreError::Held
        | StoreError::Stale
        | StoreError::CoolingDown { .. }
        | StoreError::ConsumerTaken(_)
        | StoreError::Overloaded { .. }
        | StoreError::Failed(_)
        | StoreError::Closed => return unavailable(style, error),
    };
    refused(style, status, code, &error.to_string(), more)
}

/// 503: the store does not work now, and may soon.
fn unavailable(style: Style, error: &StoreError) -> Response<Body> {
    let milliseconds = match error {
        StoreError::Overloaded { delay_ms } => *delay_ms,
        _ => 1_000,
    };
    let refusal = refused(style, StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE", &error.to_string(), json!({}));
    retry_after(refusal, milliseconds.div_ceil(1_000).max(1))
}

fn retry_after(mut response: Response<Body>, seconds: u64) -> Response<Body> {
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    response
}

/// The status and the code of an error of the protocol.
fn code(error: &Error) -> (StatusCode, &'static str) {
    let entry = error.kind.entry();
    let status = StatusCode::from_u16(entry.http).unwrap_or(StatusCode::FORBIDDEN);
    match error.kind {
        ErrorKind::TaskNotCancelable => (StatusCode::CONFLICT, "NOT_RUNNING"),
        ErrorKind::TaskNotFound | ErrorKind::AgentNotFound => (status, "NOT_FOUND"),
        ErrorKind::PermissionDenied => (status, "FORBIDDEN"),
        ErrorKind::InvalidParams | ErrorKind::InvalidRequest => (status, "INVALID"),
        ErrorKind::Overloaded => (status, "UNAVAILABLE"),
        _ => (status, entry.reason),
    }
}

/// A refusal by the kernel or by the server itself.
pub(crate) fn protocol_refusal(style: Style, error: &Error) -> Response<Body> {
    let plain = json_response::refusal(error);
    let (status, code) = code(error);
    let problems: Vec<Problem> = error.violations.iter().map(violation).collect();
    let more = if problems.is_empty() { json!({}) } else { json!({ "problems": problems }) };
    let mut response = refused(style, status, code, &error.message, more);
    if let Some(seconds) = plain.headers().get(RETRY_AFTER) {
        response.headers_mut().insert(RETRY_AFTER, seconds.clone());
    }
    response
}

/// What is wrong with a field, under the name that it has in a body: hints of routing are members of it, and `metadata` is
/// that of the message.
fn violation(violation: &switchboard_a2a::Violation) -> Problem {
    let field = violation.field.as_str();
    let key = match (field.strip_prefix("message."), field.strip_prefix("metadata.")) {
        (Some(of_message), _) => of_message,
        (None, Some(hint)) => hint,
        (None, None) => field,
    };
    let (wrong, right) = match violation.description.split_once(": ") {
        Some((wrong, right)) => (wrong, right),
        None => (violation.description.as_str(), violation.description.as_str()),
    };
    Problem::new(key, wrong, right)
}

fn sentence(problems: &[Problem]) -> String {
    let one = |problem: &Problem| format!("{} {}: {}", problem.key, problem.wrong, problem.right);
    problems.iter().map(one).collect::<Vec<_>>().join("; ")
}
