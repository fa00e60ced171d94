//! Routing a message, once per send: to the send that it repeats, to the task that it goes on with, or to the agent of
//! a new task.
//!
//! What depends on the agent (required extensions, switches, how files are encoded) is checked on the [`Routed`]
//! message, which is then sent as it was routed: a second look at the directory could pick another agent.

use std::sync::Arc;

use switchboard_a2a::{ContextId, Json, MessageId, Role, TaskId, TaskState, Timestamp};

use crate::caller::Caller;
use crate::delegation::{DelegationChain, DelegationRefused, check_received};
use crate::directory::{Address, Hosted, Resolved, RoutingRequest, Served};
use crate::engine::{Engine, EngineState, shutting_down};
use crate::error::Error;
use crate::fold::ROUTING_KEY;
use crate::handle::TaskHandle;
use crate::idempotency::KeyReservation;
use crate::ids::{AgentName, CallerId};
use crate::live_task::LiveTask;
use crate::routing_hints::RoutingHints;
use crate::store::lineage::{Lineage, TreeLimits, Via};
use crate::store::{Conversation, IdempotencyRecord, IdempotencyScope};
use crate::submit::IncomingMessage;

/// How many of a conversation's newest tasks are looked through for an open question.
const CONTEXT_TASKS: usize = 100;

/// A message that has its destination, and the reservation of its idempotency key.
pub struct Routed {
    /// The message. Its webhook, its files and how its answer is wanted may still change; what it was routed by may not.
    pub incoming: IncomingMessage,
    /// When the task has to be done, if it is a new one and that is before `tasks.deadline`. The deadline of the message's
    /// delegation chain, if it has one.
    pub deadline: Option<Timestamp>,
    /// The extensions of its agent that the caller has declared, see [`crate::Turn::extensions`].
    pub extensions: Vec<String>,
    /// Where a new task comes from.
    pub(crate) lineage: Lineage,
    /// The message's delegation chain.
    pub(crate) chain: Option<Json>,
    /// Of a child task: how many tasks its parent and its tree may have.
    pub(crate) tree: Option<TreeLimits>,
    /// Why the new task is rejected before its agent starts.
    pub(crate) refused: Option<Box<DelegationRefused>>,
    pub(crate) owner: CallerId,
    pub(crate) destination: Destination,
    pub(crate) key: Option<RoutedKey>,
    /// A turn that has begun sends it: it is accepted also while the server drains, so that the turn can end.
    pub(crate) by_turn: bool,
    /// The run whose program sends it.
    pub(crate) called_by: Option<TaskHandle>,
    /// Whether it may answer a question that asks for an approval.
    pub(crate) approves: bool,
    /// Its sender waits for the answer: [`Engine::send_and_wait`].
    pub(crate) awaits: bool,
    /// No other message of its conversation is routed before it is committed.
    pub(crate) _conversation: Option<KeyReservation>,
}

/// Where a message goes.
pub(crate) enum Destination {
    /// A new task of this agent, as it is served now.
    New(Resolved, Arc<Served>),
    /// A task that is there, in memory while this is held.
    Task(Arc<LiveTask>),
    /// To the task of the send that it repeats.
    Repeated(Arc<LiveTask>, IdempotencyRecord),
}

/// The key that makes a send idempotent.
pub(crate) struct RoutedKey {
    pub(crate) scope: IdempotencyScope,
    /// The message whose id is the key, where its agent deduplicates by message id.
    message_id: Option<MessageId>,
    /// Held until the message is committed.
    _reservation: KeyReservation,
}

impl RoutedKey {
    /// The error of a key that was used for another message.
    pub(crate) fn reused(&self) -> Error {
        self.message_id.clone().map_or(Error::KeyReused, Error::MessageIdReused)
    }
}

impl Routed {
    /// The agent that gets the message. Absent if it goes to a task whose agent is no longer served.
    pub fn hosted(&self) -> Option<&Arc<Hosted>> {
        self.destination.hosted()
    }

    /// The same as it is served now.
    pub fn served(&self) -> Option<Arc<Served>> {
        self.destination.served()
    }

    /// The task it goes to, if that is there already.
    pub fn task(&self) -> Option<&TaskId> {
        self.destination.task().map(|live| &live.task.id)
    }

    /// About how many bytes that task has as JSON.
    pub fn task_bytes(&self) -> Option<u64> {
        self.destination.task().map(|live| live.core.lock().bytes)
    }

    /// A message of a caller that goes somewhere, with nothing beside it.
    pub(crate) fn new(owner: CallerId, incoming: IncomingMessage, destination: Destination) -> Self {
        Self {
            incoming,
            deadline: None,
            extensions: Vec::new(),
            lineage: Lineage::default(),
            chain: None,
            tree: None,
            refused: None,
            owner,
            destination,
            key: None,
            by_turn: false,
            called_by: None,
            approves: true,
            awaits: false,
            _conversation: None,
        }
    }

