//! The `WebhookStore` trait: webhooks, each with a cursor in its task's log, and one row per delivery.
//!
//! A webhook comes into being with an append to its task ([`SideWrites`](super::SideWrites)), so that the numbers it starts at
//! cannot move meanwhile. Everything after that is here. The store knows when a delivery is due and to which endpoint it
//! goes; what else is in a configuration and in a body is not its business.

use bytes::Bytes;
use switchboard_a2a::{TaskId, Timestamp};

use super::{Retention, StoreFuture};
use crate::ids::{AgentName, CallerId, Cursor, Seq, TaskKey};

/// The store's integer name of a webhook; operators use it too. Never used twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WebhookKey(pub i64);

/// The store's integer name of a delivery; operators use it too. Never used twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeliveryKey(pub i64);

/// A webhook as its caller set it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewWebhook {
    /// Its name within its task. One of the same name is replaced: if it had come to its end or was disabled it begins
    /// again at `cursor`, else it goes on where it is.
    pub id: String,
    /// What it is about, as a JSON object. Its `url` is where it goes.
    pub config: String,
    /// Says in which form it wants its bodies. If that changes, what was made in the other form and not taken yet is made
    /// anew.
    pub form: u8,
    /// The endpoint it goes to; all webhooks of one endpoint can be held back together.
    pub endpoint: String,
    /// The last event that it is not told of.
    pub cursor: Seq,
    /// Its task had stopped when it was set, so that it begins with the task as it is.
    pub late: bool,
    /// How many webhooks a task may have; one too many is refused with
    /// [`StoreError::TooManyWebhooks`](super::StoreError::TooManyWebhooks).
    pub max: usize,
    pub at: Timestamp,
}

/// Whether a webhook is told of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WebhookState {
    Active,
    /// An operator holds it back.
    Paused,
    /// Its endpoint wants no more.
    Disabled,
    /// Its task has ended and all was told.
    Finished,
}

/// A webhook as stored.
#[derive(Clone, Debug)]
pub struct WebhookRow {
    /// The store's name of it.
    pub key: WebhookKey,
    /// The store's name of its task; the task itself may be gone if there are dead letters left.
    pub task_key: TaskKey,
    pub task: TaskId,
    pub owner: CallerId,
    pub agent: AgentName,
    /// Its name within its task.
    pub id: String,
    /// What it is about, as JSON.
    pub config: String,
    /// The endpoint it goes to.
    pub endpoint: String,
    /// The last event that is delivered, dead or not asked for.
    pub cursor: Seq,
    /// It begins with its task as it is, see [`NewWebhook::late`]; cleared once its cursor has moved.
    pub late: bool,
    /// Whether it is told of events.
    pub state: WebhookState,
    /// Rises each time it is set to something else or begins again: a step that was begun under another one is not taken,
    /// see [`OutboxWrite::IfStill`].
    pub revision: u64,
    /// When it began: it was set, or set again after it had come to its end or was disabled. Later each time.
    pub began_at: Timestamp,
    /// What its task's log takes; nothing once the task is gone.
    pub task_bytes: u64,
}

/// How far a delivery has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeliveryState {
    /// Not delivered yet.
    Pending,
    /// The endpoint has it; its body is gone.
    Delivered,
    /// Given up; its body is kept.
    Dead,
}

/// One body that is to be delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDelivery {
    /// The first event it tells of.
    pub first: Seq,
    /// The last event it tells of, with its epoch: part of its name at the endpoint.
    pub last: Cursor,
    /// What it tells, in a word or two: a task state, or that an artifact grew.
    pub about: String,
    /// The form of the body, which the store keeps for the sender.
    pub form: u8,
    /// The body, unless it is large: then it is made again from the log as long as that is there.
    pub body: Option<Bytes>,
    pub at: Timestamp,
}

/// A delivery as stored.
#[derive(Clone, Debug)]
pub struct DeliveryRow {
    /// The store's name of it.
    pub key: DeliveryKey,
    pub webhook: WebhookKey,
    /// The first event it tells of.
    pub first: Seq,
    /// The last event it tells of.
    pub last: Cursor,
    pub about: String,
    /// The form of the body.
    pub form: u8,
    /// The body; none once it is delivered, and none while it is pending if it is large.
    pub body: Option<Bytes>,
    /// How far it has come.
    pub state: DeliveryState,
    /// An operator sends it once more, beside what comes in order.
    pub replay: bool,
    /// How often it was tried.
    pub attempts: u32,
    /// When it is to be tried next; only for a pending one.
    pub due_at: Timestamp,
    pub created_at: Timestamp,
    /// When its webhook had begun, see [`WebhookRow::began_at`].
    pub began_at: Timestamp,
    /// What the last attempt came to.
    pub last_attempt: Option<Attempt>,
}

