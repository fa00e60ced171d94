//! The client of one agent: every operation of the protocol, in the version and binding that were negotiated.

mod call;
mod webhooks;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use switchboard_a2a::card::AgentCard;
use switchboard_a2a::{
    ErrorKind, ListRequest, ListResponse, Metadata, Operation, Request, SendRequest, SendResponse, Task, TaskId,
    TaskState, decode,
};
use switchboard_egress::Egress;

use crate::address::AgentAddress;
use crate::card_cache::{CardCaches, CardLookup, PinnedCard};
use crate::discovery::FoundCard;
use crate::interface::Interface;
use crate::redact::redact_url;
use crate::task_stream::{Origin, TaskStream};
use crate::{CallContext, ClientError, Peer};
pub(crate) use call::OperationCall;

/// The client of one agent. Clones share its card cache.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    egress: Egress,
    peer: Peer,
    address: AgentAddress,
    /// For messages.
    redacted_url: String,
    card_caches: CardCaches,
}

impl Client {
    /// Sends no request yet.
    pub fn new(egress: Egress, peer: Peer) -> Result<Self, ClientError> {
        Self::build(egress, peer, None)
    }

    /// The same with a card that is given and not fetched.
    pub fn with_card(egress: Egress, peer: Peer, card: FoundCard) -> Result<Self, ClientError> {
        Self::build(egress, peer, Some(card))
    }

    fn build(egress: Egress, peer: Peer, card: Option<FoundCard>) -> Result<Self, ClientError> {
        let address = AgentAddress::parse(&peer.url)?;
        let redacted_url = redact_url(&peer.url);
        let card_caches = CardCaches::new(card);
        Ok(Self { inner: Arc::new(Inner { egress, peer, address, redacted_url, card_caches }) })
    }

    /// Has all calls follow this card from now on where the agent shows a card, whatever that one says: its interfaces,
    /// and what it says the agent can do. It does not stand in for a card that cannot be fetched, and what
    /// [`Self::probe_card`] finds is still what the agent shows.
    pub fn pin_card(&self, card: Arc<AgentCard>, json: Bytes) {
        self.inner.card_caches.pin(PinnedCard { card, json });
    }

    /// How the agent is called.
    pub fn peer(&self) -> &Peer {
        &self.inner.peer
    }

    /// Its address, redacted, for messages.
    pub(crate) fn redacted_url(&self) -> String {
        self.inner.redacted_url.clone()
    }

    /// The agent's card, fetched or from the cache; the pinned one, if there is one.
    ///
    /// # Errors
    /// When there is none, with every url that was tried.
    pub async fn card(&self, context: &CallContext) -> Result<Arc<FoundCard>, ClientError> {
        self.inner.card_caches.of(context).card(&self.exchange(context)).await
    }

    /// The same, and whether the agent was asked for it: a card from the cache says nothing of the agent.
    pub async fn look_up_card(&self, context: &CallContext) -> CardLookup {
        self.inner.card_caches.of(context).look_up(&self.exchange(context)).await
    }

    /// Fetches the card unless it is the one that is cached, which the agent is asked; a heartbeat and a refresh in one.
    /// Where a card is pinned, that one is returned.
    ///
    /// # Errors
    /// When the agent cannot say, with every url that was tried. The cached card stays.
    pub async fn refresh_card(&self, context: &CallContext) -> Result<Arc<FoundCard>, ClientError> {
        let cache = self.inner.card_caches.of(context);
        let shown = cache.refresh(&self.exchange(context), None).await?;
        Ok(cache.followed(shown))
    }

    /// The same as a probe, which returns what the agent shows, also where a card is pinned. There is a time for all of it:
    /// each place where a card may be gets half of what is left, retries included, and no request takes longer than the
    /// peer's limit for it. Unlike in other calls, the second place is asked also where the first is silent.
    ///
    /// # Errors
    /// When the agent cannot say, with what each place has said; of a card that is known, what its own place has said.
    pub async fn probe_card(&self, context: &CallContext, within: Duration) -> Result<Arc<FoundCard>, ClientError> {
        self.inner.card_caches.of(context).refresh(&self.exchange(context), Some(within)).await
    }

