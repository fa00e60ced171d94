//! The job `cancel`: a task of a remote agent has ended here without the remote's word, by force, by time or with its
//! process. The remote task is canceled, so that no work goes on that nothing waits for.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use switchboard_a2a::{TaskId, TaskState};
use switchboard_client::CallContext;
use switchboard_engine::clock::Clock;
use switchboard_engine::ids::TaskKey;
use switchboard_engine::store::StoreError;
use switchboard_engine::store::feed::JournalLine;
use switchboard_engine::store::hub::{ClaimedJob, HubStore, NewJob};
use switchboard_engine::{AgentName, Caller, Engine, Error};
use switchboard_host::redact;

use super::{JobKind, JobOutcome, JobSettings};
use crate::audit::{Act, Actor};
use crate::feed::segment;
use crate::journal_text::shortened;
use crate::projector::EndedTask;
use crate::remote::cancel::CancelError;
use crate::remote::{REMOTE_KEY, RemoteParts, Saved, saved_state};

/// The kind of these jobs.
pub const CANCEL_KIND: &str = "cancel";
/// A message that was perhaps sent, and is in no task of the agent by then, has not arrived.
const ARRIVES_WITHIN: Duration = Duration::from_secs(60);

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
    /// The remote task, once it was found: a log may be long, and a job is run many times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    remote: Option<TaskId>,
    /// The address of the agent that has it; absent in what earlier versions have saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    url: Option<String>,
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
    let body = CancelBody {
        agent: task.agent.to_string(),
        task: task.id.clone(),
        key: key.0,
        since: at.0,
        remote: None,
        url: None,
    };
    let body = Bytes::from(serde_json::to_vec(&body).ok()?);
    Some(NewJob { name: format!("cancel:{}", task.id), kind: CANCEL_KIND.to_owned(), run_at: at, body })
}

/// Runs jobs of this kind.
pub struct CancelJobs {
    pub engine: Engine,
    pub remotes: Arc<dyn RemoteDirectory>,
    pub store: Arc<dyn HubStore>,
    pub clock: Arc<dyn Clock>,
    pub settings: JobSettings,
}

impl JobKind for CancelJobs {
    fn run<'a>(&'a self, claimed: &'a ClaimedJob) -> BoxFuture<'a, JobOutcome> {
        self.cancel(claimed).boxed()
    }

    fn lane(&self, claimed: &ClaimedJob) -> Option<String> {
        serde_json::from_slice::<CancelBody>(&claimed.job.body).ok().map(|body| body.agent)
    }
}

/// What is known of the remote task that a job is about.
enum Known {
    Remote(TaskId),
    /// The message of a turn was perhaps sent; no task is known.
    Sent {
        turn: u64,
    },
    /// Nothing was sent, or there is no task.
    Nothing,
}

/// Why it is not known that a remote task has ended.
struct Problem {
    /// For all who see the task: without addresses, names of variables, and credentials.
    shown: String,
    /// For administrators.
    whole: String,
}

impl From<&str> for Problem {
    fn from(problem: &str) -> Self {
        Self { shown: problem.to_owned(), whole: problem.to_owned() }
    }
}

impl From<CancelError> for Problem {
    fn from(error: CancelError) -> Self {
        // What the agent has said may repeat the credentials that it was sent.
        Self { shown: error.caller_text(), whole: redact::text(&error.to_string()) }
    }
}

impl CancelJobs {
    async fn cancel(&self, claimed: &ClaimedJob) -> JobOutcome {
        let mut body: CancelBody = match serde_json::from_slice(&claimed.job.body) {
            Ok(body) => body,
            Err(error) => {
                tracing::error!(job = claimed.job.name, %error, "the body of a job cannot be read");
                return JobOutcome::Done;
            }
        };
        let known = match self.known(&mut body).await {
            Ok(known) => known,
            Err(error) => {
                tracing::warn!(task = %body.task, %error, "the log of an ended task cannot be read");
                return JobOutcome::Again(self.settings.first);
            }
        };
        if let Known::Nothing = known {
            return JobOutcome::Done;
        }
        let Some(parts) = self.remotes.remote(&AgentName::from(body.agent.as_str())) else {
            return self
                .again(claimed, &body, "the agent is not configured any more".into(), self.settings.give_up)
                .await;
        };
        // A task of the same id there would be somebody else's.
        if parts.is_elsewhere(body.url.as_deref()) {
            if let Known::Remote(remote) = known {
                body.remote = Some(remote);
            }
            return self.give_up(&body, "the agent is at another address now".into()).await;
        }
        let context = parts.call_context(Some(body.task.to_string()));
        let found = match known {
            Known::Remote(remote) => Ok(Some(remote)),
            Known::Sent { turn } => find(&parts, &context, &body.task, turn).await,
            Known::Nothing => Ok(None),
        };
        match found {
            Ok(remote) => body.remote = remote,
            Err(error) => return self.again(claimed, &body, error.into(), self.settings.give_up).await,
        }
        let Some(remote) = &body.remote else {
            let problem = "it is not known which task it is, or whether there is one";
            return self.again(claimed, &body, problem.into(), ARRIVES_WITHIN).await;
        };
        let problem = match parts.cancel_once(&context, &body.task, remote).await {
            Ok(true) => return JobOutcome::Done,
            Ok(false) => Problem::from("it has not ended yet"),
            Err(error) => Problem::from(error),
        };
        self.again(claimed, &body, problem, self.settings.give_up).await
    }

