//! The `Store` trait. There is one way to change a task, [`Store::append`], and it is one transaction.
//!
//! A store knows rows and bytes, not meanings: the kernel decides what an event does to a task, the store decides
//! whether the writer may still write, numbers the events, and makes them durable. Nothing is visible to any reader
//! before its commit.

#![expect(missing_docs, reason = "only what a name and its type do not say is written down")]

pub mod callbacks;
mod error;
pub mod feed;
pub mod forwarding;
pub mod hub;
pub mod keys;
pub mod lineage;
mod rows;
pub mod survey;
pub mod webhooks;

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use switchboard_a2a::{ContextId, TaskId, TaskState, Timestamp};
use tokio::sync::watch;

use crate::bus::Bus;
use crate::ids::{AgentName, CallerId, Epoch, Fence, Seq, TaskKey};
use feed::{FeedPage, FeedRow, FeedStart, JournalRetention, Located, LogsQuery, Position};
use lineage::{Lineage, TreeLimits};
use survey::{SurveyPage, SurveyQuery, WaitingQuery};
use webhooks::NewWebhook;

pub use error::StoreError;
pub use rows::{EventRow, Holder, LoadedTask, LoadedTaskWithin, Phase, RowPatch, RowState, TaskHead, TaskRow};

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
    /// tasks themselves come with it if they are small; else they are for [`Store::load_some`], so that a page need not
    /// be in memory all at once.
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

    /// Waiting or queued tasks that expire at or before a time, earliest first, after the given expiry and key.
    fn expired(&self, now: Timestamp, after: (Timestamp, TaskKey), max: usize) -> StoreFuture<Vec<TaskRow>>;

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

    /// A task and those above it, the nearest first, until one is gone or there are `max`.
    fn ancestors(&self, key: TaskKey, max: usize) -> StoreFuture<Vec<TaskRow>>;

    /// The tasks of a tree without its root, ended ones too. Oldest first, after the given key.
    fn tree(&self, root: TaskKey, after: TaskKey, max: usize) -> StoreFuture<Vec<TaskRow>>;

    /// Tasks in an interrupted state, whose question waits for an answer. Oldest question first.
    fn waiting(&self, query: WaitingQuery) -> StoreFuture<Vec<TaskRow>>;

    /// Tasks of all owners that a filter leaves, for operators; hidden ones are left out.
    fn survey(&self, query: SurveyQuery) -> StoreFuture<SurveyPage>;

    /// The rows of all tasks and of the journal after a position, in their order: at most `max_rows`, and until `max_bytes`
    /// are passed (at least one row if there is one). A row that was read in part is among them.
    fn read_all(&self, after: Position, max_rows: usize, max_bytes: usize) -> StoreFuture<FeedPage>;

    /// The rows of some tasks, in the order of all rows or in the opposite one. Of a long log only the rows asked for are read.
    fn read_logs(&self, query: LogsQuery) -> StoreFuture<Vec<FeedRow>>;

    /// Where a reader of all rows begins, and whether rows after its cursor may be missing.
    fn locate(&self, start: FeedStart) -> StoreFuture<Located>;

    /// The greatest row that is committed, as this process learns of it.
    fn committed(&self) -> watch::Receiver<i64>;

    /// Deletes terminal and hidden-and-ended tasks beyond the limits, oldest first, at most `max` of them; says how many.
    /// A task with an active or paused webhook stays, and so does for a time one that a consumer has not read; dead letters
    /// outlive their task.
    fn evict(&self, retention: Retention, max: usize) -> StoreFuture<usize>;

    /// How many of the `max` oldest ended tasks [`Store::evict`] keeps only because a consumer has not read them.
    fn held_by_consumers(&self, retention: Retention, max: usize) -> StoreFuture<usize>;

    /// Deletes journal lines that are older than they are kept, at most `max` of them; says how many.
    fn evict_journal(&self, retention: JournalRetention, max: usize) -> StoreFuture<usize>;

    /// How many tasks there are in each state, hidden ones left out, and how many are parked.
    fn census(&self) -> StoreFuture<TaskCounts>;

    /// How nodes that share the store hear of each other's appends; none if this process is the only one.
    fn bus(&self) -> Option<Arc<dyn Bus>>;

    /// Whether other nodes may write to it as well.
    fn is_shared(&self) -> bool {
        self.bus().is_some()
    }

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
    Create(Arc<TaskIdentity>),
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
    /// The caller whose limits its turns count against.
    pub fn payer(&self) -> &CallerId {
        self.lineage.payer.as_ref().unwrap_or(&self.owner)
    }

    /// The task whose turn has started it.
    pub fn parent(&self) -> Option<TaskKey> {
        self.lineage.ancestors.map(|ancestors| ancestors.parent)
    }

    /// Whether the turn of another task has started it.
    pub fn is_child(&self) -> bool {
        self.lineage.ancestors.is_some()
    }

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
    /// How many tasks there may be once this one is created; refused with [`StoreError::TreeFull`].
    pub tree: Option<TreeLimits>,
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

/// Which tasks to list. The owner is never optional.
#[derive(Clone, Debug)]
pub struct ListQuery {
    pub owner: CallerId,
    /// Of which agents; all if absent.
    pub agents: Option<Vec<AgentName>>,
    /// Only those that a task has started.
    pub parent: Option<TaskKey>,
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
    /// All of the tasks, in the same order, or none.
    pub loaded: Vec<LoadedTask>,
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