/// What one attempt came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    pub at: Timestamp,
    pub duration_ms: u32,
    /// The HTTP status, if there was an answer.
    pub status: Option<u16>,
    /// What went wrong, in plain words; empty if nothing did.
    pub problem: String,
}

/// A webhook and what it is to deliver now.
#[derive(Clone, Debug)]
pub struct OutboxHead {
    pub webhook: WebhookRow,
    /// Its next delivery in order.
    pub delivery: Option<DeliveryRow>,
    /// The first of those that an operator sends once more.
    pub replay: Option<DeliveryRow>,
    /// The last event of its task.
    pub task_last: Seq,
    pub task_ended_at: Option<Timestamp>,
}

/// One step of one webhook. Each names what it expects, so that a step for a delivery that has gone on does nothing.
#[derive(Clone, Debug)]
pub enum OutboxWrite {
    /// A step that is taken only if the webhook was not set to something else since: what came of an attempt at the old
    /// address says nothing of the new one, and what was made of the log for the old configuration may leave out what the
    /// new one asks for. That a delivery was taken counts as long as the address and the form are the same: its receiver need not
    /// get it again because of another token.
    IfStill {
        webhook: WebhookKey,
        /// As the step knows it.
        revision: u64,
        write: Box<OutboxWrite>,
    },
    /// Events that are not asked for need not be looked at again.
    Skipped {
        webhook: WebhookKey,
        /// The last of them.
        cursor: Seq,
    },
    /// The next delivery in order was made; it is due at once. Does nothing if there is one already.
    Prepare { webhook: WebhookKey, delivery: NewDelivery },
    /// The delivery in order or the replay was taken by its endpoint: its body goes, and the cursor of the webhook moves
    /// to its last event unless it was a replay.
    Delivered {
        delivery: DeliveryKey,
        /// What the attempt came to.
        attempt: Attempt,
        /// Nothing more is to come: the webhook is finished.
        finished: bool,
        /// The one after it, if it is known already.
        next: Option<NewDelivery>,
    },
    /// It was not taken and is tried again.
    Failed {
        delivery: DeliveryKey,
        /// What the attempt came to.
        attempt: Attempt,
        /// When it is tried again.
        due_at: Timestamp,
        /// When it may be tried again at the earliest, whatever happens to its endpoint.
        not_before: Timestamp,
    },
    /// It was not taken and is given up; its body stays. The cursor moves as for a delivered one.
    Dead {
        delivery: DeliveryKey,
        /// Its body, if that is not stored yet.
        body: Option<Bytes>,
        /// What the attempt came to.
        attempt: Attempt,
        /// Nothing more is to come: the webhook is finished.
        finished: bool,
    },
    /// What was never tried is given up: made and dead in one.
    Abandon {
        webhook: WebhookKey,
        /// What it was not told.
        delivery: NewDelivery,
        problem: String,
    },
    /// The endpoint wants no more: the delivery is dead, the webhook disabled.
    Disabled {
        delivery: DeliveryKey,
        /// Its body, if that is not stored yet.
        body: Option<Bytes>,
        /// What the attempt came to.
        attempt: Attempt,
    },
    /// Its task has ended and nothing more is asked for.
    Finished {
        webhook: WebhookKey,
        /// The last event of its task.
        cursor: Seq,
    },
}

/// Which webhooks an operator wants to see.
#[derive(Clone, Debug, Default)]
pub struct WebhookFilter {
    pub task: Option<TaskId>,
    pub state: Option<WebhookState>,
    pub after: WebhookKey,
    pub max: usize,
}

/// A webhook as operators see it.
#[derive(Clone, Debug)]
pub struct WebhookSummary {
    pub webhook: WebhookRow,
    /// Its next delivery, without its body, if one is pending.
    pub pending: Option<DeliveryRow>,
    pub delivered: u64,
    /// How many were given up.
    pub dead: u64,
    /// Whether its task has events that it was not told of.
    pub lags: bool,
}

/// How the outbox stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutboxCounts {
    /// Webhooks that were not told everything (a delivery waits, or their task has ended), and what is sent once more.
    pub behind: u64,
    /// Since when at least the one that is furthest behind is: its delivery was made, or its task has ended.
    pub behind_since: Option<Timestamp>,
    pub dead: u64,
}

/// Durable webhooks. Implementations are cheap to share and safe to call from any thread.
pub trait WebhookStore: super::Store {
    /// One webhook of a task by its name.
    fn webhook(&self, task: TaskKey, id: &str) -> StoreFuture<Option<WebhookRow>>;

