//! What belongs to one call and not to the peer: tracing, credentials, idempotency key.

use http::{HeaderMap, HeaderName, HeaderValue};
use switchboard_a2a::{Json, SendRequest};
use uuid::Uuid;

use crate::exchange::header_value;
use crate::{ClientError, Credentials};

const CORRELATION: HeaderName = HeaderName::from_static("x-correlation-id");
const PARENT: HeaderName = HeaderName::from_static("x-parent-id");
/// For agents that do not read the header.
const TRACE_METADATA: &str = "a2a.trace";
const TRACE: HeaderName = HeaderName::from_static("traceparent");

/// The context of one call.
#[derive(Clone, Debug, Default)]
pub struct CallContext {
    /// Correlates everything one request has caused.
    pub correlation_id: Option<String>,
    /// The id of what caused this call.
    pub parent_id: Option<String>,
    /// The W3C trace this call is part of; also sent as `a2a.trace` in a message's metadata.
    pub traceparent: Option<String>,
    /// Overrides the peer's credentials.
    pub credentials: Option<Credentials>,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The idempotency key of a sent message. Generated if it is absent.
    pub idempotency_key: Option<String>,
    /// Extensions to declare beside the peer's.
    pub extensions: Vec<String>,
    /// A message that may have arrived is not sent again unless the agent recognizes the repetition.
    pub sends_once: bool,
}

impl CallContext {
    /// Sets the tracing headers.
    pub(crate) fn apply(&self, headers: &mut HeaderMap) -> Result<(), ClientError> {
        let named = [
            (CORRELATION, "correlationId", &self.correlation_id),
            (PARENT, "parentId", &self.parent_id),
            (TRACE, "traceparent", &self.traceparent),
        ];
        for (name, field, value) in named {
            let Some(value) = value else { continue };
            headers.insert(name, header_value(field, "it", value)?);
        }
        Ok(())
    }

    /// Adds the trace to the message's metadata, unless it has one.
    pub(crate) fn mark(&self, request: &mut SendRequest) {
        let mut parts = self.traceparent.iter().flat_map(|trace| trace.split('-')).skip(1);
        let (Some(trace), Some(span)) = (parts.next(), parts.next()) else { return };
        let metadata = request.metadata.get_or_insert_default();
        if metadata.get(TRACE_METADATA).is_none()
            && let Ok(trace) = Json::from_serialize(&serde_json::json!({ "traceId": trace, "spanId": span }))
        {
            metadata.insert(TRACE_METADATA, trace);
        }
    }

    /// The idempotency key, the same for every attempt.
    pub(crate) fn key(&self) -> String {
        self.idempotency_key.clone().unwrap_or_else(|| Uuid::now_v7().to_string())
    }
}
