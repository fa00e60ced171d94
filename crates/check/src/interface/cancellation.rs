//! A task that is canceled while somebody listens to it, and looked at for a while after that.

use std::time::Duration;

use serde_json::Value;
use switchboard_a2a::{Operation, Request, TaskId};
use tokio::time::{Instant, sleep};

use super::stream::ReadUntil;
use super::{RecordedStream, TestedInterface};
use crate::reply::Reply;
use crate::wire;

/// How long nothing may change of a task that was at work: at least this, and as long as the work took before, but never
/// longer than the second.
const WATCHED: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(4));
/// The same for one that waited for its caller.
const WATCHED_PAUSED: Duration = Duration::from_millis(300);
/// How long whoever listens may have to wait after that to be told: some agents look for news once a second.
const TOLD: Duration = Duration::from_secs(3);
/// How often it is looked at.
const STEP: Duration = Duration::from_millis(200);

/// What came of it.
pub(crate) struct Cancellation {
    pub(crate) id: String,
    /// The answer to canceling.
    pub(crate) reply: Reply,
    /// What somebody heard who had subscribed before.
    pub(crate) recorded: Option<RecordedStream>,
    /// The task as it was read right after, and when something had changed.
    pub(crate) changed: Option<(Value, Reply)>,
}

impl Cancellation {
    /// Whether the task was canceled at once.
    pub(crate) fn is_canceled(&self, interface: &TestedInterface) -> bool {
        self.reply.result().is_some_and(|task| wire::state(interface.dialect(), task) == Some("canceled"))
    }
}

impl TestedInterface {
    /// Cancels a task of ours that has not ended, if there is one.
    pub(crate) async fn canceled(&self) -> Option<&Cancellation> {
        self.canceled.get(|| self.cancel_and_watch()).await.as_ref()
    }

    async fn cancel_and_watch(&self) -> Option<Cancellation> {
        let first = self.first_task().await.filter(|task| !self.has_ended(task));
        let (id, is_interrupted) = match first {
            Some(task) => (task["id"].as_str()?.to_owned(), wire::is_interrupted(self.dialect(), task)),
            None => (self.non_blocking_id().await?, false),
        };
        let mut stream = None;
        if self.is_v1() && self.agent.has_capability("streaming") {
            let request = Request::Subscribe { id: TaskId::from(id.as_str()), tenant: self.tenant() };
            stream = self.open_stream(Operation::SubscribeToTask, request, &[]).await.ok();
        }
        if let Some(stream) = &mut stream {
            stream.read(ReadUntil::First, self.agent.patience).await;
        }
        let reply = self.cancel(&id).await;
        let has_ended_now = reply.result().is_some_and(|task| self.has_ended(task));
        let work = (self.first().await.reply.took + STEP).clamp(WATCHED.0, WATCHED.1);
        let changed = match has_ended_now {
            true => self.watch(&id, if is_interrupted { WATCHED_PAUSED } else { work }).await,
            false => None,
        };
        let mut recorded = None;
        if let Some(mut stream) = stream {
            stream.read(ReadUntil::End, TOLD.min(self.agent.patience)).await;
            recorded = Some(stream.close());
        }
        Some(Cancellation { id, reply, recorded, changed })
    }

    /// The first change of a task, if one comes.
    async fn watch(&self, id: &str, time: Duration) -> Option<(Value, Reply)> {
        let until = Instant::now() + time;
        let before = self.get(id).await.result()?.clone();
        while Instant::now() < until {
            sleep(STEP).await;
            let now = self.get(id).await;
            let is_same = |member: &str| now.result().is_none_or(|task| task[member] == before[member]);
            if !is_same("status") || !is_same("artifacts") {
                return Some((before, now));
            }
        }
        None
    }
}
