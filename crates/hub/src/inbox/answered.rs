//! Answers in the log, for the metrics: how questions were decided, which way, and how long they have waited.

use std::time::Duration;

use switchboard_a2a::TaskState;
use switchboard_engine::Seq;
use switchboard_engine::event::Event;
use switchboard_engine::ids::TaskKey;
use switchboard_engine::store::{EventRow, Store, StoreError};

use super::question::STEPS;
use super::{Question, verdict_name};
use crate::metric_definitions as metric;

/// How a line of a message begins.
const MESSAGE: &[u8] = br#"{"received""#;

/// A question that was decided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnsweredQuestion {
    decision: &'static str,
    via: &'static str,
    waited: Option<Duration>,
}

impl AnsweredQuestion {
    /// The decision that a row of a task's log begins with; nothing if it begins otherwise. An answer is stored with the
    /// status that goes on, any other message alone.
    pub(crate) async fn of(store: &dyn Store, key: TaskKey, row: &EventRow) -> Result<Option<Self>, StoreError> {
        if row.first_seq == Seq(1) || !row.events.starts_with(MESSAGE) {
            return Ok(None);
        }
        let mut lines = row.lines().map(|(_, line)| Event::decode(line));
        let Some(Ok(Event::Received(answer))) = lines.next() else { return Ok(None) };
        let goes_on = match lines.next() {
            Some(Ok(Event::StatusUpdate(update))) => update.status.state == TaskState::Working,
            _ => false,
        };
        let (decision, via) = match &answer.decision {
            Some(decision) if answer.by.is_some() => (verdict_name(decision.verdict), "api"),
            Some(decision) => (verdict_name(decision.verdict), "time"),
            None if goes_on => ("answer", "a2a"),
            None => return Ok(None),
        };
        let question = Question::answered_by(store, key, row.first_seq, STEPS).await?;
        let waited = question.map(|question| answer.at.0.saturating_sub(question.asked_at().0));
        let waited = waited.and_then(|waited| u64::try_from(waited).ok()).map(Duration::from_millis);
        Ok(Some(Self { decision, via, waited }))
    }

    pub(crate) fn count(&self) {
        metrics::counter!(metric::INBOX_DECISIONS, "decision" => self.decision, "via" => self.via).increment(1);
        if let Some(waited) = self.waited {
            metrics::histogram!(metric::INBOX_WAIT).record(waited.as_secs_f64());
        }
    }
}
