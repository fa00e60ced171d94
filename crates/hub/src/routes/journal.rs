//! What happens to routes, as lines of the journal: `hub.route.CHANGE.NAME`. They name their route, which never acts on them.

use bytes::Bytes;
use serde_json::{Value, json};
use switchboard_a2a::Timestamp;
use switchboard_engine::store::feed::JournalLine;
use switchboard_host::redact;

use super::Routes;

/// The member of a payload that names a route.
pub(super) const ROUTE: &str = "route";

/// A line about a route.
pub(super) fn line(at: Timestamp, change: &str, route: &str, more: Value) -> JournalLine {
    let mut payload = more;
    if !payload.is_object() {
        payload = json!({});
    }
    redact::json(&mut payload);
    payload[ROUTE] = route.into();
    JournalLine {
        at,
        owner: None,
        task: None,
        topic: format!("hub.route.{change}.{route}"),
        payload: Bytes::from(payload.to_string()),
    }
}

impl Routes {
    /// Writes lines. What they tell is so all the same if they cannot be written.
    pub(super) async fn tell(&self, lines: Vec<JournalLine>) {
        if lines.is_empty() {
            return;
        }
        if let Err(error) = self.parts.store.journal(lines).await {
            tracing::warn!(%error, "what happened to routes could not be written to the journal");
        }
    }
}
