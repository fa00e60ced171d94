//! A task whose caller goes away in the middle of the stream, and who comes back for it: twice as a subscriber, and once
//! with the id of the event that was heard last.

use std::time::Duration;

use http::{HeaderName, HeaderValue};
use switchboard_a2a::{Operation, Request, TaskId};
use tokio::time::Instant;

use super::hear::Until;
use super::{Heard, Line};
use crate::answer::Reply;

/// How long whoever goes on is waited for when the subscribers are done.
const AFTERWARDS: Duration = Duration::from_millis(200);

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// What came of it.
pub(crate) struct Left {
    pub(crate) id: String,
    /// What was heard before the connection was dropped.
    pub(crate) before: Heard,
    /// What two subscribers heard after that.
    pub(crate) subscribed: [Heard; 2],
    /// What somebody heard who asked to go on after the last event; nothing where events have no ids.
    pub(crate) resumed: Option<Heard>,
    /// The task, read when all of them had heard enough.
    pub(crate) task: Reply,
}

impl Line {
    /// Begins a task and leaves, if the agent streams.
    pub(crate) async fn left(&self) -> Option<&Left> {
        self.left.get(|| self.leave_and_return()).await.as_ref()
    }

    async fn leave_and_return(&self) -> Option<Left> {
        if !self.subject.can("streaming") {
            return None;
        }
        let mut listening =
            self.begin(Operation::SendStreamingMessage, Request::Send(self.message(false)), &[]).await.ok()?;
        listening.hear(Until::First, self.subject.patience).await;
        // The connection ends here.
        let before = listening.leave();
        let id = before.task_id(self.dialect())?;
        let last = before.ids.iter().rev().find_map(|id| HeaderValue::from_str(id.as_deref()?).ok());
        let (subscribed, resumed) = self.come_back(&id, last).await;
        let task = self.settled(&id).await;
        Some(Left { id, before, subscribed, resumed, task })
    }

    /// Two subscribers, and somebody who goes on after the last event, all at the same time.
    async fn come_back(&self, id: &str, last: Option<HeaderValue>) -> ([Heard; 2], Option<Heard>) {
        let mut resuming = None;
        if let Some(last) = last {
            let request = Request::Subscribe { id: TaskId::from(id), tenant: self.tenant() };
            resuming = Some(self.begin(Operation::SubscribeToTask, request, &[(LAST_EVENT_ID, last)]).await);
        }
        let subscribed = async { tokio::join!(self.subscribe(id, Until::End), self.subscribe(id, Until::End)) };
        let mut subscribed = std::pin::pin!(subscribed);
        let ((one, other), resumed) = match resuming {
            None => (subscribed.await, None),
            Some(Err(heard)) => (subscribed.await, Some(heard)),
            Some(Ok(mut listening)) => {
                let pair = tokio::select! {
                    pair = &mut subscribed => pair,
                    () = listening.hear(Until::End, self.subject.patience) => subscribed.await,
                };
                // Where the others have heard enough there is not much more to come.
                listening.hear(Until::End, AFTERWARDS).await;
                (pair, Some(listening.leave()))
            }
        };
        ([one, other], resumed)
    }

    /// Subscribes to a task and listens.
    pub(crate) async fn subscribe(&self, id: &str, until: Until) -> Heard {
        let request = Request::Subscribe { id: TaskId::from(id), tenant: self.tenant() };
        let began = Instant::now();
        match self.begin(Operation::SubscribeToTask, request, &[]).await {
            Ok(mut listening) => {
                let left = self.subject.patience.saturating_sub(began.elapsed());
                match until {
                    Until::First => listening.hear(until, left).await,
                    Until::End => listening.hear_task(id, left).await,
                }
                listening.leave()
            }
            Err(heard) => heard,
        }
    }

    /// The task once it has ended or asks something, or as it is when that takes twice as long as it took before.
    async fn settled(&self, id: &str) -> Reply {
        let usual = self.first().await.reply.took;
        let until = Instant::now() + (usual * 2 + Duration::from_secs(1)).min(self.subject.patience);
        loop {
            let reply = self.get(id).await;
            let is_settled = reply.result().is_none_or(|task| self.is_settled(task));
            if is_settled || Instant::now() >= until {
                return reply;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}
