//! Short ways to write appends, so that a test shows only what it is about.

use std::sync::Arc;

use bytes::Bytes;
use switchboard_a2a::{TaskId, TaskState, Timestamp};
use switchboard_engine::ids::{Cursor, Epoch, Fence, Seq, TaskKey};
use switchboard_engine::store::lineage::Lineage;
use switchboard_engine::store::webhooks::{
    Attempt, DeliveryKey, DeliveryRow, NewDelivery, NewWebhook, OutboxWrite, WebhookKey, WebhookStore,
};
use switchboard_engine::store::{
    Append, AppendGuard, Appended, Conversation, Cooldown, IdempotencyRecord, IdempotencyScope, KnownVersion,
    ListFilter, ListQuery, Phase, RowPatch, RowState, SideWrites, Store, StoreError, TaskIdentity,
};

/// A task's row: Submitted and Queued until told otherwise.
pub(crate) fn row(at: i64) -> RowState {
    RowState {
        state: TaskState::Submitted,
        status_at: Timestamp(at),
        phase: Phase::Queued,
        fence: Fence(0),
        expires_at: None,
        hidden: false,
        recoveries: 0,
    }
}

pub(crate) fn working(at: i64, fence: u64) -> RowState {
    RowState { state: TaskState::Working, phase: Phase::Running, fence: Fence(fence), ..row(at) }
}

pub(crate) fn done(at: i64, fence: u64) -> RowState {
    RowState { state: TaskState::Completed, phase: Phase::Done, fence: Fence(fence), ..row(at) }
}

pub(crate) fn parked(at: i64, expires_at: i64) -> RowState {
    let expires_at = Some(Timestamp(expires_at));
    RowState { state: TaskState::InputRequired, phase: Phase::Parked, expires_at, ..row(at) }
}

pub(crate) fn hidden(row: RowState) -> RowState {
    RowState { hidden: true, ..row }
}

pub(crate) fn new_task(owner: &str, agent: &str, context: &str) -> TaskIdentity {
    TaskIdentity {
        id: TaskId::generate(),
        owner: owner.into(),
        agent: agent.into(),
        context: context.into(),
        lineage: Lineage::default(),
    }
}

/// The line of an event, for tests to which it does not matter which.
pub(crate) const EVENT: &str = "\"interrupted\"";

/// The line of an event with this text.
pub(crate) fn event(text: &str) -> String {
    format!("{{\"saved\":\"{text}\"}}")
}

/// An append of events, one per text.
pub(crate) fn append(guard: AppendGuard, events: &[&str], row: RowState) -> Append {
    Append {
        guard,
        events: Bytes::from(events.join("\n")),
        count: u32::try_from(events.len()).unwrap(),
        row: whole(row),
        snapshot: None,
        note: None,
        sides: SideWrites::default(),
        refusable: false,
    }
}

pub(crate) fn create(task: &TaskIdentity, events: &[&str], row: RowState) -> Append {
    append(AppendGuard::Create(Arc::new(task.clone())), events, row)
}

/// What an append need not know because its test is not about it: [`Writes::write`] looks it up.
const AS_IT_IS: u64 = u64::MAX;

fn known(key: TaskKey, version: u64, fence: u64) -> KnownVersion {
    KnownVersion { key, version: Seq(version), fence: Fence(fence) }
}

/// By the turn that has this fence and knows the whole log.
pub(crate) fn owner(key: TaskKey, fence: u64, events: &[&str], row: RowState) -> Append {
    append(AppendGuard::Owner(known(key, AS_IT_IS, fence)), events, row)
}

/// By a writer that knows the log up to this event and the last claim.
pub(crate) fn inbox(key: TaskKey, version: u64, events: &[&str], row: RowState) -> Append {
    append(AppendGuard::Inbox(known(key, version, AS_IT_IS)), events, row)
}

/// By a node that takes the turn.
pub(crate) fn claim(key: TaskKey, version: u64, events: &[&str], row: RowState) -> Append {
    append(AppendGuard::Claim(known(key, version, AS_IT_IS)), events, row)
}

/// The same append by a writer that knows this version and this fence.
pub(crate) fn knowing(mut append: Append, version: u64, fence: u64) -> Append {
    if let AppendGuard::Owner(guard) | AppendGuard::Inbox(guard) | AppendGuard::Claim(guard) = &mut append.guard {
        *guard = known(guard.key, version, fence);
    }
    append
}

/// Everything of a row.
fn whole(row: RowState) -> RowPatch {
    RowPatch {
        status: Some((row.state, row.status_at)),
        phase: Some(row.phase),
        fence: Some(row.fence),
        expires_at: Some(row.expires_at),
        hidden: Some(row.hidden),
        recoveries: Some(row.recoveries),
    }
}

pub(crate) trait Writes: Store {
    /// Appends, with what the guard leaves open as the store has it.
    async fn write(&self, mut append: Append) -> Result<Appended, StoreError> {
        if let AppendGuard::Owner(guard) | AppendGuard::Inbox(guard) | AppendGuard::Claim(guard) = &mut append.guard
            && let Some(task) = self.load_some(vec![guard.key], 1).await?.pop()
        {
            if guard.version.0 == AS_IT_IS {
                guard.version = task.row.last_seq;
            }
            if guard.fence.0 == AS_IT_IS {
                guard.fence = task.row.state.fence;
            }
        }
        self.append(append).await
    }

