//! Deliveries to one endpoint, released together once it answers again.

use rusqlite::params;
use switchboard_a2a::Timestamp;

use super::session::Session;

/// Rows moved per commit, so that appends wait a few milliseconds at most; there may be any number of them.
pub(crate) const MOVED_AT_ONCE: usize = 512;

/// Takes the endpoint, the time, and how many. What is due already keeps its place, so that each call finds others.
pub(crate) const RELEASE: &str = "UPDATE delivery SET due_at = max(?2, not_before) WHERE key IN (SELECT delivery.key FROM delivery INDEXED BY \
     delivery_endpoint WHERE endpoint = ?1 AND state = 0 AND replay = 0 \
     AND due_at > ?2 AND due_at > not_before LIMIT ?3)";

impl Session<'_> {
    /// Makes some deliveries to an endpoint due now; says how many. Fewer than [`MOVED_AT_ONCE`] are all.
    pub(crate) fn release_endpoint(&mut self, endpoint: &str, now: Timestamp) -> rusqlite::Result<usize> {
        self.execute(RELEASE, params![endpoint, now.0, MOVED_AT_ONCE.cast_signed()])
    }
}
