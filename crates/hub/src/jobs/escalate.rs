//! The job `escalate`: the own time of a question is over that stays open then, and the journal says so.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use switchboard_a2a::{TaskId, TaskStatusUpdate};
use switchboard_engine::store::TaskIdentity;
use switchboard_engine::store::hub::{ClaimedJob, NewJob};
use switchboard_engine::{ExpiryAction, Review, Seq};

use super::{JobKind, JobOutcome};
use crate::hub::HubState;
use crate::inbox::{ItemId, tell_escalated};

/// The kind of these jobs.
pub(crate) const ESCALATE_KIND: &str = "escalate";
/// How soon a job is run again that could not read or write.
const SOON: Duration = Duration::from_secs(1);

/// The job that is owed for a question, if it escalates.
pub(crate) fn owed_escalation(task: &TaskIdentity, seq: Seq, question: &TaskStatusUpdate) -> Option<NewJob> {
    let review = Review::of_status(question).filter(|review| review.then == ExpiryAction::Escalate)?;
    let id = ItemId { task: TaskId::clone(&task.id), question: seq }.to_string();
    let name = format!("{ESCALATE_KIND}:{id}");
    Some(NewJob { name, kind: ESCALATE_KIND.to_owned(), run_at: review.expires_at?, body: Bytes::from(id) })
}

/// Runs these jobs.
pub(crate) struct EscalateJobs {
    pub(crate) hub: Arc<HubState>,
}

impl JobKind for EscalateJobs {
    fn run<'a>(&'a self, claimed: &'a ClaimedJob) -> BoxFuture<'a, JobOutcome> {
        async move {
            let id = std::str::from_utf8(&claimed.job.body).ok().and_then(ItemId::parse);
            let Some(id) = id else {
                tracing::error!(job = claimed.job.name, "a job of a question has no id of one");
                return JobOutcome::Done;
            };
            match tell_escalated(&self.hub, &id).await {
                Ok(()) => JobOutcome::Done,
                Err(error) => {
                    tracing::warn!(question = %id, %error, "that a question has escalated could not be told");
                    JobOutcome::Again(SOON)
                }
            }
        }
        .boxed()
    }
}
