//! Accepting a message that was routed: a new task, an answer, or a follow-up for a running turn.

mod rejected;
mod validate;

use std::sync::Arc;

use parking_lot::Mutex;
use switchboard_a2a::{ContextId, Json, Message, Metadata, PushConfig, Role, Task, TaskId, TaskState, Timestamp};

use crate::admission::Admitted;
use crate::append::PendingAppend;
use crate::batch::Batch;
use crate::delegation::{DelegationRefused, WaitingCall, check_no_approval};
use crate::directory::{Address, Hosted, Resolved, Served};
use crate::engine::{Engine, EngineState, shutting_down};
use crate::error::Error;
use crate::event::{Event, Received};
use crate::fold::NumberedMessage;
use crate::idempotency::digest;
use crate::ids::{CallerId, Cursor, Epoch, Fence, Seq};
use crate::inline_turn::InlineTurn;
use crate::live_task::{Core, LiveTask};
use crate::manifest::{Replies, Start};
use crate::media_types;
use crate::queue::QueuePriority;
use crate::route::{Destination, Routed, RoutedKey};
use crate::store::lineage::{Lineage, TreeLimits};
use crate::store::webhooks::NewWebhook;
use crate::store::{IdempotencyRecord, Phase, RowState, SideWrites, StoreError, TaskIdentity};
use crate::trace_context::TraceContext;
use crate::turn::{self, TurnInput, Wakeup};
use validate::check_context;
pub(crate) use validate::takes_messages;

/// A message to take in.
#[derive(Clone, Debug)]
pub struct IncomingMessage {
    /// Where it was sent.
    pub address: Address,
    /// The message.
    pub message: Message,
    /// Media types the caller can read; empty means any.
    pub accepted_output_modes: Vec<String>,
    /// The request's metadata.
    pub metadata: Option<Metadata>,
    /// Makes a repeated send safe.
    pub idempotency_key: Option<String>,
    /// The request's trace context.
    pub trace: Option<Arc<TraceContext>>,
    /// A webhook that came with it, as the caller wrote it: part of what makes two sends the same.
    pub push_config: Option<PushConfig>,
    /// The same, ready to be stored with the message. Without a name it takes that of its task.
    pub webhook: Option<NewWebhook>,
    /// The caller does not want to wait for the end.
    pub return_immediately: bool,
    /// The answer will be streamed, so the task as of the message is wanted.
    pub streaming: bool,
}

/// A message that is committed.
pub struct Submitted {
    pub(crate) engine: Arc<EngineState>,
    pub(crate) live: Arc<LiveTask>,
    pub(crate) seq: Seq,
    pub(crate) first: InitialTask,
    /// The run whose program waits for it.
    pub(crate) waiting: Option<WaitingCall>,
    /// What is left of the turn that its sender has begun, if that goes on with it. In a lock, so that all else is shared.
    pub(crate) turn: Mutex<Option<InlineTurn>>,
}

/// The task as of the message.
pub(crate) enum InitialTask {
    /// A new task: nothing but its message.
    New(Epoch, Arc<Received>),
    /// One that was there already, and where a reader of it stands.
    Existing(Box<(Cursor, Task)>),
    /// The request did not ask for it.
    NotRequested,
}

/// Where a message comes from, and what it brings along for its task.
struct Origin {
    owner: CallerId,
    lineage: Lineage,
    chain: Option<Json>,
    tree: Option<TreeLimits>,
    refused: Option<Box<DelegationRefused>>,
    deadline: Option<Timestamp>,
    extensions: Vec<String>,
    /// Whether it may answer a question that asks for an approval.
    approves: bool,
    /// Its sender waits for the answer, and goes on with a turn that it has begun.
    awaits: bool,
}

impl Submitted {
    /// The agent that serves it, if it is still there.
    pub fn hosted(&self) -> Option<&Arc<Hosted>> {
        self.live.hosted.as_ref()
    }

    /// The task's id.
    pub fn id(&self) -> &TaskId {
        &self.live.task.id
    }

    /// The conversation that the task belongs to.
    pub fn context(&self) -> &ContextId {
        &self.live.task.context
    }
}

