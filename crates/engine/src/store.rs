//! The `Store` trait. There is one way to change a task, [`Store::append`], and it is one transaction.
//!
//! A store knows rows and bytes, not meanings: the kernel decides what an event does to a task, the store decides
//! whether the writer may still write, numbers the events, and makes them durable. Nothing is visible to any reader
//! before its commit.

#![expect(missing_docs, reason = "only what a name and its type do not say is written down")]

pub mod callbacks;
pub mod feed;
pub mod forwarding;
pub mod hub;
pub mod keys;
pub mod lineage;
pub mod survey;
pub mod webhooks;

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use switchboard_a2a::{ContextId, TaskId, TaskState, Timestamp};
use tokio::sync::watch;

use crate::bus::Bus;
use crate::ids::{AgentName, CallerId, Epoch, Fence, Seq, TaskKey};
use feed::{FeedPage, FeedStart, JournalRetention, Located, Position};
use lineage::Lineage;
use survey::{SurveyPage, SurveyQuery, WaitingQuery};
use webhooks::NewWebhook;

/// What every store call returns.
pub type StoreFuture<T> = BoxFuture<'static, Result<T, StoreError>>;

/// Durable tasks. Implementations are cheap to share and safe to call from any thread.
pub trait Store: Send + Sync + 'static {
    /// Writes events and everything that follows from them, or nothing.
    fn append(&self, append: Append) -> StoreFuture<Appended>;

    /// One task's row.
    fn row(&self, id: &TaskId) -> StoreFuture<Option<TaskRow>>;

    /// One task with its newest snapshot and every event after it.
    fn load(&self, id: &TaskId) -> StoreFuture<Option<LoadedTask>>;

    /// The same if its events have at most `max_bytes`, else its row alone: a caller that has to wait for its share of
    /// the memory learns how much to ask for before anything large is read.
    fn load_within(&self, id: &TaskId, max_bytes: u64) -> StoreFuture<Option<LoadedTaskWithin>>;

    /// Event rows of one task that hold events after `after`, oldest first, until `max_bytes` are passed
    /// (at least one row if there is one).
    fn read(&self, key: TaskKey, after: Seq, max_bytes: usize) -> StoreFuture<Vec<EventRow>>;

    /// The places of one page of an owner's tasks, newest status first, and the exact number of all that match. The
    /// tasks themselves are for [`Store::load_some`], so that a page need not be in memory all at once.
    fn list(&self, query: ListQuery) -> StoreFuture<ListPage>;

    /// Those of the tasks that are still there, in the order given, until `max_bytes` are passed (at least one if there
    /// is one). So a task that is missing before the last one given is gone, and none means that all are.
    fn load_some(&self, keys: Vec<TaskKey>, max_bytes: usize) -> StoreFuture<Vec<LoadedTask>>;

    /// The send that was accepted under an idempotency key.
    fn find_send(&self, scope: IdempotencyScope) -> StoreFuture<Option<IdempotencyRecord>>;

    /// Tasks to recover: queued and interrupted ones, and running ones that no live node holds. Oldest first, after the
    /// given key.
    fn unfinished(&self, after: TaskKey, max: usize) -> StoreFuture<Vec<TaskRow>>;

    /// Tasks that have not ended, of all owners, with or without a driver. Oldest first, after the given key.
    fn live(&self, after: TaskKey, max: usize) -> StoreFuture<Vec<TaskRow>>;

    /// Parked tasks that expire at or before a time, earliest first.
    fn expired(&self, now: Timestamp, max: usize) -> StoreFuture<Vec<TaskRow>>;

    /// What tells whether tasks have changed; those that are gone are left out. Cheaper than their rows.
    fn heads(&self, keys: Vec<TaskKey>) -> StoreFuture<Vec<TaskHead>>;

    /// The newest tasks of one conversation, newest first.
    fn context(&self, conversation: Conversation, max: usize) -> StoreFuture<Vec<TaskRow>>;

    /// The note of the conversation's newest task that has one.
    fn noted(&self, conversation: Conversation) -> StoreFuture<Option<String>>;

    /// The agent of the conversation's newest root task, whichever agents the caller has talked to in it.
    fn last_agent(&self, owner: CallerId, context: ContextId) -> StoreFuture<Option<AgentName>>;

    /// The tasks that a task's turns have started and that have not ended. Oldest first, after the given key.
    fn children(&self, parent: TaskKey, after: TaskKey, max: usize) -> StoreFuture<Vec<TaskRow>>;

    /// Tasks in an interrupted state, whose question waits for an answer. Oldest question first.
    fn waiting(&self, query: WaitingQuery) -> StoreFuture<Vec<TaskRow>>;

    /// Tasks of all owners that a filter leaves, for operators; hidden ones are left out.
    fn survey(&self, query: SurveyQuery) -> StoreFuture<SurveyPage>;

    /// The rows of all tasks and of the journal after a position, in their order: at most `max_rows`, and until `max_bytes`
    /// are passed (at least one row if there is one). A row that was read in part is among them.
    fn read_all(&self, after: Position, max_rows: usize, max_bytes: usize) -> StoreFuture<FeedPage>;

    /// Where a reader of all rows begins, and whether rows after its cursor may be missing.
    fn locate(&self, start: FeedStart) -> StoreFuture<Located>;

    /// The greatest row that is committed, as this process learns of it.
    fn committed(&self) -> watch::Receiver<i64>;

    /// Deletes terminal and hidden-and-ended tasks beyond the limits, oldest first, at most `max` of them; says how many.
    /// A task with an active or paused webhook stays, and so does for a time one that a consumer has not read; dead letters
    /// outlive their task.
    fn evict(&self, retention: Retention, max: usize) -> StoreFuture<usize>;

    /// Deletes journal lines that are older than they are kept, at most `max` of them; says how many.
    fn evict_journal(&self, retention: JournalRetention, max: usize) -> StoreFuture<usize>;

    /// How many tasks there are in each state, hidden ones left out, and how many are parked.
    fn census(&self) -> StoreFuture<TaskCounts>;

    /// How nodes that share the store hear of each other's appends; none if this process is the only one.
    fn bus(&self) -> Option<Arc<dyn Bus>>;

    /// Random bytes that were made with the store and stay as long as it does: what is sealed with them can be read back
    /// after a restart, and nowhere else.
    fn secret(&self) -> [u8; 32];

    /// Whether a write would be accepted now; what is wrong if not.
    fn ready(&self) -> Result<(), StoreError>;

    /// Marks the end as clean and releases the store once everything queued is written.
    fn close(&self) -> StoreFuture<()>;
}

