//! The requests a task stream makes on its way, one at a time. A pending request owns all it needs and is kept in the
//! stream, so that `next` can be cancelled, as in a `select!`, and continues where it was.

use std::pin::Pin;
use std::time::Duration;

use switchboard_a2a::extension::IDEMPOTENCY;
use switchboard_a2a::{Operation, Request, Task, TaskId};
use switchboard_egress::SendError;

use super::{Origin, TaskStream};
use crate::client::OperationCall;
use crate::{CallContext, ClientError};

/// A request under way, which ends with what to do with its response.
pub(super) type PendingRequest = Pin<Box<dyn Future<Output = Continuation> + Send>>;
type Continuation = Box<dyn FnOnce(&mut TaskStream) -> Result<(), ClientError> + Send>;

impl TaskStream {
    /// Fetches the task after a wait.
    pub(super) fn fetch_task(
        &mut self,
        task: TaskId,
        wait: Duration,
        then: impl FnOnce(&mut Self, Result<Task, ClientError>) -> Result<(), ClientError> + Send + 'static,
    ) {
        let (client, context) = (self.client.clone(), self.context.clone());
        self.pending = Some(Box::pin(async move {
            pause(wait).await;
            let now = client.get(&context, &task, None).await;
            Box::new(move |stream: &mut Self| then(stream, now)) as Continuation
        }));
    }

    /// Sends the message and opens its stream; with a wait, a second time and only where that is safe.
    pub(super) fn send_streaming(&mut self, again_after: Option<Duration>) {
        let Origin::Sent { request, key } = &self.origin else { return };
        let (client, context) = (self.client.clone(), self.context.clone());
        let (request, key) = (Request::Send((**request).clone()), key.clone());
        self.pending = Some(Box::pin(async move {
            if let Some(wait) = again_after {
                pause(wait).await;
                // The agent may have acted on the message, and would do so twice.
                if !client.declares(&context, IDEMPOTENCY).await {
                    let lost = ClientError::Lost { origin: client.redacted_url(), error: SendError::Broken };
                    return Box::new(|_: &mut Self| Err(lost)) as Continuation;
                }
            }
            let call =
                OperationCall { key: Some(&key), ..OperationCall::new(Operation::SendStreamingMessage, request) };
            let opened = client.connect(&context, call).await;
            Box::new(|stream: &mut Self| stream.on_send_opened(opened)) as Continuation
        }));
    }

    /// Sends the message without streaming.
    pub(super) fn send_blocking(&mut self) {
        let Origin::Sent { request, key } = &self.origin else { return };
        let context = CallContext { idempotency_key: Some(key.clone()), ..self.context.clone() };
        let (client, request) = (self.client.clone(), (**request).clone());
        self.pending = Some(Box::pin(async move {
            let response = client.send(&context, request).await;
            Box::new(|stream: &mut Self| response.map(|response| stream.emit_response(response))) as Continuation
        }));
    }

    /// Subscribes to the task after a wait, from the last event id if there is one.
    pub(super) fn subscribe(&mut self, task: TaskId, wait: Duration) {
        let (client, context, last_id) = (self.client.clone(), self.context.clone(), self.last_id.clone());
        self.pending = Some(Box::pin(async move {
            pause(wait).await;
            let request = Request::Subscribe { id: task, tenant: None };
            let call = OperationCall::new(Operation::SubscribeToTask, request);
            let call = OperationCall { last_event_id: last_id.as_deref(), ..call };
            let opened = client.connect(&context, call).await;
            Box::new(|stream: &mut Self| stream.on_subscribed(opened)) as Continuation
        }));
    }
}

/// A timer takes at least one tick, even for no time.
async fn pause(wait: Duration) {
    if !wait.is_zero() {
        tokio::time::sleep(wait).await;
    }
}
