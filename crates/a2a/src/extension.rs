//! The protocol extensions that are known here, by their URIs on cards: one file for each of those with a payload.
//!
//! Those of proto-labs.ai are read from every carrier that peers have used for them, see [`Payload`], and written in the
//! newest form: with [`Emit::All`], and for v0.3 readers always, in the older form as well.

pub mod blast;
mod card_params;
pub mod confidence;
pub mod cost;
pub mod effect_domain;
pub mod hitl_mode;
mod members;
pub mod output_schema;
mod payload;
mod request_stamp;
pub mod tool_call;
pub mod trace;
pub mod worldstate_delta;

pub(crate) use payload::older_carriers;
pub use payload::{Emit, Payload};
pub use request_stamp::stamp_request;

/// Resumption: a stream with `Last-Event-ID` continues exactly after that event; every card of a streaming agent names it.
///
/// The `id` of an event is `epoch.number`. A number is one more than the one before it on the stream; where it is not, a
/// field `after` in the same event names the number before it, so that the reader can tell skipped internal events from
/// lost ones.
pub const RESUMPTION: &str = "urn:switchboard:a2a:last-event-id:v1";

/// `Idempotency-Key` on messages: one with the same key is executed once, however often it arrives.
pub const IDEMPOTENCY: &str = "urn:switchboard:a2a:idempotency-key:v1";

/// Whether an extension is understood here, or passed on as it is, so that agents which offer it are always told of it.
pub fn is_known(uri: &str) -> bool {
    const KNOWN: [&str; 10] = [
        RESUMPTION,
        IDEMPOTENCY,
        cost::Cost::URI,
        confidence::Confidence::URI,
        tool_call::ToolCall::URI,
        worldstate_delta::WorldstateDelta::URI,
        trace::URI,
        effect_domain::URI,
        hitl_mode::URI,
        blast::URI,
    ];
    KNOWN.contains(&uri)
}
