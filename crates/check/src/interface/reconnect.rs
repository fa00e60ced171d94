//! Drops the connection in the middle of a stream and reconnects: with two subscriptions, and once with
//! `Last-Event-ID`.

use std::time::Duration;

use http::{HeaderName, HeaderValue};
use switchboard_a2a::{Operation, Request};
use tokio::time::Instant;

use super::stream::ReadUntil;
use super::{RecordedStream, TestedInterface};
use crate::reply::Reply;

/// How long the resumed stream is read after the subscriptions are done.
const RESUMED_TIMEOUT: Duration = Duration::from_millis(200);

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

pub(crate) struct Reconnection {
    pub(crate) id: String,
    /// Before the connection was dropped.
    pub(crate) before: RecordedStream,
    /// The two subscriptions after that.
    pub(crate) subscribed: [RecordedStream; 2],
    /// The stream resumed after the last event; none where events have no ids.
    pub(crate) resumed: Option<RecordedStream>,
    /// The task, read after all streams.
    pub(crate) task: Reply,
}

impl TestedInterface {
    pub(crate) async fn reconnection(&self) -> Option<&Reconnection> {
        self.reconnection.get(|| self.disconnect_and_reconnect()).await.as_ref()
    }

    async fn disconnect_and_reconnect(&self) -> Option<Reconnection> {
        if !self.agent.has_capability("streaming") {
            return None;
        }
        let mut stream =
            self.open_stream(Operation::SendStreamingMessage, Request::Send(self.message(false)), &[]).await.ok()?;
        stream.read(ReadUntil::First, self.agent.patience).await;
        // This drops the connection.
        let before = stream.close();
        let id = before.task_id(self.dialect())?;
        let last = before.ids.iter().rev().find_map(|id| HeaderValue::from_str(id.as_deref()?).ok());
        let (subscribed, resumed) = self.reconnect(&id, last).await;
        let task = self.settled(&id).await;
        Some(Reconnection { id, before, subscribed, resumed, task })
    }

    /// Two subscriptions and the resumed stream, all at the same time.
    async fn reconnect(&self, id: &str, last: Option<HeaderValue>) -> ([RecordedStream; 2], Option<RecordedStream>) {
        let mut resuming = None;
        if let Some(last) = last {
            let request = self.subscribe_request(id);
            resuming = Some(self.open_stream(Operation::SubscribeToTask, request, &[(LAST_EVENT_ID, last)]).await);
        }
        let subscribed = async { tokio::join!(self.subscribe(id, ReadUntil::End), self.subscribe(id, ReadUntil::End)) };
        let mut subscribed = std::pin::pin!(subscribed);
        let ((one, other), resumed) = match resuming {
            None => (subscribed.await, None),
            Some(Err(recorded)) => (subscribed.await, Some(recorded)),
            Some(Ok(mut stream)) => {
                let pair = tokio::select! {
                    pair = &mut subscribed => pair,
                    () = stream.read(ReadUntil::End, self.agent.patience) => subscribed.await,
                };
                // When the subscriptions are done little more can come.
                stream.read(ReadUntil::End, RESUMED_TIMEOUT).await;
                (pair, Some(stream.close()))
            }
        };
        ([one, other], resumed)
    }

    pub(crate) async fn subscribe(&self, id: &str, until: ReadUntil) -> RecordedStream {
        let began = Instant::now();
        match self.open_stream(Operation::SubscribeToTask, self.subscribe_request(id), &[]).await {
            Ok(mut stream) => {
                let left = self.agent.patience.saturating_sub(began.elapsed());
                match until {
                    ReadUntil::First => stream.read(until, left).await,
                    ReadUntil::End => stream.read_task(id, left).await,
                }
                stream.close()
            }
            Err(recorded) => recorded,
        }
    }

    /// The task once it is terminal or interrupted, or as it is after twice the time the first message took.
    async fn settled(&self, id: &str) -> Reply {
        let usual = self.first().await.reply.took;
        let until = Instant::now() + (usual * 2 + Duration::from_secs(1)).min(self.agent.patience);
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