impl Engine {
    /// Accepts a routed message. When this returns, the message is committed and its turn runs or is queued, whatever
    /// becomes of the caller's connection.
    pub async fn send(&self, routed: Routed) -> Result<Submitted, Error> {
        match routed.called_by.clone() {
            None => self.send_routed(routed).await,
            // Spawned: the caller may disconnect during the append, and what comes after that has to happen.
            Some(handle) => self.inner.work.spawn(handle.send_called(routed)).await?,
        }
    }

    pub(crate) async fn send_routed(&self, routed: Routed) -> Result<Submitted, Error> {
        let Routed {
            incoming,
            deadline,
            extensions,
            lineage,
            chain,
            tree,
            refused,
            owner,
            destination,
            key,
            by_turn,
            approves,
            awaits,
            ..
        } = routed;
        if self.inner.closing.is_cancelled() && !by_turn {
            return Err(shutting_down());
        }
        let origin = Origin { owner, lineage, chain, tree, refused, deadline, extensions, approves, awaits };
        match key {
            None => self.inner.clone().submit(origin, incoming, destination, None).await,
            // Boxed, like every rare path here: the future of the common path is copied with every message.
            Some(key) => Box::pin(self.inner.clone().send_once(origin, incoming, destination, key)).await,
        }
    }
}

impl EngineState {
    /// A send under an idempotency key, which stays reserved until its message is committed.
    async fn send_once(
        self: Arc<Self>,
        origin: Origin,
        incoming: IncomingMessage,
        destination: Destination,
        key: RoutedKey,
    ) -> Result<Submitted, Error> {
        let digest = digest(&incoming.message, &incoming.accepted_output_modes, incoming.push_config.as_ref());
        let streaming = incoming.streaming;
        let scope = key.scope.clone();
        if let Destination::Repeated(live, record) = destination {
            return if record.digest == digest {
                self.repeat(live, record, streaming).await
            } else {
                Err(key.reused())
            };
        }
        let record = IdempotencyRecord { scope: scope.clone(), digest, task: None, seq: Seq(0) };
        let submitted = self.clone().submit(origin, incoming, destination, Some(record)).await;
        let Err(error) = submitted else { return submitted };
        // The first sender may have disconnected during its append.
        match self.store.find_send(scope).await {
            Ok(Some(record)) if record.digest == digest => {
                let live = self.task_of_send(&record).await?;
                self.repeat(live, record, streaming).await
            }
            Ok(Some(_)) => Err(key.reused()),
            _ => Err(error),
        }
    }

    /// A send that was accepted before acts as the original.
    async fn repeat(
        self: &Arc<Self>,
        live: Arc<LiveTask>,
        record: IdempotencyRecord,
        streaming: bool,
    ) -> Result<Submitted, Error> {
        let first = match streaming {
            true => InitialTask::Existing(Box::new(self.task_as_of(&live, record.seq).await?)),
            false => InitialTask::NotRequested,
        };
        Ok(Submitted { engine: self.clone(), live, seq: record.seq, first, waiting: None, turn: Default::default() })
    }

    async fn submit(
        self: Arc<Self>,
        origin: Origin,
        incoming: IncomingMessage,
        destination: Destination,
        record: Option<IdempotencyRecord>,
    ) -> Result<Submitted, Error> {
        match destination {
            Destination::New(resolved, served) => self.begin(origin, incoming, resolved, served, record).await,
            Destination::Task(live) | Destination::Repeated(live, _) => {
                Box::pin(self.follow_up(origin, live, incoming, record)).await
            }
        }
    }