    /// The epoch that the store writes in now.
    async fn epoch_now(&self) -> Epoch {
        let task = new_task("epoch", "epoch", "epoch");
        self.append(create(&task, &[EVENT], hidden(done(1, 1)))).await.unwrap().epoch
    }
}

impl<S: Store> Writes for S {}

pub(crate) fn with_snapshot(append: Append, snapshot: &str) -> Append {
    Append { snapshot: Some(Bytes::copy_from_slice(snapshot.as_bytes())), ..append }
}

pub(crate) fn with_send(append: Append, owner: &str, address: &str, key: &str) -> Append {
    let send = IdempotencyRecord { scope: scope(owner, address, key), digest: [7; 32], task: None, seq: Seq(0) };
    Append { sides: SideWrites { send: Some(send), ..append.sides }, ..append }
}

pub(crate) fn with_cooldown(append: Append, key: &str, now: i64, until: i64) -> Append {
    let cooldown = Cooldown { key: key.to_owned(), now: Timestamp(now), until: Timestamp(until) };
    Append { sides: SideWrites { cooldown: Some(cooldown), ..append.sides }, ..append }
}

pub(crate) fn scope(owner: &str, address: &str, key: &str) -> IdempotencyScope {
    IdempotencyScope { owner: owner.into(), address: address.to_owned(), key: key.to_owned() }
}

/// A webhook that begins with the next event after `cursor`; at most two to a task.
pub(crate) fn webhook(id: &str, endpoint: &str, cursor: u64) -> NewWebhook {
    NewWebhook {
        id: id.to_owned(),
        config: format!("{{\"url\":\"{endpoint}/{id}\"}}"),
        form: 0,
        endpoint: endpoint.to_owned(),
        cursor: Seq(cursor),
        late: false,
        max: 2,
        at: Timestamp(5),
    }
}

pub(crate) fn with_webhook(append: Append, webhook: NewWebhook) -> Append {
    Append { sides: SideWrites { webhook: Some(webhook), ..append.sides }, ..append }
}

/// A delivery of the events `first` to `last`, made at a time.
pub(crate) fn delivery(first: u64, last: u64, at: i64) -> NewDelivery {
    NewDelivery {
        first: Seq(first),
        last: Cursor { epoch: Epoch(1), seq: Seq(last) },
        about: "working".to_owned(),
        form: 3,
        body: Some(Bytes::from(format!("events {first} to {last}"))),
        at: Timestamp(at),
    }
}

/// An attempt that ended at a time with a status.
pub(crate) fn attempt(at: i64, status: u16) -> Attempt {
    let problem = if status < 300 { String::new() } else { format!("it said {status}") };
    Attempt { at: Timestamp(at), duration_ms: 12, status: Some(status), problem }
}

/// Creates a task with three events and a webhook that has heard of none; their keys.
pub(crate) async fn make_watched(
    store: &impl WebhookStore,
    id: &str,
    endpoint: &str,
    row: RowState,
) -> (TaskKey, WebhookKey) {
    let made = with_webhook(create(&new_task("ann", "echo", "c"), &[EVENT; 3], row), webhook(id, endpoint, 0));
    let key = store.append(made).await.unwrap().key;
    (key, store.webhook(key, id).await.unwrap().unwrap().key)
}

/// The delivery that is next in the order of a webhook.
pub(crate) async fn next(store: &impl WebhookStore, webhook: WebhookKey) -> Option<DeliveryRow> {
    store.head(webhook).await.unwrap().unwrap().delivery
}

/// Makes the next delivery of a webhook.
pub(crate) async fn prepare(store: &impl WebhookStore, webhook: WebhookKey, delivery: NewDelivery) -> DeliveryKey {
    store.outbox(OutboxWrite::Prepare { webhook, delivery }).await.unwrap();
    next(store, webhook).await.unwrap().key
}

/// Makes the next delivery of a webhook and gives it up.
pub(crate) async fn bury(
    store: &impl WebhookStore,
    webhook: WebhookKey,
    delivery: NewDelivery,
    at: i64,
) -> DeliveryKey {
    let delivery = prepare(store, webhook, delivery).await;
    store.outbox(OutboxWrite::Dead { body: None, delivery, attempt: attempt(at, 500), finished: false }).await.unwrap();
    delivery
}

/// Creates a task with one event; its name and key.
pub(crate) async fn make(
    store: &impl Store,
    owner: &str,
    agent: &str,
    context: &str,
    row: RowState,
) -> (TaskId, TaskKey) {
    let task = new_task(owner, agent, context);
    let appended = store.append(create(&task, &[EVENT], row)).await.unwrap();
    (task.id, appended.key)
}

/// What an owner and the agent `echo` say in the context `c`.
pub(crate) fn conversation(owner: &str) -> Conversation {
    Conversation { owner: owner.into(), agent: "echo".into(), context: "c".into() }
}

/// All of an owner's tasks.
pub(crate) fn query(owner: &str) -> ListQuery {
    ListQuery { owner: owner.into(), agents: None, parent: None, filter: page() }
}

/// Those of an owner's tasks that a filter leaves.
pub(crate) fn filtered(owner: &str, filter: ListFilter) -> ListQuery {
    ListQuery { filter, ..query(owner) }
}

pub(crate) fn page() -> ListFilter {
    ListFilter { page_size: 50, ..ListFilter::default() }
}

/// Compares errors by their words, which name every variant.
pub(crate) fn refused<T: std::fmt::Debug>(result: Result<T, StoreError>, expected: &StoreError) {
    assert_eq!(result.unwrap_err().to_string(), expected.to_string());
}
