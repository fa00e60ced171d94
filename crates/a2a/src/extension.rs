//! The protocol extensions of this project, by their URIs on cards.

/// Resumption: a stream with `Last-Event-ID` continues exactly after that event; every card of a streaming agent names it.
///
/// The `id` of an event is `epoch.number`. A number is one more than the one before it on the stream; where it is not, a
/// field `after` in the same event names the number before it, so that the reader can tell skipped internal events from
/// lost ones.
pub const RESUMPTION: &str = "urn:switchboard:a2a:last-event-id:v1";

/// `Idempotency-Key` on messages: one with the same key is executed once, however often it arrives.
pub const IDEMPOTENCY: &str = "urn:switchboard:a2a:idempotency-key:v1";
