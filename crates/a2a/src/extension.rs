//! What this project adds to the protocol, by the names that cards have for it.

/// `Last-Event-ID` on streams goes on exactly after that event; every card of a streaming agent names it.
///
/// The `id` of an event is `epoch.number`. A number is one more than the one before it on the stream; where it is not, a
/// field `after` in the same event names the number before it, so that whoever reads can tell what is told nobody from
/// what was lost.
pub const RESUMPTION: &str = "urn:switchboard:a2a:last-event-id:v1";

/// `Idempotency-Key` on messages: however often one with the same key arrives, it is acted on once.
pub const IDEMPOTENCY: &str = "urn:switchboard:a2a:idempotency-key:v1";
