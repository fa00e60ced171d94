//! Child tasks: a turn hands work to another agent and follows it ([`TaskHandle::call`]).
//!
//! A child is a task like any other, with its own log, agent and end; its row names its parent, the root of the tree and
//! the payer, the root's caller, whose limits its turns count against. It is not refused for lack of room, because the
//! turn that waits for it could neither go on nor leave; it queues ahead of new messages.
//!
//! A cancellation of the parent reaches its live children. A child that is being created meanwhile is canceled by its
//! creator: whichever of the two comes second sees the other in the log.

use std::sync::Arc;

use switchboard_a2a::{Json, Message, MessageId, Metadata, Task, TaskId, TaskState, Timestamp};

use crate::caller::{AgentScope, Caller, CallerRole, Scopes, TaskScope};
use crate::delegation::{CHAIN_KEY, WaitingCall, not_a_child};
use crate::directory::Address;
use crate::engine::{Engine, EngineState};
use crate::error::Error;
use crate::event::LoggedEvent;
use crate::fold::ROUTING_KEY;
use crate::handle::{Stopped, TaskHandle};
use crate::ids::{AgentName, CallerId, TaskKey};
use crate::live_task::{Core, LiveTask};
use crate::route::{Destination, Routed, scope_of};
use crate::routing_decision::RoutingDecision;
use crate::routing_hints::RoutingHints;
use crate::store::lineage::{Ancestors, Lineage};
use crate::store::{Phase, TaskIdentity};
use crate::submit::{IncomingMessage, Submitted};
use crate::trace_context::TraceContext;
use crate::watch::{LogStream, SendResult, StreamEnd};

/// Children that are read from the store at a time.
const PAGE: usize = 256;

/// Work for another agent.
#[derive(Clone, Debug)]
pub struct Call {
    /// The agent.
    pub to: AgentName,
    /// Whose task it becomes.
    pub run_as: CallOwner,
    /// The message.
    pub message: Message,
    /// The skill that is wanted of the agent.
    pub skill: Option<String>,
    /// The request's metadata. A skill beside it comes before one in it.
    pub metadata: Option<Metadata>,
    /// Media types that the calling agent can read; empty means any.
    pub accepted_output_modes: Vec<String>,
    /// When it has to be done, if that is before the calling task's own deadline.
    pub deadline: Option<Timestamp>,
    /// Makes a repeated call safe: a turn that is run again after a crash and calls with the same key and the same content
    /// gets the task of its first call. Without it every call is a new task.
    pub key: Option<String>,
}

/// Who owns a child task, which decides who sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallOwner {
    /// The owner of the calling task: for an agent that carries out what the caller wrote.
    Owner,
    /// The calling agent on behalf of the payer: no caller sees the task, but operators do.
    #[default]
    Agent,
}

impl Call {
    /// A call without a key, as the calling agent.
    pub fn new(to: impl Into<AgentName>, message: Message) -> Self {
        let (skill, metadata, deadline, key) = (None, None, None, None);
        let (to, accepted_output_modes) = (to.into(), Vec::new());
        Self { to, run_as: CallOwner::Agent, message, skill, metadata, accepted_output_modes, deadline, key }
    }

    /// The same under a key.
    #[must_use]
    pub fn keyed(self, key: impl Into<String>) -> Self {
        Self { key: Some(key.into()), ..self }
    }
}

/// Why a call began no task.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CallError {
    /// The calling task is to stop, or has ended.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// The call was refused: the agent is not there, the key belongs to another message, the store cannot write.
    #[error(transparent)]
    Refused(#[from] Error),
}

/// A child task that has begun.
pub struct Called {
    engine: Engine,
    pub(crate) live: Arc<LiveTask>,
    submitted: Submitted,
    events: LogStream,
    caller: Caller,
    /// That of the calling turn.
    trace: Option<Arc<TraceContext>>,
    /// What the keys of answers begin with.
    key_prefix: String,
    /// Whether an answer may be an approval.
    pub(crate) approves: bool,
}

impl TaskHandle {
    /// Starts a task of another agent, or joins the one that an earlier call with the same key has started. A turn that
    /// waits for it does so inside [`Self::release_permit_while`], else the two may wait for the same permit.
    pub async fn call(&self, call: Call) -> Result<Called, CallError> {
        let parent = self.committed_key().await?;
        let handle = self.clone();
        // Spawned: the run may be dropped during the append, and what comes after that has to happen.
        self.engine.work.spawn(async move { handle.begin_child(parent, call).await }).await.map_err(Error::from)?
    }

    /// The task's key, once it is committed.
    pub(crate) async fn committed_key(&self) -> Result<TaskKey, Stopped> {
        let known = self.live.wait_for(|core| match self.must_stop(core) {
            true => Some(Err(self.stopped(core))),
            false => core.key.map(Ok),
        });
        known.await
    }