    /// Says which way the message came, if it begins a new task.
    #[must_use]
    pub fn via(mut self, via: Via) -> Self {
        self.lineage.via = via;
        self
    }

    /// Whether a message was accepted under its idempotency key before.
    pub fn is_repeated(&self) -> bool {
        matches!(self.destination, Destination::Repeated(..))
    }
}

impl Destination {
    fn hosted(&self) -> Option<&Arc<Hosted>> {
        match self {
            Self::New(resolved, _) => Some(&resolved.hosted),
            Self::Task(live) | Self::Repeated(live, _) => live.hosted.as_ref(),
        }
    }

    fn served(&self) -> Option<Arc<Served>> {
        match self {
            Self::New(_, served) => Some(served.clone()),
            Self::Task(live) | Self::Repeated(live, _) => live.hosted.as_ref().map(|hosted| hosted.served()),
        }
    }

    fn task(&self) -> Option<&Arc<LiveTask>> {
        match self {
            Self::New(..) => None,
            Self::Task(live) | Self::Repeated(live, _) => Some(live),
        }
    }
}

impl Engine {
    /// Finds where a message goes: to the send it repeats, to the task it names or answers, or to the agent that the
    /// directory resolves. Nothing is stored yet.
    pub async fn route(&self, caller: &Caller, incoming: IncomingMessage) -> Result<Routed, Error> {
        if let Some(scope) = caller.scopes.agents.task() {
            return Box::pin(scope.handle.route_called(caller, scope, incoming)).await;
        }
        if self.inner.closing.is_cancelled() {
            return Err(shutting_down());
        }
        self.route_open(caller, incoming).await
    }

    /// The same, also while the server drains.
    pub(crate) async fn route_open(&self, caller: &Caller, incoming: IncomingMessage) -> Result<Routed, Error> {
        let engine = &self.inner;
        let owner = caller.id.clone();
        let (sent, chain) = DelegationChain::of(&incoming.message)?.unzip();
        let deadline = chain.as_ref().and_then(|chain| chain.deadline);
        let mut key = None;
        // Boxed, like every rare path here: the future of the common path is copied with every message.
        let mut repeated = None;
        if let Some(asked) = incoming.idempotency_key.clone() {
            let scope = scope_of(caller, &incoming.address, asked);
            let (reserved, found) = Box::pin(engine.look_up(scope, None)).await?;
            (key, repeated) = (Some(reserved), found);
        }
        let mut refused = None;
        let destination = match repeated {
            Some(destination) => destination,
            None => {
                let mut destination = engine.find_destination(caller, &incoming).await?;
                let dedupes = destination.served().is_some_and(|served| served.switches.dedupe_message_id);
                if key.is_none() && dedupes {
                    let id = incoming.message.message_id.clone();
                    // Callers cannot write keys that begin so.
                    let scope = scope_of(caller, &incoming.address, format!("switchboard:message:{id}"));
                    let (reserved, repeated) = Box::pin(engine.look_up(scope, Some(id))).await?;
                    key = Some(reserved);
                    destination = repeated.unwrap_or(destination);
                }
                if let Some(chain) = &chain {
                    refused = engine.check_chain_of(&destination, chain, &caller.id)?;
                }
                destination
            }
        };
        Ok(Routed { deadline, chain: sent, refused, key, ..Routed::new(owner, incoming, destination) })
    }

    /// Routes a message to an agent of the server's own, to which no address leads. For what the server itself begins on
    /// behalf of a caller.
    pub async fn route_to_own(
        &self,
        caller: &Caller,
        agent: &AgentName,
        incoming: IncomingMessage,
    ) -> Result<Routed, Error> {
        if self.inner.closing.is_cancelled() {
            return Err(shutting_down());
        }
        let (mut key, mut repeated) = (None, None);
        if let Some(asked) = incoming.idempotency_key.clone() {
            // Of the same key at an address that leads to agents it is another send.
            let scope = scope_of(caller, &Address::Agent(agent.clone()), asked);
            let (reserved, found) = Box::pin(self.inner.look_up(scope, None)).await?;
            (key, repeated) = (Some(reserved), found);
        }
        let missing = || Error::Unsupported(format!("this server does not serve {agent}"));
        let destination = match repeated {
            Some(destination) => destination,
            None => {
                let hosted = self.inner.directory.find(agent).filter(|_| agent.is_own()).ok_or_else(missing)?;
                let served = hosted.served();
                Destination::New(Resolved::new(hosted), served)
            }
        };
        Ok(Routed { key, ..Routed::new(caller.id.clone(), incoming, destination) })
    }
}

impl EngineState {
    /// Reserves a key, and finds what was sent under it before.
    pub(crate) async fn look_up(
        &self,
        scope: IdempotencyScope,
        message_id: Option<MessageId>,
    ) -> Result<(RoutedKey, Option<Destination>), Error> {
        let reservation = self.key_reservations.reserve(&scope).await;
        let record = self.store.find_send(scope.clone()).await?;
        let repeated = match record {
            Some(record) => Some(Destination::Repeated(self.task_of_send(&record).await?, record)),
            None => None,
        };
        Ok((RoutedKey { scope, message_id, _reservation: reservation }, repeated))
    }

