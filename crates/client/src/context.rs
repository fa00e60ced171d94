//! What belongs to one call and not to the agent that is called: where it comes from, and who asks.

use http::{HeaderMap, HeaderName, HeaderValue};
use switchboard_a2a::{Json, SendRequest};
use uuid::Uuid;

use crate::{ClientError, Credentials};

const CORRELATION: HeaderName = HeaderName::from_static("x-correlation-id");
const PARENT: HeaderName = HeaderName::from_static("x-parent-id");
/// Where agents look for a trace that read no such header.
const TRACE_METADATA: &str = "a2a.trace";
const TRACE: HeaderName = HeaderName::from_static("traceparent");

/// Where a call comes from.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// Ties together everything that one request has caused.
    pub correlation_id: Option<String>,
    /// What has caused this call.
    pub parent_id: Option<String>,
    /// The W3C trace this call is part of. Agents that know no such header find it in the `a2a.trace` of a message's
    /// metadata.
    pub traceparent: Option<String>,
    /// Who asks, if not who the agent's settings say.
    pub credentials: Option<Credentials>,
    /// Sent along.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Names a sent message, so that it has an effect once however often it arrives. Made if it is absent.
    pub idempotency_key: Option<String>,
}

impl Context {
    /// Adds what there is to the headers of a request, but for [`Self::headers`].
    pub(crate) fn apply(&self, headers: &mut HeaderMap) -> Result<(), ClientError> {
        let named = [
            (CORRELATION, "correlationId", &self.correlation_id),
            (PARENT, "parentId", &self.parent_id),
            (TRACE, "traceparent", &self.traceparent),
        ];
        for (name, field, value) in named {
            let Some(value) = value else { continue };
            let value = HeaderValue::from_str(value).map_err(|_| ClientError::Invalid {
                field,
                problem: "it has characters that cannot stand in a header".to_owned(),
            })?;
            headers.insert(name, value);
        }
        Ok(())
    }

    /// Says in a message's metadata which trace it is part of, unless it says so itself.
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

    /// The key of a message that is about to be sent, the same for every attempt.
    pub(crate) fn key(&self) -> String {
        self.idempotency_key.clone().unwrap_or_else(|| Uuid::now_v7().to_string())
    }
}
