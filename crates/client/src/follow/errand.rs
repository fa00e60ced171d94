//! What a follower asks on the way, and what is made of the answers. A question owns all it needs: whoever waits for the
//! next update may stop waiting, and the question goes on.

use std::pin::Pin;
use std::time::Duration;

use switchboard_a2a::extension::IDEMPOTENCY;
use switchboard_a2a::{Operation, Request, SendResponse, StreamResponse, Task, TaskId};
use switchboard_egress::SendError;

use super::position::Position;
use super::{Followed, Origin};
use crate::client::Call;
use crate::connection::Connection;
use crate::{ClientError, Context};

/// A question under way.
pub(super) type Errand = Pin<Box<dyn Future<Output = Brought> + Send>>;

type Answer<T> = Result<T, ClientError>;

/// What a question has brought, and what it was asked for.
pub(super) enum Brought {
    /// The message was sent; this is its stream.
    Begun(Answer<Connection>),
    /// It cannot be sent once more.
    Unsafe(ClientError),
    /// The answer to a message as a whole.
    Answered(Answer<SendResponse>),
    /// A subscription.
    Resumed(Answer<Connection>),
    /// How a task is that cannot be subscribed to, for which there may be a reason.
    Asked { now: Answer<Task>, reason: Option<ClientError> },
    /// How a task is that is asked after again and again.
    Looked(Answer<Task>),
    /// How a task is whose subscription was torn without a word.
    BrokeOff { why: String, now: Answer<Task> },
    /// How a task is whose subscription began with an update.
    Compared { update: Box<StreamResponse>, id: Option<String>, now: Answer<Task> },
    /// How a task is of which something was lost in front of an event.
    Missed { position: Position, event: Box<StreamResponse>, id: Option<String>, task: TaskId, now: Answer<Task> },
    /// How a task is that is about to end.
    Confirmed { end: Box<StreamResponse>, tries: u32, now: Answer<Task> },
}

impl Followed {
    pub(super) fn take(&mut self, brought: Brought) -> Result<(), ClientError> {
        match brought {
            Brought::Begun(opened) => self.has_begun(opened)?,
            Brought::Unsafe(error) => return Err(error),
            Brought::Answered(answer) => self.tell_answer(answer?),
            Brought::Resumed(opened) => self.has_resumed(opened)?,
            Brought::Asked { now, reason } => self.has_asked(now, reason)?,
            Brought::Looked(now) => self.has_looked(now)?,
            Brought::BrokeOff { why, now } => self.has_broken_off(why, now)?,
            Brought::Compared { update, id, now } => self.has_compared(*update, id, now),
            Brought::Missed { position, event, id, task, now } => self.has_missed((position, *event, id), task, now),
            Brought::Confirmed { end, tries, now } => self.is_confirmed(*end, tries, now),
        }
        Ok(())
    }

    /// Asks how the task is, after a while.
    pub(super) fn picture(
        &mut self,
        task: TaskId,
        wait: Duration,
        brought: impl FnOnce(Answer<Task>) -> Brought + Send + 'static,
    ) {
        let (client, context) = (self.client.clone(), self.context.clone());
        self.errand = Some(Box::pin(async move {
            pause(wait).await;
            brought(client.get(&context, &task, None).await)
        }));
    }

    /// Sends the message and opens the first connection.
    pub(super) fn begin(&mut self) {
        self.send_streaming(None);
    }

    /// The same once more, after a while, where that is safe.
    pub(super) fn begin_again(&mut self, wait: Duration) {
        self.send_streaming(Some(wait));
    }

    fn send_streaming(&mut self, again_after: Option<Duration>) {
        let Origin::Sent { request, key } = &self.origin else { return };
        let (client, context) = (self.client.clone(), self.context.clone());
        let (request, key) = (Request::Send((**request).clone()), key.clone());
        self.errand = Some(Box::pin(async move {
            if let Some(wait) = again_after {
                pause(wait).await;
                // Nobody knows what has become of the message, and sending it again might do it twice.
                if !client.declares(&context, IDEMPOTENCY).await {
                    return Brought::Unsafe(ClientError::Lost { origin: client.shown(), error: SendError::Broken });
                }
            }
            let call = Call { key: Some(&key), ..Call::new(Operation::SendStreamingMessage, request) };
            Brought::Begun(client.connect(&context, call).await)
        }));
    }

    /// Sends the message the other way and waits for all of the answer.
    pub(super) fn send_whole(&mut self) {
        let Origin::Sent { request, key } = &self.origin else { return };
        let context = Context { idempotency_key: Some(key.clone()), ..self.context.clone() };
        let (client, request) = (self.client.clone(), (**request).clone());
        self.errand = Some(Box::pin(async move { Brought::Answered(client.send(&context, request).await) }));
    }

    /// Subscribes to a task that is known, after a while.
    pub(super) fn resume(&mut self, task: TaskId, wait: Duration) {
        let (client, context, last_id) = (self.client.clone(), self.context.clone(), self.last_id.clone());
        self.errand = Some(Box::pin(async move {
            pause(wait).await;
            let request = Request::Subscribe { id: task, tenant: None };
            let call = Call { last_event_id: last_id.as_deref(), ..Call::new(Operation::SubscribeToTask, request) };
            Brought::Resumed(client.connect(&context, call).await)
        }));
    }
}

/// A timer takes its time even for nothing.
async fn pause(wait: Duration) {
    if !wait.is_zero() {
        tokio::time::sleep(wait).await;
    }
}
