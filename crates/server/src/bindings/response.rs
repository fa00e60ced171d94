//! Responses: the headers that all of them have, and results and errors in the body format of their binding.

use std::sync::LazyLock;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use switchboard_a2a::jsonrpc::RpcId;
use switchboard_a2a::{Dialect, Error, ErrorKind, Operation, Version};
use switchboard_engine::AgentName;

use super::dialect::VERSION;
use super::operation::OperationCall;
use super::render::Rendered;
use super::{sse, truncate};
use crate::edge::json_response::retry_after;
use crate::front::event_stream_response;
use crate::{Body, RequestLabels};

/// JSON-RPC, cards and everything of v0.3.
pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// REST of v1.0.
pub(super) const A2A_JSON: HeaderValue = HeaderValue::from_static("application/a2a+json");

/// The binding of a response: JSON-RPC under an id, or REST.
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

    /// The HTTP status of an error. On JSON-RPC most errors are answers with status 200.
    fn status(&self, dialect: Dialect, kind: ErrorKind) -> u16 {
        match self {
            Self::Rest => kind.http_status(dialect),
            // The address itself names no agent.
            Self::Rpc(_) if kind == ErrorKind::AgentNotFound => kind.http_status(dialect),
            Self::Rpc(_) => kind.rpc_http_status(),
        }
    }

    pub(super) fn encode(&self, dialect: Dialect, error: &Error) -> Vec<u8> {
        let error = truncate::within(error);
        match self {
            Self::Rpc(id) => error.encode_json_rpc(dialect, id),
            Self::Rest => error.encode_rest(dialect),
        }
    }

    pub(super) fn success(&self, dialect: Dialect, body: Body) -> Response<Body> {
        plain(StatusCode::OK, self.media_type(dialect), dialect.version(), body)
    }

    /// An error; a retryable one says when to retry.
    pub(super) fn failure(&self, dialect: Dialect, error: &Error) -> Response<Body> {
        let status =
            StatusCode::from_u16(self.status(dialect, error.kind)).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = Body::full(self.encode(dialect, error));
        let mut response = plain(status, self.media_type(dialect), dialect.version(), body);
        response.headers_mut().extend(retry_after(error));
        response
    }
}

pub(super) fn events(version: Version, body: Body) -> Response<Body> {
    let mut response = event_stream_response(body);
    response.headers_mut().insert(HeaderName::from_static(VERSION), HeaderValue::from_static(version.as_str()));
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

pub(super) fn finish(mut call: OperationCall<'_>, binding: Binding, result: Result<Rendered, Error>) -> Response<Body> {
    let (dialect, operation) = (call.dialect, call.operation);
    let mut out = std::mem::take(&mut call.out);
    let is_rest = matches!(binding, Binding::Rest);
    // The end of the envelope that the result stands in.
    let suffix: &'static [u8] = if is_rest { b"" } else { b"}" };
    let (mut response, failed) = match result {
        Ok(Rendered::Written) => {
            out.extend_from_slice(suffix);
            (binding.success(dialect, Body::full(out).counted(call.reserved.take())), None)
        }
        Ok(Rendered::Large(mut pieces)) => {
            pieces.extend((!is_rest).then_some(Bytes::from_static(suffix)));
            (binding.success(dialect, Body::pieces(pieces).counted(call.reserved.take())), None)
        }
        Ok(Rendered::Nothing) => {
            out.extend_from_slice(if is_rest { b"{}" } else { b"null}" });
            (binding.success(dialect, Body::full(out)), None)
        }
        Ok(Rendered::Events(events)) => (sse::response(call.state, call.identity, dialect, binding, *events), None),
        // v0.3 readers of a stream take nothing but a stream.
        Err(error)
            if dialect == Dialect::V03Rpc
                && operation.is_streaming()
                && binding.status(dialect, error.kind) == StatusCode::OK.as_u16() =>
        {
            (sse::failure(dialect, binding, &error), Some(error.kind))
        }
        Err(error) => (binding.failure(dialect, &error), Some(error.kind)),
    };
    if is_rest && operation == Operation::GetExtendedCard && failed.is_none() {
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("private, max-age=60"));
    }
    if let Some((name, value)) = call.activated() {
        response.headers_mut().insert(name, value);
    }
    let agent = call.hosted.as_ref().map(|hosted| hosted.name.clone());
    measure(response, Some(operation), agent, failed)
}

/// Labels a response for the metrics.
pub(super) fn measure(
    mut response: Response<Body>,
    operation: Option<Operation>,
    agent: Option<AgentName>,
    error: Option<ErrorKind>,
) -> Response<Body> {
    let method = operation.map_or("unknown", |operation| operation.method(Version::V1));
    let outcome = error.map_or("ok", outcome);
    response.body_mut().label(RequestLabels { method, agent, outcome });
    response
}

/// An error's reason in lower case.
pub(super) fn outcome(kind: ErrorKind) -> &'static str {
    static OUTCOMES: LazyLock<Vec<(ErrorKind, String)>> =
        LazyLock::new(|| ErrorKind::ALL.map(|kind| (kind, kind.entry().reason.to_lowercase())).into());
    OUTCOMES.iter().find(|(of, _)| *of == kind).map_or("internal_error", |(_, outcome)| outcome)
}
