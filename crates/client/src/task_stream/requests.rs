//! The calls a task stream makes on its way, one at a time. A call under way owns all it needs and is kept in the
//! stream, so that `next` can be cancelled, as in a `select!`, and continues where it was.

use std::pin::Pin;
use std::time::Duration;

use switchboard_a2a::extension::IDEMPOTENCY;
use switchboard_a2a::{Operation, Request};
use switchboard_egress::SendError;
use tokio::time::Instant;

use super::TaskStream;
use super::state::{Answer, Call, Origin};
use crate::client::OperationCall;
use crate::event_stream::EventStream;
use crate::{CallContext, ClientError};

/// The newest messages of a task that is read. Some agents give none unless they are asked for them.
const HISTORY: u32 = 1_000;

/// The call a stream makes.
pub(super) enum PendingCall {
    /// It is made at this time, or as soon as the stream is to look.
    Waiting(Instant),
    Running(RunningCall),
}

/// A call under way, which ends with its answer and the connection it has opened.
type RunningCall = Pin<Box<dyn Future<Output = (Answer, Option<EventStream>)> + Send>>;

impl Call {
    fn wait(&self) -> Duration {
        match self {
            Self::SendStreaming { again_after } => again_after.unwrap_or_default(),
            Self::SendBlocking => Duration::ZERO,
            Self::Subscribe { wait, .. } | Self::Fetch { wait, .. } => *wait,
        }
    }
}

impl TaskStream {
    /// The call of the state, from its wait on.
    pub(super) fn begin(&self, call: &Call) -> PendingCall {
        // A timer takes at least one tick, even for no time.
        match Instant::now().checked_add(call.wait()).filter(|_| !call.wait().is_zero()) {
            Some(at) => PendingCall::Waiting(at),
            None => PendingCall::Running(self.run(call)),
        }
    }

    pub(super) fn run(&self, call: &Call) -> RunningCall {
        match call {
            Call::SendStreaming { again_after } => self.send_streaming(again_after.is_some()),
            Call::SendBlocking => self.send_blocking(),
            Call::Subscribe { task, .. } => {
                let request = Request::Subscribe { id: task.clone(), tenant: None };
                let last_id = self.machine.cursor.last_id.clone();
                let (client, context) = (self.client.clone(), self.context.clone());
                Box::pin(async move {
                    let call = OperationCall::new(Operation::SubscribeToTask, request);
                    let call = OperationCall { last_event_id: last_id.as_deref(), ..call };
                    opened(client.connect(&context, call).await)
                })
            }
            Call::Fetch { task, .. } => {
                let (client, context, task) = (self.client.clone(), self.context.clone(), task.clone());
                Box::pin(async move { (Answer::Fetched(client.get(&context, &task, Some(HISTORY)).await), None) })
            }
        }
    }

    fn send_streaming(&self, is_repeated: bool) -> RunningCall {
        let Origin::Sent { request: Some(request), key } = &self.machine.origin else {
            return self.nothing_to_send();
        };
        let (client, context) = (self.client.clone(), self.context.clone());
        let (request, key) = (Request::Send((**request).clone()), key.clone());
        Box::pin(async move {
            // The agent may have acted on the message, and would do so twice.
            if is_repeated && !client.declares(&context, IDEMPOTENCY).await {
                let lost = ClientError::Lost { origin: client.redacted_url(), error: SendError::Broken };
                return (Answer::NotRepeated(lost), None);
            }
            let call =
                OperationCall { key: Some(&key), ..OperationCall::new(Operation::SendStreamingMessage, request) };
            opened(client.connect(&context, call).await)
        })
    }

    fn send_blocking(&self) -> RunningCall {
        let Origin::Sent { request: Some(request), key } = &self.machine.origin else {
            return self.nothing_to_send();
        };
        let context = CallContext { idempotency_key: Some(key.clone()), ..self.context.clone() };
        let (client, request) = (self.client.clone(), (**request).clone());
        Box::pin(async move { (Answer::Responded(client.send(&context, request).await), None) })
    }

    /// A stream that began with a task has no message, and one whose task is known needs none.
    fn nothing_to_send(&self) -> RunningCall {
        let error = self.machine.broken();
        Box::pin(async move { (Answer::NotRepeated(error), None) })
    }
}

fn opened(opened: Result<EventStream, ClientError>) -> (Answer, Option<EventStream>) {
    match opened {
        Ok(stream) => (Answer::Opened(Ok(())), Some(stream)),
        Err(error) => (Answer::Opened(Err(error)), None),
    }
}