/// Everything that a server keeps: any store of tasks that also keeps webhooks, callbacks, keys and what consumers keep.
pub trait ServerStore: webhooks::WebhookStore + callbacks::CallbackStore + keys::KeyStore + hub::HubStore {}

impl<S: webhooks::WebhookStore + callbacks::CallbackStore + keys::KeyStore + hub::HubStore> ServerStore for S {}

/// A conversation of a caller with an agent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Conversation {
    pub owner: CallerId,
    pub agent: AgentName,
    pub context: ContextId,
}

/// The optimistic lock that an append is made under: what its writer knows of the task must still be so.
#[derive(Clone, Debug)]
pub enum AppendGuard {
    Create(TaskIdentity),
    /// The turn that runs.
    Owner(KnownVersion),
    /// Any other writer.
    Inbox(KnownVersion),
    /// A writer that takes over the turn: also refused with [`StoreError::Held`] while another live node holds it.
    Claim(KnownVersion),
}

/// What a writer knows of a task that is there. An append is refused with [`StoreError::Ended`] if the task has ended and
/// it changes the log or the row, with [`StoreError::Fenced`] if a turn was claimed since, and with [`StoreError::Stale`] if the log has
/// grown since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownVersion {
    pub key: TaskKey,
    /// The last event the writer knows.
    pub version: Seq,
    /// The last claim it knows.
    pub fence: Fence,
}

/// What never changes about a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskIdentity {
    pub id: TaskId,
    pub owner: CallerId,
    pub agent: AgentName,
    pub context: ContextId,
    /// Where it comes from.
    pub lineage: Lineage,
}

