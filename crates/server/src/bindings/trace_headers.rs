//! The headers of a send that say which work it belongs to: `X-Correlation-Id`, `X-Parent-Id` and `traceparent`, in place
//! of which some callers say it in metadata (`a2a.trace`).
//!
//! The ids are the caller's own, and it will look for them later: one that cannot be kept as it is, or two that
//! contradict each other, are refused. A `traceparent` is often added on the way, by a proxy that the caller knows nothing
//! of; W3C Trace Context wants one that cannot be used ignored, and so a trace never fails a request.

use std::sync::Arc;

use http::{HeaderMap, HeaderName};
use switchboard_a2a::Error;
use switchboard_a2a::extension::trace::Trace;
use switchboard_engine::{IncomingMessage, TraceContext, Traceparent};

const CORRELATION_ID: HeaderName = HeaderName::from_static("x-correlation-id");
const PARENT_ID: HeaderName = HeaderName::from_static("x-parent-id");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The longest correlation or parent id: as long as a request id, and stored with every message.
const ID_BYTES: usize = 128;

/// The trace context of a request; nothing is allocated where there is none.
pub fn read(headers: &HeaderMap) -> Result<Option<Arc<TraceContext>>, Error> {
    let trace = TraceContext {
        correlation_id: id(headers, CORRELATION_ID, "X-Correlation-Id")?,
        parent_id: id(headers, PARENT_ID, "X-Parent-Id")?,
        traceparent: traceparent(headers),
    };
    Ok((!trace.is_empty()).then(|| Arc::new(trace)))
}

/// Takes the trace from the metadata of the request, else of the message, where no header has told one. What W3C Trace
/// Context does not know as a trace is as good as absent.
pub fn add_from_metadata(incoming: &mut IncomingMessage) {
    if incoming.trace.as_ref().is_some_and(|trace| trace.traceparent.is_some()) {
        return;
    }
    let metadata = [incoming.metadata.as_ref(), incoming.message.metadata.as_ref()];
    let mut told = metadata.into_iter().filter_map(Trace::in_metadata);
    let traceparent = told.find_map(|told| Traceparent::parse(&told.traceparent()?));
    if traceparent.is_some() {
        let known = incoming.trace.as_deref().cloned().unwrap_or_default();
        incoming.trace = Some(Arc::new(TraceContext { traceparent, ..known }));
    }
}

fn id(headers: &HeaderMap, name: HeaderName, shown: &'static str) -> Result<Option<String>, Error> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.any(|other| other != value) {
        return Err(Error::invalid_field(shown, "is there more than once, with different ids: send it once"));
    }
    match value.to_str() {
        Ok(id) if is_valid(id) => Ok(Some(id.to_owned())),
        _ => {
            let problem = format!("must be 1 to {ID_BYTES} visible ASCII characters, without spaces");
            Err(Error::invalid_field(shown, problem))
        }
    }
}

fn is_valid(id: &str) -> bool {
    (1..=ID_BYTES).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Tracers begin a trace of their own where it is there more than once, even if all are equal: it counts as malformed.
fn traceparent(headers: &HeaderMap) -> Option<Traceparent> {
    let mut values = headers.get_all(TRACEPARENT).iter();
    let value = values.next()?;
    if values.next().is_some() {
        return None;
    }
    Traceparent::parse(value.to_str().ok()?)
}
