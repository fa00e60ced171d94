//! What a follower asks on the way, and what is made of the answers. A question owns all it needs: whoever waits for the
//! next update may stop waiting, and the question goes on.

use std::pin::Pin;
use std::time::Duration;

use switchboard_a2a::extension::IDEMPOTENCY;
use switchboard_a2a::{Operation, Request, SendResponse, StreamResponse, Task, TaskId};
use switchboard_egress::SendError;

use super::position::Position;
use super::{Followed, Origin};
use crate::client::OperationCall;
use crate::event_stream::EventStream;
use crate::{ClientError, Context};

/// A question under way.
pub(super) type PendingRequest = Pin<Box<dyn Future<Output = RequestResult> + Send>>;

type CallResult<T> = Result<T, ClientError>;

/// What a question has brought, and what it was asked for.
pub(super) enum RequestResult {
    /// The message was sent; this is its stream.
    Begun(CallResult<EventStream>),
    /// It cannot be sent once more.
    Unsafe(ClientError),
    /// The answer to a message as a whole.
    Answered(CallResult<SendResponse>),
    /// A subscription.
    Resumed(CallResult<EventStream>),
    /// How a task is that cannot be subscribed to, for which there may be a reason.
    Asked { now: CallResult<Task>, reason: Option<ClientError> },
    /// How a task is that is asked after again and again.
    Looked(CallResult<Task>),
    /// How a task is whose subscription was torn without a word.
    BrokeOff { why: String, now: CallResult<Task> },
    /// How a task is whose subscription began with an update.
    Compared { update: Box<StreamResponse>, id: Option<String>, now: CallResult<Task> },
    /// How a task is of which something was lost in front of an event.
    Missed { position: Position, event: Box<StreamResponse>, id: Option<String>, task: TaskId, now: CallResult<Task> },
    /// How a task is that is about to end.
    Confirmed { end: Box<StreamResponse>, tries: u32, now: CallResult<Task> },
}

impl Followed {
    pub(super) fn take(&mut self, brought: RequestResult) -> Result<(), ClientError> {
        match brought {
            RequestResult::Begun(opened) => self.on_send_opened(opened)?,
            RequestResult::Unsafe(error) => return Err(error),
            RequestResult::Answered(answer) => self.emit_response(answer?),
            RequestResult::Resumed(opened) => self.on_subscribed(opened)?,
            RequestResult::Asked { now, reason } => self.on_fetched_instead(now, reason)?,
            RequestResult::Looked(now) => self.on_polled(now)?,
            RequestResult::BrokeOff { why, now } => self.on_broken_confirmed(why, now)?,
            RequestResult::Compared { update, id, now } => self.on_compared(*update, id, now),
            RequestResult::Missed { position, event, id, task, now } => {
                self.on_gap_compared((position, *event, id), task, now)
            }
            RequestResult::Confirmed { end, tries, now } => self.on_confirmed(*end, tries, now),
        }
        Ok(())
    }

    /// Asks how the task is, after a while.
    pub(super) fn fetch_task(
        &mut self,
        task: TaskId,
        wait: Duration,
        brought: impl FnOnce(CallResult<Task>) -> RequestResult + Send + 'static,
    ) {
        let (client, context) = (self.client.clone(), self.context.clone());
        self.pending = Some(Box::pin(async move {
            pause(wait).await;
            brought(client.get(&context, &task, None).await)
        }));
    }

    /// Sends the message and opens the first connection.
    pub(super) fn begin(&mut self) {
        self.send_streaming(None);
    }

    /// The same once more, after a while, where that is safe.
    pub(super) fn resend_streaming(&mut self, wait: Duration) {
        self.send_streaming(Some(wait));
    }

    fn send_streaming(&mut self, again_after: Option<Duration>) {
        let Origin::Sent { request, key } = &self.origin else { return };
        let (client, context) = (self.client.clone(), self.context.clone());
        let (request, key) = (Request::Send((**request).clone()), key.clone());
        self.pending = Some(Box::pin(async move {
            if let Some(wait) = again_after {
                pause(wait).await;
                // Nobody knows what has become of the message, and sending it again might do it twice.
                if !client.declares(&context, IDEMPOTENCY).await {
                    return RequestResult::Unsafe(ClientError::Lost {
                        origin: client.shown(),
                        error: SendError::Broken,
                    });
                }
            }
            let call =
                OperationCall { key: Some(&key), ..OperationCall::new(Operation::SendStreamingMessage, request) };
            RequestResult::Begun(client.connect(&context, call).await)
        }));
    }

    /// Sends the message the other way and waits for all of the answer.
    pub(super) fn send_blocking(&mut self) {
        let Origin::Sent { request, key } = &self.origin else { return };
        let context = Context { idempotency_key: Some(key.clone()), ..self.context.clone() };
        let (client, request) = (self.client.clone(), (**request).clone());
        self.pending = Some(Box::pin(async move { RequestResult::Answered(client.send(&context, request).await) }));
    }

    /// Subscribes to a task that is known, after a while.
    pub(super) fn resume(&mut self, task: TaskId, wait: Duration) {
        let (client, context, last_id) = (self.client.clone(), self.context.clone(), self.last_id.clone());
        self.pending = Some(Box::pin(async move {
            pause(wait).await;
            let request = Request::Subscribe { id: task, tenant: None };
            let call = OperationCall {
                last_event_id: last_id.as_deref(),
                ..OperationCall::new(Operation::SubscribeToTask, request)
            };
            RequestResult::Resumed(client.connect(&context, call).await)
        }));
    }
}

/// A timer takes its time even for nothing.
async fn pause(wait: Duration) {
    if !wait.is_zero() {
        tokio::time::sleep(wait).await;
    }
}
