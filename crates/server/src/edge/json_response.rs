//! Small JSON responses of the server itself, outside the bindings.

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use serde::Serialize;
use switchboard_a2a::Error;

use crate::Body;

/// A response of a media type, which nothing may cache.
pub fn body(status: StatusCode, media_type: &'static str, bytes: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::full(bytes));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A JSON response.
pub fn json(status: StatusCode, value: &impl Serialize) -> Response<Body> {
    body(status, "application/json", serde_json::to_vec(value).unwrap_or_default())
}

/// An error in the form of REST's errors.
pub fn error(status: StatusCode, message: &str) -> Response<Body> {
    let name = match status {
        StatusCode::UNAUTHORIZED => "UNAUTHENTICATED",
        StatusCode::FORBIDDEN => "PERMISSION_DENIED",
        StatusCode::NOT_FOUND => "NOT_FOUND",
        StatusCode::METHOD_NOT_ALLOWED => "UNIMPLEMENTED",
        StatusCode::CONFLICT => "FAILED_PRECONDITION",
        StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => "RESOURCE_EXHAUSTED",
        StatusCode::SERVICE_UNAVAILABLE => "UNAVAILABLE",
        status if status.is_client_error() => "INVALID_ARGUMENT",
        _ => "INTERNAL",
    };
    let error = serde_json::json!({ "code": status.as_u16(), "status": name, "message": message });
    json(status, &serde_json::json!({ "error": error }))
}

/// A refusal by the edge, with `Retry-After` if it is retryable.
pub fn refusal(refused: &Error) -> Response<Body> {
    let status = StatusCode::from_u16(refused.kind.entry().http).unwrap_or(StatusCode::FORBIDDEN);
    let mut response = error(status, &refused.message);
    response.headers_mut().extend(retry_after(refused));
    response
}

/// The `Retry-After` header of a retryable error.
pub(crate) fn retry_after(error: &Error) -> Option<(HeaderName, HeaderValue)> {
    let (_, milliseconds) = error.metadata.iter().find(|(key, _)| key == "retryAfterMs")?;
    let seconds = milliseconds.parse::<u64>().ok()?.div_ceil(1_000);
    Some((RETRY_AFTER, HeaderValue::from(seconds)))
}

/// 503 with `Retry-After`.
pub fn later(message: &str, seconds: u64) -> Response<Body> {
    let mut response = error(StatusCode::SERVICE_UNAVAILABLE, message);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    response
}

/// 405: the path has other methods. What it looks like is said by who answers at the path.
pub(crate) fn wrong_method(
    path: &str,
    asked: &http::Method,
    allow: &'static str,
    refuse: impl FnOnce(&str, &str) -> Response<Body>,
) -> Response<Body> {
    let mut response = refuse(path, &format!("{asked} is not possible at {path}, only {allow}"));
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    response
}

/// 404, with what exists.
pub(crate) fn not_found(path: &str) -> Response<Body> {
    let message = format!(
        "nothing is at {path}; the card is at /.well-known/agent-card.json, JSON-RPC at POST /a2a and POST /a2a/AGENT, \
         REST below them (/a2a/message:send, /a2a/AGENT/tasks), webhooks for operators at /api/webhooks, health at \
         /healthz and /readyz"
    );
    error(StatusCode::NOT_FOUND, &message)
}