    async fn begin(
        self: Arc<Self>,
        origin: Origin,
        send: IncomingMessage,
        resolved: Resolved,
        served: Arc<Served>,
        record: Option<IdempotencyRecord>,
    ) -> Result<Submitted, Error> {
        let Resolved { hosted, decision, cooldown } = resolved;
        let Origin { owner, lineage, chain, tree, refused, deadline, extensions, awaits, .. } = origin;
        media_types::check(&served.manifest, &hosted.name, &send, decision.as_ref())?;
        check_context(send.message.context_id.as_ref())?;
        if lineage.ancestors.is_none() {
            self.check_parked(&owner)?;
        }
        let cooldown = cooldown.map(|rule| self.cooldown(&owner, &hosted, rule)).transpose()?;
        let task = TaskIdentity {
            id: TaskId::generate(),
            owner,
            agent: hosted.name.clone(),
            context: send.message.context_id.clone().unwrap_or_else(ContextId::generate),
            lineage,
        };
        let begins_context = send.message.context_id.is_none();
        let return_immediately = send.return_immediately;
        let webhook = named(send.webhook.clone(), &task.id);
        let sides = SideWrites { send: record, webhook, cooldown: cooldown.clone(), tree };
        let hidden = match served.manifest.replies {
            Replies::Task => false,
            Replies::Message => true,
            Replies::Either => !return_immediately,
        };
        let received = Received { hidden, chain, deadline, extensions, routing: decision, ..self.receive(&task, send) };
        let received = Arc::new(received);
        let mut batch = Batch::default();
        self.check_size(batch.push(Event::Received(received.clone())))?;
        if let Some(refused) = refused {
            let sides = SideWrites { cooldown: None, ..sides };
            return Box::pin(self.begin_rejected(task, &hosted, received, batch, sides, *refused)).await;
        }
        let admitted = self.admit(&hosted, &task)?;
        let queued = matches!(admitted, Admitted::Queued(_));
        let row = RowState {
            state: TaskState::Submitted,
            status_at: received.at,
            phase: if queued { Phase::Queued } else { Phase::Running },
            fence: Fence(1),
            expires_at: self.deadline_from(received.at, received.deadline).filter(|_| queued),
            hidden,
            recoveries: 0,
        };
        let create = if begins_context { LiveTask::create_in_new_context } else { LiveTask::create };
        let live = self.live.insert_or_get(Arc::new(create(task, hosted.clone(), row)));
        {
            let mut core = live.core.lock();
            core.output.batch = batch;
            // An agent that begins before the commit has the same deadline and delegation chain.
            core.fold.kernel.deadline = received.deadline;
            core.fold.kernel.chain.clone_from(&received.chain);
            core.output.pushed += 1;
            if !queued {
                let fence = core.row.fence;
                core.turn.start(fence).map_err(Error::retry_soon)?;
            }
        }
        // The agent may wait before its first output; its message is appended meanwhile.
        live.output.notify_one();
        // A key is reserved in the memory of this node only; another that shares the store may win the commit.
        let is_reserved = sides.send.is_none() || !self.is_shared;
        // A child may still be refused by the append that counts it.
        let early = served.manifest.start == Start::WithCommit && is_reserved && sides.tree.is_none();
        let (engine, task) = (self.clone(), live.clone());
        let first = NumberedMessage { seq: 1, received: received.clone() };
        let begin = TurnInput::new(first, crate::agent::Cause::Begin, None).served_by(served);
        let mut inline = None;
        match admitted {
            Admitted::Runs(permit) if early => {
                let mut turn = InlineTurn::new(&self.work, turn::drive(engine, task, permit, begin, sides));
                turn.run_until(|| live.core.lock().last_seq >= Seq(1)).await;
                inline = awaits.then_some(turn);
            }
            admitted => {
                let begun = self.work.spawn(async move {
                    match (task.flush(&engine, sides).await, admitted) {
                        (Err(error), _) => task.give_up(error),
                        (Ok(()), Admitted::Runs(permit)) => {
                            turn::drive(engine, task, permit, begin, SideWrites::default()).await
                        }
                        (Ok(()), Admitted::Queued(slot)) => {
                            engine.enqueue(QueuePriority::of_new(&task.task), task, slot)
                        }
                    }
                });
                if queued {
                    // A read of the task after this response must find its queue position.
                    begun.await?;
                }
            }
        }
        let committed = live.wait_for(|core| match core.turn.lost() {
            _ if core.last_seq >= Seq(1) => Some(Ok(core.last_epoch)),
            Some(error) => Some(Err(error.clone())),
            None => None,
        });
        let epoch = match committed.await {
            Ok(epoch) => epoch,
            Err(error) => {
                self.live.forget(&live.task.id);
                return Err(match error {
                    StoreError::CoolingDown { key, until } => self.cooling_down(&live.task.owner, &hosted, key, until),
                    other => other.into(),
                });
            }
        };
        if let Some(cooldown) = cooldown {
            self.cooldown_taken(cooldown);
        }
        if let Some(decision) = &received.routing {
            self.directory.accepted(decision);
        }
        let first = InitialTask::New(epoch, received);
        Ok(Submitted { engine: self, live, seq: Seq(1), first, waiting: None, turn: Mutex::new(inline) })
    }