impl TaskIdentity {
    pub(crate) fn conversation(&self) -> Conversation {
        Conversation { owner: self.owner.clone(), agent: self.agent.clone(), context: self.context.clone() }
    }
}

/// One transaction on one task.
#[derive(Clone, Debug)]
pub struct Append {
    pub guard: AppendGuard,
    /// The events, each one line of JSON, joined by line feeds; empty if only the row changes.
    pub events: Bytes,
    /// How many events that is.
    pub count: u32,
    /// What becomes different in the task's row.
    pub row: RowPatch,
    /// The folded task as of the last of these events, kept with them.
    pub snapshot: Option<Bytes>,
    /// What the task says to later ones of its conversation from now on; as before if absent.
    pub note: Option<String>,
    /// What else is written with them.
    pub sides: SideWrites,
    /// Whether the store may refuse it when overloaded: new work yes; terminal events, cancellations and output no.
    pub refusable: bool,
}

/// What is written with an append and is no event.
#[derive(Clone, Debug, Default)]
pub struct SideWrites {
    /// The idempotency key that the events answer.
    pub send: Option<IdempotencyRecord>,
    /// A webhook of the task.
    pub webhook: Option<NewWebhook>,
    /// A cooldown that the append takes.
    pub cooldown: Option<Cooldown>,
}

/// The most cooldowns that are kept; beyond it the one that ends first is given up.
pub const COOLDOWNS: usize = 10_000;

/// Refuses an append with [`StoreError::CoolingDown`] until an earlier one's time is over, else takes the time for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cooldown {
    pub key: String,
    pub now: Timestamp,
    pub until: Timestamp,
}

impl SideWrites {
    /// Whether there is anything.
    pub fn is_empty(&self) -> bool {
        self.send.is_none() && self.webhook.is_none() && self.cooldown.is_none()
    }
}

/// The part of a task's row that events change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowState {
    pub state: TaskState,
    /// When it was entered; strictly increasing per task.
    pub status_at: Timestamp,
    /// Whether a turn waits, runs, or neither.
    pub phase: Phase,
    /// The fence from now on.
    pub fence: Fence,
    /// When a waiting task fails: its question is unanswered, or it is past its deadline.
    pub expires_at: Option<Timestamp>,
    /// Not visible to callers: a direct reply, or a task whose agent has not yet said what it will be.
    pub hidden: bool,
    /// Processes that its turn has lost since the last event that went out on the wire. A graceful shutdown is none.
    pub recoveries: u32,
}

/// What an append changes in a row. What it does not name stays as it is, also where another node wrote it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowPatch {
    pub status: Option<(TaskState, Timestamp)>,
    pub phase: Option<Phase>,
    pub fence: Option<Fence>,
    pub expires_at: Option<Option<Timestamp>>,
    pub hidden: Option<bool>,
    pub recoveries: Option<u32>,
}

impl RowPatch {
    /// What makes `after` of `before`. A new task's row is made of [`RowState::default`].
    pub fn between(before: &RowState, after: &RowState) -> Self {
        fn change<T: Copy + PartialEq>(before: &T, after: &T) -> Option<T> {
            (before != after).then_some(*after)
        }
        Self {
            status: change(&(before.state, before.status_at), &(after.state, after.status_at)),
            phase: change(&before.phase, &after.phase),
            fence: change(&before.fence, &after.fence),
            expires_at: change(&before.expires_at, &after.expires_at),
            hidden: change(&before.hidden, &after.hidden),
            recoveries: change(&before.recoveries, &after.recoveries),
        }
    }

    /// The row with the change made.
    #[must_use]
    pub fn onto(&self, row: &RowState) -> RowState {
        let (state, status_at) = self.status.unwrap_or((row.state, row.status_at));
        RowState {
            state,
            status_at,
            phase: self.phase.unwrap_or(row.phase),
            fence: self.fence.unwrap_or(row.fence),
            expires_at: self.expires_at.unwrap_or(row.expires_at),
            hidden: self.hidden.unwrap_or(row.hidden),
            recoveries: self.recoveries.unwrap_or(row.recoveries),
        }
    }
}

