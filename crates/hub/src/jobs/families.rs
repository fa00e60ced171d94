//! The jobs `settle-parent` and `cancel-children`, between a task and those that it has called. They say which task they
//! are about and no more: what is to be done follows from how the tasks stand when the job is run.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use switchboard_a2a::Timestamp;
use switchboard_engine::ids::TaskKey;
use switchboard_engine::store::hub::{ClaimedJob, NewJob};
use switchboard_engine::store::{Phase, Store, TaskRow};
use switchboard_engine::{Engine, Error};

use super::{JobKind, JobOutcome, JobSettings};
use crate::remote::waiting_task;
use crate::tasks::channel_plan::CHANNEL;
use crate::tasks::fanout_plan::FANOUT;

/// A child of a parent that waits has gone on.
pub(crate) const PARENT_KIND: &str = "settle-parent";
/// A task has ended before its children.
pub(crate) const CHILDREN_KIND: &str = "cancel-children";

#[derive(Serialize, Deserialize)]
struct FamilyBody {
    /// The store's name of the parent.
    parent: i64,
}

/// A job about a parent and its children.
pub(crate) fn family_job(kind: &str, parent: TaskKey, now: Timestamp) -> NewJob {
    let body = serde_json::to_vec(&FamilyBody { parent: parent.0 }).unwrap_or_default();
    NewJob { name: format!("{kind}:{}", parent.0), kind: kind.to_owned(), run_at: now, body: Bytes::from(body) }
}

/// Lets fan-outs and channels go on whose open question is not what their children wait for any more.
pub(crate) struct SettleParents {
    pub(crate) engine: Engine,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) settings: JobSettings,
}

/// Cancels what tasks have left behind that have ended.
pub(crate) struct CancelChildren {
    pub(crate) engine: Engine,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) settings: JobSettings,
}

impl JobKind for SettleParents {
    fn run<'a>(&'a self, claimed: &'a ClaimedJob) -> BoxFuture<'a, JobOutcome> {
        async move { outcome(&self.settings, claimed, self.settle(claimed).await) }.boxed()
    }
}

impl SettleParents {
    /// Whether it is done. Only fan-outs and channels wait for children with a question of their own.
    async fn settle(&self, claimed: &ClaimedJob) -> Result<bool, Error> {
        let Some(parent) = parent(&*self.store, claimed).await? else { return Ok(true) };
        if ![FANOUT, CHANNEL].contains(&parent.task.agent.as_str()) {
            return Ok(true);
        }
        let Some(waiting) = waiting_task(&*self.store, &parent.task.id).await? else { return Ok(true) };
        match self.engine.settled(&parent.task.id, waiting.question).await {
            // Something else has ended the wait, or there is nothing to end.
            Ok(()) | Err(Error::QuestionClosed { .. } | Error::TaskNotFound(_)) => Ok(true),
            Err(error) => Err(error),
        }
    }
}

impl JobKind for CancelChildren {
    fn run<'a>(&'a self, claimed: &'a ClaimedJob) -> BoxFuture<'a, JobOutcome> {
        async move { outcome(&self.settings, claimed, self.cancel(claimed).await) }.boxed()
    }
}

impl CancelChildren {
    /// Whether none is left. A child may take its time to stop, and is looked for again.
    async fn cancel(&self, claimed: &ClaimedJob) -> Result<bool, Error> {
        match parent(&*self.store, claimed).await?.filter(|parent| parent.state.phase == Phase::Done) {
            Some(parent) => Ok(!self.engine.cancel_children_of(&parent.task.id).await?),
            None => Ok(true),
        }
    }
}

async fn parent(store: &dyn Store, claimed: &ClaimedJob) -> Result<Option<TaskRow>, Error> {
    let Ok(FamilyBody { parent }) = serde_json::from_slice(&claimed.job.body) else {
        tracing::error!(job = claimed.job.name, "the body of a job cannot be read");
        return Ok(None);
    };
    Ok(store.ancestors(TaskKey(parent), 1).await?.into_iter().next())
}

fn outcome(settings: &JobSettings, claimed: &ClaimedJob, is_done: Result<bool, Error>) -> JobOutcome {
    match is_done {
        Ok(true) => return JobOutcome::Done,
        Ok(false) => {}
        Err(error) => tracing::warn!(job = claimed.job.name, %error, "a job has failed, and is run again"),
    }
    JobOutcome::Again(settings.wait(claimed.attempts))
}