    /// What the log says of the remote task, and where it is.
    async fn known(&self, body: &mut CancelBody) -> Result<Known, Error> {
        if let Some(remote) = &body.remote {
            return Ok(Known::Remote(remote.clone()));
        }
        let (saved, _) = saved_state(&self.engine, &body.task, TaskKey(body.key)).await?;
        let remote = saved.as_ref().and_then(Saved::remote_task).cloned();
        body.url = saved.as_ref().and_then(Saved::url).map(str::to_owned);
        Ok(match (saved, remote) {
            (_, Some(remote)) => Known::Remote(remote),
            (Some(Saved::Sending(sending)), None) => Known::Sent { turn: sending.turn },
            _ => Known::Nothing,
        })
    }

    /// Due again after a while, or given up.
    async fn again(
        &self,
        claimed: &ClaimedJob,
        body: &CancelBody,
        problem: Problem,
        give_up_after: Duration,
    ) -> JobOutcome {
        let age = Duration::from_millis(u64::try_from(self.clock.now().0.saturating_sub(body.since)).unwrap_or(0));
        if age >= give_up_after {
            return self.give_up(body, problem).await;
        }
        // Attempts also count what was put off, so that the age decides as well.
        let wait = self.settings.wait(claimed.attempts).min(age.max(self.settings.first));
        match serde_json::to_vec(body) {
            Ok(changed) if changed != claimed.job.body => JobOutcome::Changed(wait, Bytes::from(changed)),
            _ => JobOutcome::Again(wait),
        }
    }

    /// The lines about a remote task that may be left running: one for all who see the task, and one for administrators,
    /// with the address at which it is.
    fn orphaned(&self, body: &CancelBody, problem: &Problem) -> Vec<JournalLine> {
        // What the agent has said may be of any length.
        let (shown, whole) = (shortened(&problem.shown), shortened(&problem.whole));
        let remote = body.remote.as_ref().map(|remote| shortened(remote.as_str()));
        let payload = json!({ "agent": body.agent, "remoteTaskId": remote, "problem": shown });
        let line = JournalLine {
            at: self.clock.now(),
            owner: None,
            task: Some(body.task.clone()),
            topic: format!("remote.orphaned.{}", segment(&body.agent)),
            payload: Bytes::from(payload.to_string()),
        };
        let url = body.url.as_deref().map(redact::text);
        let url = url.as_deref().map(shortened);
        let hub = Actor { caller: Caller::local(), name: None, request_id: None };
        let act = Act {
            name: "agents.orphaned",
            subject: body.agent.as_str(),
            agent: Some(body.agent.as_str()),
            task: Some(body.task.clone()),
            before: Value::Null,
            after: json!({ "remoteTaskId": remote, "url": url, "problem": whole }),
        };
        vec![line, hub.did(self.clock.now(), act)]
    }

    /// Says in the journal that a remote task may be left running.
    async fn give_up(&self, body: &CancelBody, problem: Problem) -> JobOutcome {
        match self.store.journal(self.orphaned(body, &problem)).await {
            Ok(_) => JobOutcome::Done,
            // It would be refused for ever, and the agent asked each time.
            Err(error @ StoreError::TooLarge { .. }) => {
                tracing::error!(task = %body.task, %error, "an orphaned remote task is not in the journal");
                JobOutcome::Done
            }
            Err(error) => {
                tracing::warn!(task = %body.task, %error, "an orphaned remote task cannot be journaled");
                JobOutcome::Again(self.settings.first)
            }
        }
    }
}

/// The live remote task that a message of ours has begun.
async fn find(
    parts: &RemoteParts,
    context: &CallContext,
    task: &TaskId,
    turn: u64,
) -> Result<Option<TaskId>, CancelError> {
    let permit = parts.breaker.allow()?;
    Ok(parts.recorded(&permit, task, parts.live_task_of(context, task, turn).await)?)
}
