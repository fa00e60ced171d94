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
            Self::Store(error) => return unavailable(style, &error),
            Self::Engine(error) => {
                let error = protocol_error(error);
                return match style {
                    Style::Own => json_response::refusal(&error),
                    Style::Envelope => enveloped_refusal(&error),
                };
            }
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
    };
    if let (Some(body), Value::Object(more)) = (body.as_object_mut(), more) {
        body.extend(more);
    }
    json_response::json(status, &body)
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

/// A refusal by the server itself, in the form of earlier hubs.
pub(crate) fn enveloped_refusal(error: &Error) -> Response<Body> {
    let plain = json_response::refusal(error);
    let code = match error.kind {
        ErrorKind::Unauthenticated => "UNAUTHENTICATED",
        ErrorKind::PermissionDenied => "FORBIDDEN",
        _ if plain.status() == StatusCode::NOT_FOUND => "NOT_FOUND",
        _ if plain.status().is_client_error() => "INVALID",
        _ => "UNAVAILABLE",
    };
    let mut response = refused(Style::Envelope, plain.status(), code, &error.message, json!({}));
    if let Some(seconds) = plain.headers().get(RETRY_AFTER) {
        response.headers_mut().insert(RETRY_AFTER, seconds.clone());
    }
    response
}

fn sentence(problems: &[Problem]) -> String {
    let one = |problem: &Problem| format!("{} {}: {}", problem.key, problem.wrong, problem.right);
    problems.iter().map(one).collect::<Vec<_>>().join("; ")
}