/// Whether a turn waits, runs, or neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Phase {
    /// A message waits for a turn; it has no owner.
    #[default]
    Queued,
    /// A turn that had begun, and was then lost or interrupted, waits for a permit; it has no owner. Unlike a queued one
    /// its agent is asked how to go on, and it goes before those that have not begun.
    Requeued,
    /// A turn runs; its node holds the lease.
    Running,
    /// Was running when its node shut down gracefully; it has no owner.
    Interrupted,
    /// Waits for an answer.
    Parked,
    /// Ended.
    Done,
}

impl Phase {
    /// Whether a turn waits for a slot, begun or not.
    pub fn is_queued(self) -> bool {
        matches!(self, Self::Queued | Self::Requeued)
    }
}

/// What an append came to.
#[derive(Clone, Copy, Debug)]
pub struct Appended {
    pub key: TaskKey,
    /// The number of the first event written; the others follow it. The next number to come if there were none.
    pub first_seq: Seq,
    /// The event row; zero if there was none.
    pub row: i64,
    /// The epoch that the events were written in.
    pub epoch: Epoch,
}

/// Which node holds a task's turn, as the node that asks sees it. Only a running turn is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Holder {
    /// None.
    #[default]
    Unheld,
    /// The node that asks.
    This,
    /// Another one that is alive.
    Other,
    /// One that is dead: any node may claim the turn.
    Dead,
}

/// A task's whole row.
#[derive(Clone, Debug)]
pub struct TaskRow {
    /// The store's name of it.
    pub key: TaskKey,
    pub task: TaskIdentity,
    pub state: RowState,
    pub holder: Holder,
    /// The last event, which is also the row's version.
    pub last_seq: Seq,
    /// The bytes of its event rows.
    pub bytes: u64,
    /// Whether it has or had webhooks, which are notified of its events.
    pub watched: bool,
}

/// What tells whether a task has changed since it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskHead {
    pub key: TaskKey,
    pub last_seq: Seq,
    pub fence: Fence,
    pub phase: Phase,
    pub holder: Holder,
}

/// A task as read back.
#[derive(Clone, Debug)]
pub struct LoadedTask {
    pub row: TaskRow,
    /// The newest snapshot, the event it is as of, and the epoch of that event.
    pub snapshot: Option<(Seq, Epoch, Bytes)>,
    /// The event rows after the snapshot; all of them if there is none.
    pub events: Vec<EventRow>,
}

impl LoadedTask {
    /// The bytes of its snapshot and events.
    pub fn size(&self) -> usize {
        let snapshot = self.snapshot.as_ref().map_or(0, |(_, _, snapshot)| snapshot.len());
        snapshot + self.events.iter().map(|row| row.events.len()).sum::<usize>()
    }
}

/// A task that was to be read only if it is small.
#[derive(Clone, Debug)]
pub enum LoadedTaskWithin {
    /// It is, and here it is.
    Whole(Box<LoadedTask>),
    /// It is larger; [`TaskRow::bytes`] says how large.
    Larger(Box<TaskRow>),
}

/// One commit's events of one task.
#[derive(Clone, Debug)]
pub struct EventRow {
    pub row: i64,
    /// The number of its first event.
    pub first_seq: Seq,
    /// How many events it holds.
    pub count: u32,
    /// The epoch it was written in.
    pub epoch: Epoch,
    /// The events, one line each.
    pub events: Bytes,
}

impl EventRow {
    /// The lines of its events with their numbers.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (Seq, &[u8])> {
        let numbers = (self.first_seq.0..).map(Seq);
        numbers.zip(self.events.split(|byte| *byte == b'\n'))
    }

    /// The line of one event.
    pub(crate) fn line(&self, seq: Seq) -> Option<&[u8]> {
        self.lines().find(|(number, _)| *number == seq).map(|(_, line)| line)
    }
}

/// Which tasks to list. The owner is never optional.
#[derive(Clone, Debug)]
pub struct ListQuery {
    pub owner: CallerId,
    /// Of which agents; all if absent.
    pub agents: Option<Vec<AgentName>>,
    pub filter: ListFilter,
}