    /// The webhooks of a task after one of them, oldest first.
    fn webhooks(&self, task: TaskKey, after: WebhookKey, max: usize) -> StoreFuture<Vec<WebhookRow>>;

    /// Deletes a webhook with all its deliveries; says whether there was one.
    fn delete_webhook(&self, task: TaskKey, id: &str) -> StoreFuture<bool>;

    /// One webhook with its next deliveries.
    fn head(&self, webhook: WebhookKey) -> StoreFuture<Option<OutboxHead>>;

    /// The active webhooks of a task.
    fn active_webhooks(&self, task: TaskKey) -> StoreFuture<Vec<WebhookRoute>>;

    /// Active webhooks without a pending delivery whose task has events after their cursor or has ended, after a key.
    fn lagging_webhooks(&self, after: WebhookKey, max: usize) -> StoreFuture<Vec<WebhookRoute>>;

    /// Pending deliveries of active webhooks (replays: of any) that are due until a time, in the order of their times and
    /// keys, after a place in that order.
    fn due_deliveries(
        &self,
        after: (Timestamp, DeliveryKey),
        until: Timestamp,
        max: usize,
    ) -> StoreFuture<Vec<DueDelivery>>;

    /// When the next delivery after a time is due.
    fn next_due(&self, after: Timestamp) -> StoreFuture<Option<Timestamp>>;

    /// One delivery with its webhook.
    fn delivery(&self, delivery: DeliveryKey) -> StoreFuture<Option<(WebhookRow, DeliveryRow)>>;

    /// Takes a step, in one commit with whatever else is to be written at that moment.
    fn outbox(&self, write: OutboxWrite) -> StoreFuture<()>;

    /// Makes every pending delivery to an endpoint due now, or as soon as it may be; says how many.
    fn release_endpoint(&self, endpoint: &str, now: Timestamp) -> StoreFuture<usize>;

    /// Active and paused webhooks that began, and whose tasks ended, before a time.
    fn overdue_webhooks(&self, ended_before: Timestamp, max: usize) -> StoreFuture<Vec<WebhookKey>>;

    /// Active and paused webhooks of ended tasks that would be deleted now, because there is too much, if they had no events
    /// left to deliver; none of tasks that may stay once all others have gone that can.
    fn held_beyond_caps(&self, retention: Retention, max: usize) -> StoreFuture<Vec<WebhookKey>>;

    /// Webhooks as operators see them, oldest first.
    fn list_webhooks(&self, filter: WebhookFilter) -> StoreFuture<Vec<WebhookSummary>>;

    /// The newest deliveries of a webhook, newest first, without their bodies.
    fn deliveries(&self, webhook: WebhookKey, max: usize) -> StoreFuture<Vec<DeliveryRow>>;

    /// Dead deliveries, oldest first, after a key, without their bodies.
    fn dead_letters(&self, after: DeliveryKey, max: usize) -> StoreFuture<Vec<(WebhookRow, DeliveryRow)>>;

    /// Has a delivered or dead delivery sent once more; says whether there was one.
    fn replay(&self, delivery: DeliveryKey, now: Timestamp) -> StoreFuture<bool>;

    /// Pauses an active webhook, or makes a paused or disabled one active again; says whether anything changed.
    fn set_webhook_state(&self, webhook: WebhookKey, state: WebhookState, now: Timestamp) -> StoreFuture<bool>;

    /// Deletes dead letters that died before a time, and the oldest beyond a number or so many bytes of bodies; says how
    /// many.
    fn prune_dead_letters(&self, died_before: Timestamp, keep: usize, keep_bytes: u64) -> StoreFuture<usize>;

    /// Which secrets deliveries are signed with.
    fn signing(&self) -> StoreFuture<Signing>;

    /// Begins a new generation of secrets; the one before is used until the time given, and those before that until the
    /// times that were given then. If that time has come already, no earlier one is used any more.
    fn rotate_signing(&self, now: Timestamp, previous_until: Timestamp) -> StoreFuture<Signing>;

    /// How the outbox stands.
    fn outbox_census(&self) -> StoreFuture<OutboxCounts>;
}

/// A webhook, whose it is and where it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookRoute {
    pub webhook: WebhookKey,
    pub owner: CallerId,
    pub endpoint: String,
}

/// A delivery that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueDelivery {
    pub due_at: Timestamp,
    pub delivery: DeliveryKey,
    /// Its webhook and where it goes.
    pub route: WebhookRoute,
}

/// Which secrets deliveries are signed with. The secrets themselves follow from the store's own
/// ([`Store::secret`](super::Store::secret)) and this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signing {
    /// Rises with every rotation; 1 at first.
    pub generation: u64,
    /// Earlier generations that are used too, and until when; the newest first.
    pub previous: Vec<(u64, Timestamp)>,
}
