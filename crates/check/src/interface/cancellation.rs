//! Cancels a task with a subscriber, and watches it for a while after that.

use std::time::Duration;

use serde_json::Value;
use switchboard_a2a::Operation;
use tokio::time::{Instant, sleep};

use super::stream::ReadUntil;
use super::{RecordedStream, TestedInterface};
use crate::reply::Reply;
use crate::wire;

/// How long a task that was running is watched: as long as the first message took, within these bounds.
const WATCH_TIME: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(4));
/// The same for an interrupted task.
const WATCH_TIME_INTERRUPTED: Duration = Duration::from_millis(300);
/// How long the subscriber may wait for the canceled status: some agents poll once a second.
const SUBSCRIBER_TIMEOUT: Duration = Duration::from_secs(3);
const POLL_INTERVAL: Duration = Duration::from_millis(200);

pub(crate) struct Cancellation {
    pub(crate) id: String,
    pub(crate) reply: Reply,
    /// The stream of a subscriber from before.
    pub(crate) recorded: Option<RecordedStream>,
    /// The task right after, and the reply in which it had changed.
    pub(crate) changed: Option<(Value, Reply)>,
}

impl Cancellation {
    pub(crate) fn is_canceled(&self, interface: &TestedInterface) -> bool {
        self.reply.result().is_some_and(|task| wire::state(interface.dialect(), task) == Some("canceled"))
    }
}

impl TestedInterface {
    /// The cancellation of a task of ours, if there is one that has not ended.
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
            let request = self.subscribe_request(id.as_str());
            stream = self.open_stream(Operation::SubscribeToTask, request, &[]).await.ok();
        }
        if let Some(stream) = &mut stream {
            stream.read(ReadUntil::First, self.agent.patience).await;
        }
        let reply = self.cancel(&id).await;
        let has_ended_now = reply.result().is_some_and(|task| self.has_ended(task));
        let work = (self.first().await.reply.took + POLL_INTERVAL).clamp(WATCH_TIME.0, WATCH_TIME.1);
        let changed = match has_ended_now {
            true => self.watch(&id, if is_interrupted { WATCH_TIME_INTERRUPTED } else { work }).await,
            false => None,
        };
        let mut recorded = None;
        if let Some(mut stream) = stream {
            stream.read(ReadUntil::End, SUBSCRIBER_TIMEOUT.min(self.agent.patience)).await;
            recorded = Some(stream.close());
        }
        Some(Cancellation { id, reply, recorded, changed })
    }

    async fn watch(&self, id: &str, time: Duration) -> Option<(Value, Reply)> {
        let until = Instant::now() + time;
        let before = self.get(id).await.result()?.clone();
        while Instant::now() < until {
            sleep(POLL_INTERVAL).await;
            let now = self.get(id).await;
            let is_same = |member: &str| now.result().is_none_or(|task| task[member] == before[member]);
            if !is_same("status") || !is_same("artifacts") {
                return Some((before, now));
            }
        }
        None
    }
}
