//! One agent, called: every operation of the protocol, in whichever version and binding it speaks.

mod call;
mod webhooks;

use std::sync::Arc;

use bytes::Bytes;
use switchboard_a2a::card::AgentCard;
use switchboard_a2a::{
    ErrorKind, ListRequest, ListResponse, Metadata, Operation, Request, SendRequest, SendResponse, Task, TaskId,
    TaskState, decode,
};
use switchboard_egress::Egress;

use crate::address::AgentAddress;
use crate::card_cache::CardCaches;
use crate::discovery::FoundCard;
use crate::follow::Followed;
use crate::interface::Interface;
use crate::redact::shown;
use crate::{ClientError, Context, Peer};
pub(crate) use call::OperationCall;

/// An agent that can be called. Clones share what is known of it.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    egress: Egress,
    peer: Peer,
    address: AgentAddress,
    card_caches: CardCaches,
}

impl Client {
    /// Nothing is called before it is needed.
    ///
    /// # Errors
    /// When the address cannot be one.
    pub fn new(egress: Egress, peer: Peer) -> Result<Self, ClientError> {
        Self::build(egress, peer, None)
    }

    /// The same for an agent whose card is at hand and is not fetched.
    ///
    /// # Errors
    /// When the address cannot be one.
    pub fn with_card(egress: Egress, peer: Peer, card: FoundCard) -> Result<Self, ClientError> {
        Self::build(egress, peer, Some(card))
    }

    fn build(egress: Egress, peer: Peer, card: Option<FoundCard>) -> Result<Self, ClientError> {
        let address = AgentAddress::parse(&peer.url)?;
        Ok(Self { inner: Arc::new(Inner { egress, peer, address, card_caches: CardCaches::new(card) }) })
    }

    /// How the agent is called.
    pub fn peer(&self) -> &Peer {
        &self.inner.peer
    }

    /// Its address for messages.
    pub(crate) fn shown(&self) -> String {
        shown(&self.inner.peer.url)
    }

    /// The agent's card, from the agent or as it was a moment ago.
    ///
    /// # Errors
    /// When there is none, with every place that was looked at.
    pub async fn card(&self, context: &Context) -> Result<Arc<FoundCard>, ClientError> {
        self.inner.card_caches.of(context).card(&self.exchange(context)).await
    }

    /// The interface that is used.
    ///
    /// # Errors
    /// When the card cannot be found or offers nothing that is spoken here.
    pub async fn interface(&self, context: &Context) -> Result<Interface, ClientError> {
        self.routes(context).await.map(|routes| routes.chosen().interface.clone())
    }

    /// Sends a message and waits for the answer, or for the task if the message says so.
    ///
    /// # Errors
    /// See [`ClientError`]. After [`ClientError::Lost`] and [`ClientError::Timeout`] the agent may be at work on it.
    pub async fn send(&self, context: &Context, mut request: SendRequest) -> Result<SendResponse, ClientError> {
        let key = context.key();
        context.mark(&mut request);
        let call =
            OperationCall { key: Some(&key), ..OperationCall::new(Operation::SendMessage, Request::Send(request)) };
        let (format, json) = self.call(context, call).await?;
        self.read(&json, |json| format.read(decode::decode_send, json))
    }

    /// Sends a message and follows what comes of it to the end.
    ///
    /// # Errors
    /// When not even the first answer comes.
    pub async fn stream(&self, context: &Context, request: SendRequest) -> Result<Followed, ClientError> {
        Followed::sent(self.clone(), context.clone(), request).await
    }

    /// Follows a task to its end, or until it waits for somebody. One that has ended, or asks already, is told as it is.
    ///
    /// # Errors
    /// When there is no such task, or it cannot be reached.
    pub async fn subscribe(&self, context: &Context, task: TaskId) -> Result<Followed, ClientError> {
        Followed::subscribed(self.clone(), context.clone(), task).await
    }

    /// A task as it is.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn get(&self, context: &Context, id: &TaskId, history_length: Option<u32>) -> Result<Task, ClientError> {
        let request = Request::Get { id: id.clone(), history_length, tenant: None };
        let (format, json) = self.call(context, OperationCall::new(Operation::GetTask, request)).await?;
        let mut task = self.read(&json, |json| format.read(decode::decode_task, json))?;
        // Version 0.3 takes no history for all of it.
        if history_length == Some(0) {
            task.history.clear();
        }
        Ok(task)
    }

    /// A page of tasks.
    ///
    /// # Errors
    /// See [`ClientError`]. Version 0.3 has no such operation.
    pub async fn list(&self, context: &Context, request: ListRequest) -> Result<ListResponse, ClientError> {
        let (format, json) =
            self.call(context, OperationCall::new(Operation::ListTasks, Request::List(request))).await?;
        self.read(&json, |json| format.read(decode::decode_list, json))
    }

    /// Stops a task.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn cancel(
        &self,
        context: &Context,
        id: &TaskId,
        metadata: Option<Metadata>,
    ) -> Result<Task, ClientError> {
        let request = Request::Cancel { id: id.clone(), metadata, tenant: None };
        let canceled = self.call(context, OperationCall::new(Operation::CancelTask, request)).await;
        match canceled {
            Ok((format, json)) => self.read(&json, |json| format.read(decode::decode_task, json)),
            // An attempt whose answer was lost may have done it already.
            Err(error) if error.refusal() == Some(ErrorKind::TaskNotCancelable) => {
                match self.get(context, id, None).await {
                    Ok(task) if task.status.state == TaskState::Canceled => Ok(task),
                    _ => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// The card for known callers.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn extended_card(&self, context: &Context) -> Result<(AgentCard, Bytes), ClientError> {
        let request = Request::ExtendedCard { tenant: None };
        let (_, json) = self.call(context, OperationCall::new(Operation::GetExtendedCard, request)).await?;
        Ok((self.read(&json, AgentCard::decode)?, json))
    }
}