    async fn begin_child(self, parent: TaskKey, call: Call) -> Result<Called, CallError> {
        let is_keyed = call.key.is_some();
        let key_prefix = format!("switchboard:{}/", self.live.task.id);
        let refused = |error| self.engine.report_refusal(error, self.live.task.payer());
        let (caller, routed) = self.route_child(parent, call, &key_prefix).await.map_err(refused)?;
        let engine = Engine { inner: self.engine.clone() };
        let submitted = engine.send(routed).await.map_err(refused)?;
        let live = submitted.live.clone();
        live.called_by(&self.engine, &self.live);
        if let Err(error) = self.check_parent(is_keyed).await {
            self.engine.cancel_tree(&live).await?;
            return Err(error);
        }
        let events = LogStream::new(self.engine.clone(), live.clone(), submitted.seq, StreamEnd::Terminal);
        // Apart from the keys of calls, whatever the agent calls them.
        let key_prefix = format!("switchboard:{}>{}/", self.live.task.id, live.task.id);
        let trace = self.trace();
        // What hands on for a program's call has only that program to give approvals, which is not a program's to do.
        let approves = !(self.agent().is_own() && self.live.task.parent().is_some());
        Ok(Called { engine, live, submitted, events, caller, trace, key_prefix, approves })
    }

    /// Looks whether the calling task goes on, after a child is committed: a cancellation before that has not seen it.
    async fn check_parent(&self, is_keyed: bool) -> Result<(), CallError> {
        self.engine.refresh(&self.live).await.map_err(Error::from)?;
        let mut core = self.live.core.lock();
        let must_end = core.output.stop.is_some() || core.is_done();
        // A run that was taken over is repeated, and joins the child only if that has a key.
        let is_left = must_end || (!core.turn.is_run(self.run) && !is_keyed);
        if is_left { Err(self.stopped(&mut core).into()) } else { Ok(()) }
    }

    async fn route_child(&self, parent: TaskKey, call: Call, key_prefix: &str) -> Result<(Caller, Routed), Error> {
        let (task, engine) = (&self.live.task, &self.engine);
        let owner = match call.run_as {
            CallOwner::Owner => task.owner.clone(),
            CallOwner::Agent => CallerId::from(format!("~{}@{}", task.agent, task.payer())),
        };
        let lineage = self.lineage_of_child(parent, &owner);
        let scopes = Scopes { agents: AgentScope::All, role: CallerRole::None };
        let caller = Caller { id: owner.clone(), scopes };
        let address = Address::Agent(call.to);
        let mut metadata = call.metadata;
        if let Some(skill) = call.skill.as_ref().and_then(|skill| Json::from_serialize(skill).ok()) {
            metadata.get_or_insert_default().insert("skill", skill);
        }
        let mut incoming = incoming(address.clone(), call.message, key_prefix, call.key, metadata);
        incoming.accepted_output_modes = call.accepted_output_modes;
        incoming.trace = self.trace();
        // As the agent will read it: the message may name a skill too.
        let skill = RoutingHints::read(&address, &incoming.message, incoming.metadata.as_ref())?.skill;
        let (mut key, mut destination, mut tree) = (None, None, None);
        if let Some(asked) = incoming.idempotency_key.clone() {
            let (reserved, repeated) = engine.look_up(scope_of(&caller, &address, asked), None).await?;
            (key, destination) = (Some(reserved), repeated);
        }
        let destination = match destination {
            Some(repeated) => repeated,
            None => {
                let resolved = engine.directory.resolve(&address, &caller, None)?;
                let served = resolved.hosted.served();
                tree = Some(self.check_call(&resolved.hosted, &served, skill.as_deref()).await?);
                Destination::New(resolved, served)
            }
        };
        let own = engine.deadline_of(&self.live.core.lock());
        let deadline = own.into_iter().chain(call.deadline).min();
        let chain = self.sent_chain();
        let (refused, by_turn, called_by, approves) = (None, true, None, true);
        let routed = Routed {
            incoming,
            deadline,
            extensions: Vec::new(),
            lineage,
            chain,
            tree,
            refused,
            owner,
            destination,
            key,
            by_turn,
            called_by,
            approves,
            awaits: false,
            _conversation: None,
        };
        Ok((caller, routed))
    }

    fn lineage_of_child(&self, parent: TaskKey, owner: &CallerId) -> Lineage {
        let task = &self.live.task;
        let root = task.lineage.ancestors.map_or(parent, |ancestors| ancestors.root);
        let payer = Some(task.payer()).filter(|payer| *payer != owner).cloned();
        // What a fan-out asks came the way of the message that is fanned out.
        Lineage { ancestors: Some(Ancestors { parent, root }), payer, via: task.lineage.via }
    }