    /// The task that an accepted send went to.
    pub(crate) async fn task_of_send(&self, record: &IdempotencyRecord) -> Result<Arc<LiveTask>, Error> {
        let id = record.task.clone().unwrap_or_else(|| TaskId::from(""));
        self.find_task(&id).await?.ok_or(Error::TaskNotFound(id))
    }

    /// Why the guard refuses a message with a delegation chain. One to a task that is there is an error, because that task
    /// goes on without it.
    fn check_chain_of(
        &self,
        destination: &Destination,
        chain: &DelegationChain,
        caller: &CallerId,
    ) -> Result<Option<Box<DelegationRefused>>, Error> {
        let (Some(hosted), Some(served)) = (destination.hosted(), destination.served()) else { return Ok(None) };
        match (check_received(self, &hosted.name, &served, chain), destination) {
            (Ok(()), _) | (_, Destination::Repeated(..)) => Ok(None),
            (Err(refused), Destination::New(..)) => Ok(Some(Box::new(refused))),
            (Err(refused), Destination::Task(_)) => Err(self.report_refusal(refused.into(), caller)),
        }
    }

    async fn find_destination(&self, caller: &Caller, incoming: &IncomingMessage) -> Result<Destination, Error> {
        let message = &incoming.message;
        if message.role == Role::Agent {
            let problem = "a message to an agent has the role ROLE_USER (v0.3: user)".to_owned();
            return Err(Error::Invalid { field: "message.role", problem });
        }
        let hints = RoutingHints::read(&incoming.address, message, incoming.metadata.as_ref())?;
        if !message.reference_task_ids.is_empty() {
            Box::pin(self.check_references(caller, message)).await?;
        }
        if let Some(id) = &message.task_id {
            return Box::pin(self.open(&incoming.address, caller, id)).await.map(Destination::Task);
        }
        let last_agent = match (&incoming.address, &message.context_id) {
            // A target is picked whatever was before.
            (Address::Root, Some(context)) if hints.targets.is_empty() => {
                self.store.last_agent(caller.id.clone(), context.clone()).await?
            }
            _ => None,
        };
        let last_decision = match (&last_agent, &message.context_id) {
            (Some(agent), Some(context)) if agent.is_own() => {
                Box::pin(self.last_decision(caller, agent, context)).await?
            }
            _ => None,
        };
        let asked = RoutingRequest {
            message,
            hints: &hints,
            last_agent: last_agent.as_ref(),
            last_decision: last_decision.as_ref(),
        };
        let resolved = self.directory.resolve(&incoming.address, caller, Some(asked))?;
        let served = resolved.hosted.served();
        if message.context_id.is_some()
            && served.agent.is_answer(message)
            && let Some(live) = Box::pin(self.waiting_in_context(caller, incoming, &resolved.hosted)).await?
        {
            return Ok(Destination::Task(live));
        }
        Ok(Destination::New(resolved, served))
    }

    /// How the conversation's newest task of an agent was routed.
    async fn last_decision(
        &self,
        caller: &Caller,
        agent: &AgentName,
        context: &ContextId,
    ) -> Result<Option<Json>, Error> {
        let conversation = Conversation { owner: caller.id.clone(), agent: agent.clone(), context: context.clone() };
        let Some(row) = self.store.context(conversation, 1).await?.pop() else { return Ok(None) };
        let Some(live) = self.find_task(&row.task.id).await? else { return Ok(None) };
        let core = live.core.lock();
        Ok(core.fold.task.metadata.as_ref().and_then(|metadata| metadata.get(ROUTING_KEY)).cloned())
    }

    /// The task whose question is answered by a message that names only the conversation: the one that waits there. With
    /// several waiting it is none.
    async fn waiting_in_context(
        &self,
        caller: &Caller,
        incoming: &IncomingMessage,
        hosted: &Hosted,
    ) -> Result<Option<Arc<LiveTask>>, Error> {
        let Some(context) = &incoming.message.context_id else { return Ok(None) };
        let conversation =
            Conversation { owner: caller.id.clone(), agent: hosted.name.clone(), context: context.clone() };
        let rows = self.store.context(conversation, CONTEXT_TASKS).await?;
        let mut waiting = rows.into_iter().filter(|row| row.state.state == TaskState::InputRequired);
        match (waiting.next(), waiting.next()) {
            (Some(row), None) => self.open(&incoming.address, caller, &row.task.id).await.map(Some),
            _ => Ok(None),
        }
    }
}

pub(crate) fn scope_of(caller: &Caller, address: &Address, key: String) -> IdempotencyScope {
    IdempotencyScope { owner: caller.id.clone(), address: address.as_str().to_owned(), key }
}
