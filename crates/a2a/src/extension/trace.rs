//! `trace-v1`: the trace that a request belongs to, in its metadata under `a2a.trace`, and its relation to W3C
//! `traceparent`.

use serde::Serialize;

use super::members::Members;
use crate::{Json, Metadata};

/// The extension's URI.
pub const URI: &str = "https://proto-labs.ai/a2a/ext/trace-v1";
/// The key in request metadata; readers of this extension know no other.
pub const KEY: &str = "a2a.trace";

/// The trace that a request belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Trace {
    /// The trace.
    pub trace_id: String,
    /// The span of the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span_id: Option<String>,
    /// The agent that calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller_agent: Option<String>,
    /// The skill that is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// The project in the tracing system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
}

impl Trace {
    /// The trace in a request's metadata: under its key, else under the extension's URI.
    pub fn in_metadata(metadata: Option<&Metadata>) -> Option<Self> {
        let metadata = metadata?;
        let members = Members::of(metadata.get(KEY).or_else(|| metadata.get(URI))?)?;
        Some(Self {
            trace_id: members.text(&["traceId", "trace_id"])?,
            span_id: members.text(&["spanId", "span_id"]),
            caller_agent: members.text(&["callerAgent", "caller_agent"]),
            skill: members.text(&["skill"]),
            project: members.text(&["project"]),
        })
    }

    /// Adds it to a request's metadata.
    pub fn write_to(&self, metadata: &mut Metadata) {
        // A structure of texts cannot fail to be JSON.
        if let Ok(payload) = Json::from_serialize(self) {
            metadata.insert(KEY, payload);
        }
    }

    /// The trace of a `traceparent` header; nothing if that has not its form.
    pub fn from_traceparent(header: &str) -> Option<Self> {
        let mut fields = header.split('-');
        let [_version, trace_id, span_id, _flags] = [fields.next()?, fields.next()?, fields.next()?, fields.next()?];
        let is_written = is_hex(trace_id, 32) && is_hex(span_id, 16);
        is_written.then(|| Self { trace_id: trace_id.to_owned(), span_id: Some(span_id.to_owned()), ..Self::default() })
    }

    /// The same as a `traceparent`, if its ids are ones that W3C allows: a UUID is one, without its dashes. Some callers know
    /// no span, which has to be named nevertheless; then it is the second half of the trace.
    pub fn traceparent(&self) -> Option<String> {
        let trace_id = self.trace_id.replace('-', "").to_ascii_lowercase();
        let span_id = match &self.span_id {
            Some(span_id) => span_id.to_ascii_lowercase(),
            None => trace_id.get(16..)?.to_owned(),
        };
        let is_allowed = is_hex(&trace_id, 32) && is_hex(&span_id, 16);
        is_allowed.then(|| format!("00-{trace_id}-{span_id}-01"))
    }
}

/// An id of zeros only stands for none.
fn is_hex(field: &str, length: usize) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    field.len() == length && field.bytes().all(is_digit) && field.bytes().any(|byte| byte != b'0')
}