/// Which tasks a caller wants to see.
#[derive(Clone, Debug, Default)]
pub struct ListFilter {
    pub context: Option<ContextId>,
    pub state: Option<TaskState>,
    /// With a status at or after a time.
    pub since: Option<Timestamp>,
    /// After the last task of the page before.
    pub after: Option<ListPosition>,
    pub page_size: usize,
}

/// Where a task stands in a list: its status time, and its key among those of the same time.
pub type ListPosition = (Timestamp, TaskKey);

/// One page.
#[derive(Clone, Debug)]
pub struct ListPage {
    pub places: Vec<ListPosition>,
    /// The bytes of the events of each, in the same order.
    pub sizes: Vec<u64>,
    /// Where the next page begins; absent on the last one.
    pub next: Option<ListPosition>,
    /// How many tasks match in all.
    pub total: u64,
}

/// Where an idempotency key counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IdempotencyScope {
    pub owner: CallerId,
    /// The address that was asked: an agent's name, or the root.
    pub address: String,
    pub key: String,
}

/// What was accepted under a key. Lives as long as its task.
#[derive(Clone, Debug)]
pub struct IdempotencyRecord {
    pub scope: IdempotencyScope,
    /// Digest of what was sent.
    pub digest: [u8; 32],
    /// The task it went to; the store fills it in.
    pub task: Option<TaskId>,
    /// The number of the message's event; the store fills it in as the first of the append.
    pub seq: Seq,
}

/// How long terminal tasks are kept.
#[derive(Clone, Copy, Debug)]
pub struct Retention {
    /// Ended before this: goes.
    pub ended_before: Timestamp,
    /// At most so many tasks.
    pub max_tasks: u64,
    /// At most so many bytes in the file, free pages not counted.
    pub max_bytes: u64,
    /// Ended at or after this: stays until every consumer has read its last row.
    pub hold_since: Timestamp,
}

/// How many tasks there are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskCounts {
    pub by_state: Vec<(TaskState, u64)>,
    /// Parked ones by owner.
    pub parked: Vec<(CallerId, u64)>,
}

/// Why the store did not do it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// A turn of the task was claimed since the writer looked.
    #[error("another turn owns the task")]
    Fenced,
    /// Nothing follows the terminal event.
    #[error("the task has already ended")]
    Ended,
    /// A claim of a turn that another live node holds.
    #[error("another node holds the task's turn")]
    Held,
    /// The log has grown since the writer looked.
    #[error("the task has changed since it was read")]
    Stale,
    /// The task is not there (any more).
    #[error("no such task")]
    Missing,
    /// The idempotency key was taken by another send in the meantime.
    #[error("the idempotency key is already used")]
    KeyTaken,
    /// The task has as many webhooks as it may have.
    #[error("a task has at most {max} webhooks")]
    TooManyWebhooks {
        /// How many that is.
        max: usize,
    },
    /// An earlier append has taken the cooldown.
    #[error("{key} cools down until {until}, try again then")]
    CoolingDown {
        /// Of what.
        key: String,
        /// When it is over.
        until: Timestamp,
    },
    /// Another process has taken the consumer, or it is not there.
    #[error("another process reads as the consumer {0:?}")]
    ConsumerTaken(String),
    /// The registration has another version than the writer knows.
    #[error("the registration has version {current} now")]
    VersionConflict {
        /// 0 if there is none.
        current: u64,
    },
    /// It is larger than it may be.
    #[error("{what} has {bytes} bytes, which is more than {max}")]
    TooLarge {
        /// What is.
        what: String,
        /// How large it is.
        bytes: usize,
        /// How large it may be.
        max: usize,
    },
    /// The store is too far behind to take new work.
    #[error("the store is {delay_ms} ms behind, try again")]
    Overloaded {
        /// How far behind it is.
        delay_ms: u64,
    },
    /// The disk or file said no; nothing of the append was written.
    #[error("the store cannot write: {0}")]
    Failed(String),
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    /// Whether the writer did not know the task as it is: it catches up with the log and decides again.
    pub(crate) fn is_behind(&self) -> bool {
        matches!(self, Self::Fenced | Self::Ended | Self::Stale | Self::Held)
    }
}
