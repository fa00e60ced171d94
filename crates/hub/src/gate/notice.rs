//! The notice that a skill begins whose mode is `notification`: a line of the journal, written before the agent starts.

use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use switchboard_engine::store::StoreError;
use switchboard_engine::store::feed::{JournalLine, topic_segment};
use switchboard_engine::{AgentError, Stopped, TaskHandle};

use super::Gate;
use super::policies::Wanted;
use crate::journal_text::shortened;

/// How long a notice waits that could not be written.
const RETRY: Duration = Duration::from_secs(1);

impl Gate {
    /// Writes it, after the task that it is about.
    pub(super) async fn tell(&self, wanted: &Wanted<'_>, task: &TaskHandle) -> Result<(), AgentError> {
        task.commit().await?;
        let payload = json!({
            "agent": task.agent().as_str(),
            "skill": wanted.skill.as_deref().map(shortened),
            "mode": wanted.review.mode.name(),
            "radius": wanted.review.radius.map(|radius| radius.name()),
        });
        let line = JournalLine {
            at: self.clock.now(),
            owner: Some(task.caller().clone()),
            task: Some(task.id().clone()),
            topic: format!("inbox.notice.{}", topic_segment(task.agent().as_str())),
            payload: Bytes::from(payload.to_string()),
        };
        loop {
            match self.store.journal(vec![line.clone()]).await {
                Ok(_) => return Ok(()),
                Err(error @ (StoreError::TooLarge { .. } | StoreError::Closed)) => {
                    return Err(AgentError::new(format!("the notice could not be written: {error}")));
                }
                Err(error) => {
                    tracing::warn!(task = %task.id(), %error, "the notice of a skill cannot be written for now")
                }
            }
            tokio::select! {
                () = self.clock.sleep(RETRY) => {}
                () = task.canceled() => return Err(Stopped::Canceled.into()),
            }
        }
    }
}