    fn receive(&self, task: &TaskIdentity, send: IncomingMessage) -> Received {
        let mut message = send.message;
        message.task_id = Some(task.id.clone());
        message.context_id = Some(task.context.clone());
        message.role = Role::User;
        Received {
            accepted_output_modes: send.accepted_output_modes,
            metadata: send.metadata,
            trace: send.trace.filter(|trace| !trace.is_empty()),
            ..Received::new(message, self.clock.now())
        }
    }

    async fn follow_up(
        self: Arc<Self>,
        origin: Origin,
        live: Arc<LiveTask>,
        send: IncomingMessage,
        record: Option<IdempotencyRecord>,
    ) -> Result<Submitted, Error> {
        if let Some(context) = &send.message.context_id
            && *context != live.task.context
        {
            let problem = format!("task {} belongs to context {}", live.task.id, live.task.context);
            return Err(Error::Invalid { field: "message.contextId", problem });
        }
        if let Some(hosted) = &live.hosted {
            media_types::check(&hosted.served().manifest, &hosted.name, &send, None)?;
        }
        let (streaming, approves) = (send.streaming, origin.approves);
        let sides =
            SideWrites { send: record, webhook: named(send.webhook.clone(), &live.task.id), ..SideWrites::default() };
        let Origin { chain, extensions, .. } = origin;
        let received = Arc::new(Received { chain, extensions, ..self.receive(&live.task, send) });
        // Spawned: the caller may disconnect, the append must go on.
        let engine = self.clone();
        let task = live.clone();
        let appended = self.work.spawn(async move { engine.deliver(task, received, sides, streaming, approves).await });
        let (seq, first) = appended.await??;
        let cursor = Cursor { epoch: live.core.lock().last_epoch, seq };
        let first = first.map_or(InitialTask::NotRequested, |task| InitialTask::Existing(Box::new((cursor, task))));
        Ok(Submitted { engine: self, live, seq, first, waiting: None, turn: Default::default() })
    }

    /// Appends a message to a task and wakes or starts its turn.
    async fn deliver(
        self: Arc<Self>,
        live: Arc<LiveTask>,
        received: Arc<Received>,
        sides: SideWrites,
        streaming: bool,
        approves: bool,
    ) -> Result<(Seq, Option<Task>), Error> {
        self.link_children_of_parked(&live).await;
        let event = Event::Received(Arc::clone(&received));
        let mut wakeup = Wakeup::default();
        let mut initial = None;
        let decide = |core: &mut Core| -> Result<PendingAppend, Error> {
            wakeup.undo(core);
            let hosted = takes_messages(&live, core)?;
            if !approves {
                check_no_approval(&live.task, core)?;
            }
            live.check_reviewed_skills(core, &received)?;
            let events = vec![event.clone()];
            let answers = core.row.state.is_interrupted() && !core.fold.is_for_operator();
            let append = match answers {
                true => wakeup.append(&self, &live, hosted, core, events)?,
                false => PendingAppend::inbox(events, core.row.clone()),
            };
            initial = streaming.then(|| core.fold.task_with(core.last_seq.plus(1), &event, append.row.status_at));
            self.check_size(append.batch.bytes())?;
            self.check_task_size(core, append.batch.bytes())?;
            let mut sides = sides.clone();
            if let Some(webhook) = &mut sides.webhook {
                webhook.cursor = core.last_seq;
            }
            Ok(PendingAppend { sides, refusable: true, ..append })
        };
        let appended = live.inbox(&self, decide).await;
        if appended.is_err() {
            wakeup.undo(&mut live.core.lock());
        }
        let seq = appended?;
        wakeup.committed(&self, live);
        Ok((seq, initial))
    }
}

/// A webhook without a name takes that of its task.
pub(crate) fn named(webhook: Option<NewWebhook>, task: &TaskId) -> Option<NewWebhook> {
    let mut webhook = webhook?;
    if webhook.id.is_empty() {
        task.as_str().clone_into(&mut webhook.id);
    }
    Some(webhook)
}
