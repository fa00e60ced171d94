//! The job `cancel`: a task of a remote agent has ended here without the remote's word, by force, by time or with its
//! process. The remote task is canceled, so that no work goes on that nothing waits for.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::json;
use switchboard_a2a::{TaskId, TaskState};
use switchboard_client::CallContext;
use switchboard_engine::clock::Clock;
use switchboard_engine::ids::TaskKey;
use switchboard_engine::store::feed::JournalLine;
use switchboard_engine::store::hub::{ClaimedJob, HubStore, NewJob};
use switchboard_engine::{AgentName, Engine};

use super::{JobKind, JobOutcome};
use crate::projector::EndedTask;
use crate::remote::{REMOTE_KEY, RemoteParts, Saved, saved_state};

/// The kind of these jobs.
pub const CANCEL_KIND: &str = "cancel";
/// The first wait; each next one is twice as long.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(3_600);
/// A message that was perhaps sent, and is in no task of the agent by then, has not arrived.
const ARRIVES_WITHIN: Duration = Duration::from_secs(60);
/// After so long the remote task is given up.
const GIVE_UP_AFTER: Duration = Duration::from_secs(24 * 3_600);

/// Finds remote agents by their names here, also those that are no longer served while a job names them.
pub trait RemoteDirectory: Send + Sync + 'static {
    fn remote(&self, name: &AgentName) -> Option<RemoteParts>;
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CancelBody {
    agent: String,
    task: TaskId,
    /// The store's name of the task, whose log says which remote task it is.
    key: i64,
    /// When the task ended here, in milliseconds.
    since: i64,
}

/// The job that is owed after the end of a task: none if the remote has said the end, or the task was completed here.
/// Whether anything was sent to a remote agent, the job finds out.
pub fn owed_cancel(ended: &EndedTask<'_>) -> Option<NewJob> {
    let EndedTask { task, key, end, .. } = *ended;
    let at = end.status.timestamp.filter(|_| ended.may_be_remote)?;
    let remote = end.metadata.as_ref().and_then(|metadata| metadata.get(REMOTE_KEY));
    let remote = remote.and_then(|remote| remote.read::<serde_json::Value>().ok());
    let is_told = remote.is_some_and(|remote| remote.get("state").is_some());
    let state = end.status.state;
    if is_told || !state.is_terminal() || state == TaskState::Completed {
        return None;
    }
    let body = CancelBody { agent: task.agent.to_string(), task: task.id.clone(), key: key.0, since: at.0 };
    let body = Bytes::from(serde_json::to_vec(&body).ok()?);
    Some(NewJob { name: format!("cancel:{}", task.id), kind: CANCEL_KIND.to_owned(), run_at: at, body })
}

/// Runs jobs of this kind.
pub struct CancelJobs {
    pub engine: Engine,
    pub remotes: Arc<dyn RemoteDirectory>,
    pub store: Arc<dyn HubStore>,
    pub clock: Arc<dyn Clock>,
}

impl JobKind for CancelJobs {
    fn run<'a>(&'a self, claimed: &'a ClaimedJob) -> BoxFuture<'a, JobOutcome> {
        self.cancel(claimed).boxed()
    }
}

impl CancelJobs {
    async fn cancel(&self, claimed: &ClaimedJob) -> JobOutcome {
        let body: CancelBody = match serde_json::from_slice(&claimed.job.body) {
            Ok(body) => body,
            Err(error) => {
                tracing::error!(job = claimed.job.name, %error, "the body of a job cannot be read");
                return JobOutcome::Done;
            }
        };
        let saved = match saved_state(&self.engine, &body.task, TaskKey(body.key)).await {
            Ok((saved, _)) => saved,
            Err(error) => {
                tracing::warn!(task = %body.task, %error, "the log of an ended task cannot be read");
                return JobOutcome::Again(FIRST_WAIT);
            }
        };
        // Nothing was sent, or there is no task.
        let Some(saved) = saved.filter(|saved| *saved != Saved::Replied) else { return JobOutcome::Done };
        let mut remote = saved.remote_task().cloned();
        let mut give_up_after = GIVE_UP_AFTER;
        let problem = match self.remotes.remote(&AgentName::from(body.agent.as_str())) {
            None => "the agent is not configured any more".to_owned(),
            Some(parts) => {
                let context = CallContext { parent_id: Some(body.task.to_string()), ..CallContext::default() };
                if let (None, Saved::Sending(sending)) = (&remote, &saved) {
                    remote = match parts.live_task_of(&context, &body.task, sending.turn).await {
                        Ok(found) => found,
                        Err(error) => return self.again(claimed, &body, None, &error.to_string(), GIVE_UP_AFTER).await,
                    };
                }
                match &remote {
                    None => {
                        give_up_after = ARRIVES_WITHIN;
                        "it is not known which task it is, or whether there is one".to_owned()
                    }
                    Some(remote) => match parts.cancel_once(&context, &body.task, remote).await {
                        Ok(true) => return JobOutcome::Done,
                        Ok(false) => "it has not ended yet".to_owned(),
                        Err(error) => error.to_string(),
                    },
                }
            }
        };
        self.again(claimed, &body, remote.as_ref(), &problem, give_up_after).await
    }

    /// Due again after a while, or given up.
    async fn again(
        &self,
        claimed: &ClaimedJob,
        body: &CancelBody,
        remote: Option<&TaskId>,
        problem: &str,
        give_up_after: Duration,
    ) -> JobOutcome {
        let age = self.clock.now().0.saturating_sub(body.since);
        if u128::try_from(age).is_ok_and(|age| age >= give_up_after.as_millis()) {
            return self.give_up(body, remote, problem).await;
        }
        JobOutcome::Again(FIRST_WAIT.saturating_mul(1 << claimed.attempts.saturating_sub(1).min(12)).min(LONGEST_WAIT))
    }

    /// Says in the journal that a remote task may be left running.
    async fn give_up(&self, body: &CancelBody, remote: Option<&TaskId>, problem: &str) -> JobOutcome {
        let payload = json!({ "agent": body.agent, "remoteTaskId": remote, "problem": problem });
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
        let agent: String = body.agent.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect();
        let line = JournalLine {
            at: self.clock.now(),
            owner: None,
            task: Some(body.task.clone()),
            topic: format!("remote.orphaned.{agent}"),
            payload: Bytes::from(payload.to_string()),
        };
        match self.store.journal(vec![line]).await {
            Ok(_) => JobOutcome::Done,
            Err(error) => {
                tracing::warn!(task = %body.task, %error, "an orphaned remote task cannot be journaled");
                JobOutcome::Again(FIRST_WAIT)
            }
        }
    }
}