    /// The negotiated interface.
    ///
    /// # Errors
    /// When there is no card, or no interface on it can be used.
    pub async fn interface(&self, context: &CallContext) -> Result<Interface, ClientError> {
        self.routes(context).await.map(|routes| routes.chosen().interface.clone())
    }

    /// Sends a message: blocking, unless its configuration says otherwise.
    ///
    /// # Errors
    /// After [`ClientError::Lost`] and [`ClientError::Timeout`] the agent may be running the task.
    pub async fn send(&self, context: &CallContext, mut request: SendRequest) -> Result<SendResponse, ClientError> {
        let key = context.key();
        context.mark(&mut request);
        let call = OperationCall::new(Operation::SendMessage, Request::Send(request));
        self.call_decoded(context, OperationCall { key: Some(&key), ..call }, decode::decode_send).await
    }

    /// Sends a message and streams the events of its task.
    pub async fn stream(&self, context: &CallContext, mut request: SendRequest) -> Result<TaskStream, ClientError> {
        context.mark(&mut request);
        let origin = Origin::Sent { request: Some(Box::new(request)), key: context.key() };
        TaskStream::open(self.clone(), context.clone(), origin).await
    }

    /// Streams the events of a task until a terminal or interrupted state. One that is in such a state is returned as
    /// it is.
    pub async fn subscribe(&self, context: &CallContext, task: TaskId) -> Result<TaskStream, ClientError> {
        let origin = Origin::Subscribed { task, told: None };
        TaskStream::open(self.clone(), context.clone(), origin).await
    }

    /// The same for a reader that was told of the task before: the stream begins with the difference between that and
    /// the task as the agent has it.
    pub async fn resume(&self, context: &CallContext, task: TaskId, told: Task) -> Result<TaskStream, ClientError> {
        let origin = Origin::Subscribed { task, told: Some(Box::new(told)) };
        TaskStream::open(self.clone(), context.clone(), origin).await
    }

    /// Reads a task.
    pub async fn get(
        &self,
        context: &CallContext,
        id: &TaskId,
        history_length: Option<u32>,
    ) -> Result<Task, ClientError> {
        let request = Request::Get { id: id.clone(), history_length, tenant: None };
        let call = OperationCall::new(Operation::GetTask, request);
        let mut task = self.call_decoded(context, call, decode::decode_task).await?;
        // To version 0.3 a length of 0 means all of it.
        if history_length == Some(0) {
            task.history.clear();
        }
        Ok(task)
    }

    /// A page of tasks.
    ///
    /// # Errors
    /// Version 0.3 has no such operation.
    pub async fn list(&self, context: &CallContext, request: ListRequest) -> Result<ListResponse, ClientError> {
        let call = OperationCall::new(Operation::ListTasks, Request::List(request));
        self.call_decoded(context, call, decode::decode_list).await
    }

    /// Cancels a task.
    pub async fn cancel(
        &self,
        context: &CallContext,
        id: &TaskId,
        metadata: Option<Metadata>,
    ) -> Result<Task, ClientError> {
        let request = Request::Cancel { id: id.clone(), metadata, tenant: None };
        let call = OperationCall::new(Operation::CancelTask, request);
        match self.call_decoded(context, call, decode::decode_task).await {
            // An earlier attempt may have canceled it before its response was lost.
            Err(error) if error.error_kind() == Some(ErrorKind::TaskNotCancelable) => {
                match self.get(context, id, None).await {
                    Ok(task) if task.status.state == TaskState::Canceled => Ok(task),
                    _ => Err(error),
                }
            }
            answer => answer,
        }
    }

    /// The extended card.
    pub async fn extended_card(&self, context: &CallContext) -> Result<(AgentCard, Bytes), ClientError> {
        let request = Request::ExtendedCard { tenant: None };
        let json = self.call(context, Operation::GetExtendedCard, request).await?;
        Ok((self.read(&json, AgentCard::decode)?, json))
    }
}