    /// Routes what a program of this run sends with its token: a new task is a child of this one. What it claims of a
    /// chain does not count, since the chain is known here.
    pub(crate) async fn route_called(
        &self,
        caller: &Caller,
        scope: &TaskScope,
        mut incoming: IncomingMessage,
    ) -> Result<Routed, Error> {
        if let Some(metadata) = &mut incoming.message.metadata {
            metadata.remove(CHAIN_KEY);
        }
        // Owner and address are those of every task of this agent and payer, so the key says whose it is.
        let key = incoming.idempotency_key.take();
        incoming.idempotency_key = key.map(|key| format!("switchboard:{}#{}/{key}", self.id(), scope.fence.0));
        // Whatever the program does not say of its trace is that of its task.
        incoming.trace = match (incoming.trace, self.trace()) {
            (Some(told), Some(known)) => Some(Arc::new(TraceContext::clone(&told).or(&known))),
            (told, known) => told.or(known),
        };
        let mut routed = Engine { inner: self.engine.clone() }.route_open(caller, incoming).await?;
        let (address, message) = (&routed.incoming.address, &routed.incoming.message);
        let skill = RoutingHints::read(address, message, routed.incoming.metadata.as_ref())?.skill;
        let refused = |error| self.engine.report_refusal(error, self.live.task.payer());
        match &routed.destination {
            Destination::Repeated(live, _) | Destination::Task(live) if live.task.parent() != Some(scope.parent) => {
                return Err(not_a_child(&live.task.id));
            }
            Destination::Repeated(..) => {}
            Destination::Task(live) => {
                if skill.is_some() {
                    let stored =
                        live.core.lock().fold.task.metadata.as_ref().and_then(|all| all.get(ROUTING_KEY).cloned());
                    let decision = RoutingDecision::read(stored.as_ref());
                    self.check_called(&live.task.agent, decision, skill.as_deref()).await.map_err(refused)?;
                }
            }
            Destination::New(resolved, served) => {
                let decision = RoutingDecision::read(resolved.decision.as_ref());
                let (to, skill) = (&resolved.hosted, skill.or_else(|| decision.skill.clone()));
                routed.tree = Some(self.check_call(to, served, skill.as_deref()).await.map_err(refused)?);
                if to.name.is_own() {
                    self.check_called(&to.name, decision, skill.as_deref()).await.map_err(refused)?;
                }
                routed.lineage = self.lineage_of_child(scope.parent, &routed.owner);
                routed.deadline = self.engine.deadline_of(&self.live.core.lock());
                routed.chain = self.sent_chain();
            }
        }
        (routed.by_turn, routed.called_by, routed.approves) = (true, Some(self.clone()), false);
        Ok(routed)
    }

    /// Sends what was routed so, and looks whether the run still goes on: if it has ended meanwhile, nothing else would
    /// end the child.
    pub(crate) async fn send_called(self, routed: Routed) -> Result<Submitted, Error> {
        let waits = !routed.incoming.return_immediately;
        let engine = Engine { inner: self.engine.clone() };
        let refused = |error| self.engine.report_refusal(error, self.live.task.payer());
        let mut submitted = engine.send_routed(routed).await.map_err(refused)?;
        submitted.live.called_by(&self.engine, &self.live);
        if let Err(error) = self.check_parent(false).await {
            self.engine.cancel_tree(&submitted.live).await?;
            return Err(match error {
                CallError::Refused(error) => error,
                CallError::Stopped(stopped) => Error::Unsupported(format!("the calling task is over: {stopped}")),
            });
        }
        submitted.waiting = waits.then(|| WaitingCall::begin(&self)).flatten();
        Ok(submitted)
    }

    /// The trace context of the message that is worked on: what it calls is part of the same trace.
    fn trace(&self) -> Option<Arc<TraceContext>> {
        self.live.core.lock().fold.kernel.current.as_ref()?.received.trace.clone()
    }

    /// Why the run may not call any more. It knows then, and cannot complete its task.
    pub(crate) fn stopped(&self, core: &mut Core) -> Stopped {
        self.observe_stop(core);
        match core.turn.is_run(self.run) {
            _ if core.is_done() => Stopped::Ended,
            true => Stopped::Canceled,
            false => Stopped::Lost,
        }
    }
}

impl Called {
    /// The child's id.
    pub fn id(&self) -> &TaskId {
        &self.live.task.id
    }

    /// The child as it is committed now.
    pub fn snapshot(&self) -> Task {
        self.live.core.lock().task()
    }

    /// The child's events that have come since the last call, from its beginning; none when it has ended.
    pub async fn next(&mut self) -> Result<Option<Vec<Arc<LoggedEvent>>>, Error> {
        let next = self.events.next().await;
        self.live.tell_usage(&self.engine.inner);
        next
    }

