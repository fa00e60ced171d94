//! Responses: the headers every answer has, and errors in the body format of their binding.

use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use switchboard_a2a::jsonrpc::RpcId;
use switchboard_a2a::{Dialect, Error, ErrorKind, Operation, Version};
use switchboard_engine::AgentName;

use super::dialect::VERSION;
use super::truncate;
use crate::{Body, RequestLabels};

/// JSON-RPC, cards and everything of v0.3.
pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// REST of v1.0.
pub(super) const A2A_JSON: HeaderValue = HeaderValue::from_static("application/a2a+json");
const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");

/// How an answer goes back: as JSON-RPC under an id, or as REST.
#[derive(Clone, Debug)]
pub(super) enum Binding {
    Rpc(RpcId),
    Rest,
}

impl Binding {
    /// The media type of answers that are no stream.
    fn media_type(&self, dialect: Dialect) -> HeaderValue {
        match (self, dialect) {
            (Self::Rest, Dialect::V1) => A2A_JSON,
            _ => JSON,
        }
    }

    /// The status of an error. On JSON-RPC an error is an answer, unless it is HTTP that refuses.
    fn status(&self, dialect: Dialect, kind: ErrorKind) -> u16 {
        match self {
            Self::Rest => kind.http_status(dialect),
            // The address itself names nobody.
            Self::Rpc(_) if kind == ErrorKind::AgentNotFound => kind.http_status(dialect),
            Self::Rpc(_) => kind.rpc_http_status(),
        }
    }

    /// An error as this binding writes it.
    pub(super) fn encode(&self, dialect: Dialect, error: &Error) -> Vec<u8> {
        let error = truncate::within(error);
        match self {
            Self::Rpc(id) => error.encode_json_rpc(dialect, id),
            Self::Rest => error.encode_rest(dialect),
        }
    }

    /// A result that is all there.
    pub(super) fn success(&self, dialect: Dialect, body: Body) -> Response<Body> {
        plain(StatusCode::OK, self.media_type(dialect), dialect.version(), body)
    }

    /// An error. One that is worth another try says when.
    pub(super) fn failure(&self, dialect: Dialect, error: &Error) -> Response<Body> {
        let status =
            StatusCode::from_u16(self.status(dialect, error.kind)).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = Body::full(self.encode(dialect, error));
        let mut response = plain(status, self.media_type(dialect), dialect.version(), body);
        let wait = error.metadata.iter().find(|(key, _)| key == "retryAfterMs");
        if let Some(milliseconds) = wait.and_then(|(_, value)| value.parse::<u64>().ok()) {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(milliseconds.div_ceil(1_000)));
        }
        response
    }
}

/// A stream of events. Nothing on the way may keep or delay it.
pub(super) fn events(version: Version, body: Body) -> Response<Body> {
    let mut response = plain(StatusCode::OK, EVENT_STREAM, version, body);
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

fn plain(status: StatusCode, media_type: HeaderValue, version: Version, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, media_type);
    headers.insert(HeaderName::from_static(VERSION), HeaderValue::from_static(version.as_str()));
    response
}

/// Tells the metrics what became of a request.
pub(super) fn measure(
    mut response: Response<Body>,
    operation: Option<Operation>,
    agent: Option<AgentName>,
    error: Option<ErrorKind>,
) -> Response<Body> {
    let method = operation.map_or("unknown", |operation| operation.method(Version::V1));
    let outcome = error.map_or("ok", outcome);
    response.extensions_mut().insert(RequestLabels { method, agent, outcome });
    response
}

/// An error's reason in lower case.
pub(super) fn outcome(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Parse => "parse_error",
        ErrorKind::InvalidRequest => "invalid_request",
        ErrorKind::MethodNotFound => "method_not_found",
        ErrorKind::InvalidParams => "invalid_params",
        ErrorKind::Internal => "internal_error",
        ErrorKind::TaskNotFound => "task_not_found",
        ErrorKind::TaskNotCancelable => "task_not_cancelable",
        ErrorKind::PushNotSupported => "push_notification_not_supported",
        ErrorKind::UnsupportedOperation => "unsupported_operation",
        ErrorKind::ContentTypeNotSupported => "content_type_not_supported",
        ErrorKind::InvalidAgentResponse => "invalid_agent_response",
        ErrorKind::ExtendedCardNotConfigured => "extended_agent_card_not_configured",
        ErrorKind::ExtensionRequired => "extension_support_required",
        ErrorKind::VersionNotSupported => "version_not_supported",
        ErrorKind::Unauthenticated => "unauthenticated",
        ErrorKind::PermissionDenied => "permission_denied",
        ErrorKind::AgentNotFound => "agent_not_found",
        ErrorKind::TooLarge => "request_too_large",
        ErrorKind::HeadersTooLarge => "request_headers_too_large",
        ErrorKind::RequestTimeout => "request_timeout",
        ErrorKind::Overloaded => "overloaded",
        ErrorKind::IdempotencyKeyReused => "idempotency_key_reused",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_the_reasons() {
        for kind in ErrorKind::ALL {
            assert_eq!(outcome(kind), kind.entry().reason.to_lowercase());
        }
    }
}
