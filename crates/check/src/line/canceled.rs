//! A task that is canceled while somebody listens to it, and looked at for a while after that.

use std::time::Duration;

use serde_json::Value;
use switchboard_a2a::{Operation, Request, TaskId};
use tokio::time::{Instant, sleep};

use super::hear::Until;
use super::{Heard, Line};
use crate::answer::Reply;
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
pub(crate) struct Canceled {
    pub(crate) id: String,
    /// The answer to canceling.
    pub(crate) reply: Reply,
    /// What somebody heard who had subscribed before.
    pub(crate) heard: Option<Heard>,
    /// The task as it was read right after, and when something had changed.
    pub(crate) changed: Option<(Value, Reply)>,
}

impl Canceled {
    /// Whether the task was canceled at once.
    pub(crate) fn is_done(&self, line: &Line) -> bool {
        self.reply.result().is_some_and(|task| wire::state(line.dialect(), task) == Some("canceled"))
    }
}

impl Line {
    /// Cancels a task of ours that has not ended, if there is one.
    pub(crate) async fn canceled(&self) -> Option<&Canceled> {
        self.canceled.get(|| self.cancel_and_watch()).await.as_ref()
    }

    async fn cancel_and_watch(&self) -> Option<Canceled> {
        let first = self.first_task().await.filter(|task| !self.has_ended(task));
        let (id, is_paused) = match first {
            Some(task) => (task["id"].as_str()?.to_owned(), wire::is_paused(self.dialect(), task)),
            None => (self.open_id().await?, false),
        };
        let mut listening = None;
        if self.is_v1() && self.subject.can("streaming") {
            let request = Request::Subscribe { id: TaskId::from(id.as_str()), tenant: self.tenant() };
            listening = self.begin(Operation::SubscribeToTask, request, &[]).await.ok();
        }
        if let Some(listening) = &mut listening {
            listening.hear(Until::First, self.subject.patience).await;
        }
        let reply = self.cancel(&id).await;
        let is_over = reply.result().is_some_and(|task| self.has_ended(task));
        let work = (self.first().await.reply.took + STEP).clamp(WATCHED.0, WATCHED.1);
        let changed = match is_over {
            true => self.watch(&id, if is_paused { WATCHED_PAUSED } else { work }).await,
            false => None,
        };
        let mut heard = None;
        if let Some(mut listening) = listening {
            listening.hear(Until::End, TOLD.min(self.subject.patience)).await;
            heard = Some(listening.leave());
        }
        Some(Canceled { id, reply, heard, changed })
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