    /// Answers the child's question, or adds a message to its work. With a key, an answer that is repeated after a crash
    /// is given once.
    pub async fn answer(&self, message: Message, key: Option<&str>) -> Result<(), Error> {
        let message = Message { task_id: Some(self.id().clone()), ..message };
        let address = Address::Agent(self.live.task.agent.clone());
        let mut incoming = incoming(address, message, &self.key_prefix, key.map(str::to_owned), None);
        incoming.trace.clone_from(&self.trace);
        let routed = self.engine.route_open(&self.caller, incoming).await?;
        self.engine.send(Routed { by_turn: true, approves: self.approves, ..routed }).await.map(drop)
    }

    /// Requests that the child and its own children stop. How it ends is for [`Self::end`].
    pub async fn cancel(&self) -> Result<(), Error> {
        let (engine, live) = (self.engine.inner.clone(), self.live.clone());
        self.engine.inner.work.spawn(async move { engine.cancel_tree(&live).await }).await?
    }

    /// Waits until the child has ended, whatever it asks meanwhile. An error if the server stops before that.
    pub async fn end(&self) -> Result<SendResult, Error> {
        let ended = self.submitted.end().await;
        // The turn may have seen the end before it was told what the child has used, and may end by it.
        self.live.tell_usage(&self.engine.inner);
        ended
    }

    /// Hands the state that the child ends in to a function, for a turn that does not wait for it; not if the server stops
    /// before that.
    pub fn on_end(self, told: impl FnOnce(TaskState) + Send + 'static) {
        let engine = self.engine.clone();
        engine.spawn(async move {
            match self.end().await {
                Ok(SendResult::Task(_)) => told(self.snapshot().status.state),
                // A direct reply counts as a task that has completed with it.
                Ok(SendResult::Message(_)) => told(TaskState::Completed),
                Err(error) => tracing::debug!(task = %self.id(), %error, "the end of a child was not seen"),
            }
        });
    }
}

impl EngineState {
    /// Requests that a task and its live children stop. One that has ended already is no error.
    async fn cancel_tree(self: &Arc<Self>, live: &Arc<LiveTask>) -> Result<(), Error> {
        self.request_child_cancel(live).await?;
        self.cancel_children(live).await
    }

    /// Requests that the live children of a task stop, and theirs. One that cannot be reached is an error, after all others
    /// were. A loop, because a tree may be deeper than a stack.
    pub(crate) async fn cancel_children(self: &Arc<Self>, live: &LiveTask) -> Result<(), Error> {
        let mut outcome = Ok(());
        let mut parents: Vec<TaskKey> = live.core.lock().key.into_iter().collect();
        while let Some(parent) = parents.pop() {
            let mut after = TaskKey(0);
            loop {
                let rows = self.store.children(parent, after, PAGE).await?;
                let Some(last) = rows.last() else { break };
                after = last.key;
                for row in rows {
                    let canceled = match self.find_task(&row.task.id).await {
                        Ok(Some(child)) => self.request_child_cancel(&child).await,
                        Ok(None) => Ok(()),
                        Err(error) => Err(error),
                    };
                    outcome = outcome.and(canceled);
                    parents.push(row.key);
                }
            }
        }
        outcome
    }

    async fn request_child_cancel(self: &Arc<Self>, child: &Arc<LiveTask>) -> Result<(), Error> {
        match self.request_cancel(child).await {
            Ok(()) | Err(Error::NotCancelable { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Whether a task's parent was canceled: the process may have died before it had reached the task.
    pub(crate) async fn is_orphaned(&self, task: &TaskIdentity) -> Result<bool, Error> {
        let Some(Ancestors { parent, .. }) = task.lineage.ancestors else { return Ok(false) };
        let heads = self.store.heads(vec![parent]).await?;
        if heads.iter().all(|head| head.phase != Phase::Done) {
            return Ok(false);
        }
        let parents = self.store.load_some(vec![parent], 1).await?;
        Ok(parents.iter().any(|parent| parent.row.state.state == TaskState::Canceled))
    }
}

/// A message to a child. Under a key it must be the same bytes whenever it is sent, its id included.
fn incoming(
    address: Address,
    message: Message,
    key_prefix: &str,
    key: Option<String>,
    metadata: Option<Metadata>,
) -> IncomingMessage {
    let key = key.map(|key| format!("{key_prefix}{key}"));
    let message_id = key.as_deref().map_or(message.message_id, MessageId::from);
    IncomingMessage {
        address,
        message: Message { message_id, ..message },
        accepted_output_modes: Vec::new(),
        metadata,
        idempotency_key: key,
        push_config: None,
        webhook: None,
        trace: None,
        return_immediately: false,
        streaming: false,
    }
}
