//! What happens to ceremonies and their runs, as lines of the journal: `ceremony.ID.fired`, `.skipped` and `.completed`, which
//! belong to the owner, and `hub.ceremony.CHANGE.ID`.

use bytes::Bytes;
use serde_json::{Value, json};
use switchboard_a2a::{TaskId, Timestamp};
use switchboard_engine::store::feed::{JournalLine, topic_segment};
use switchboard_host::redact;

use super::due::Passed;
use super::{Ceremonies, Ceremony};
use crate::journal_text::shortened;

/// A line about a run.
pub(super) fn run_line(
    at: Timestamp,
    ceremony: &Ceremony,
    event: &str,
    task: Option<&TaskId>,
    more: Value,
) -> JournalLine {
    let mut payload = more;
    redact::json(&mut payload);
    payload["ceremony"] = json!(ceremony.definition.id);
    payload["name"] = shortened(ceremony.definition.title()).into();
    if let Some(task) = task {
        payload["taskId"] = json!(task);
    }
    JournalLine {
        at,
        owner: Some(ceremony.owner.clone()),
        task: task.cloned(),
        topic: format!("ceremony.{}.{event}", topic_segment(&ceremony.definition.id)),
        payload: Bytes::from(payload.to_string()),
    }
}

/// The line about times without a run.
pub(super) fn skipped(
    at: Timestamp,
    ceremony: &Ceremony,
    times: Passed,
    reason: &str,
    problem: Option<&str>,
) -> JournalLine {
    let mut payload = json!({ "scheduledAt": times.first, "reason": reason });
    if times.last > times.first {
        payload["until"] = json!(times.last);
    }
    if let Some(problem) = problem {
        payload["problem"] = shortened(problem).into();
    }
    run_line(at, ceremony, "skipped", None, payload)
}

/// A line about a definition.
pub(super) fn change_line(at: Timestamp, change: &str, id: &str) -> JournalLine {
    JournalLine {
        at,
        owner: None,
        task: None,
        topic: format!("hub.ceremony.{change}.{}", topic_segment(id)),
        payload: Bytes::from(json!({ "ceremony": id }).to_string()),
    }
}

impl Ceremonies {
    /// Writes lines. What they tell is so all the same if they cannot be written.
    pub(crate) async fn tell(&self, lines: Vec<JournalLine>) {
        if lines.is_empty() {
            return;
        }
        if let Err(error) = self.parts.store.journal(lines).await {
            tracing::warn!(%error, "what happened to ceremonies could not be written to the journal");
        }
    }
}
