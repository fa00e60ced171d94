//! A store that counts what is read of tasks' logs, and whose journal and registrations a test can make unwritable.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use switchboard_a2a::{ContextId, TaskId, TaskState, Timestamp};
use switchboard_engine::Bus;
use switchboard_engine::ids::{AgentName, CallerId, Seq, TaskKey};
use switchboard_engine::store::callbacks::{CallbackRow, CallbackStore, CallbackUpdate, UpdateAdded};
use switchboard_engine::store::feed::{
    FeedCursor, FeedPage, FeedRow, FeedStart, JournalLine, JournalRetention, Located, LogsQuery, Position,
};
use switchboard_engine::store::hub::{
    Advance, ClaimedJob, ConsumerRow, HealthSeries, HealthStep, HealthSum, HubStore, JobEnd, NewJob, PutRegistration,
    RegistrationRow,
};
use switchboard_engine::store::keys::{KeyRow, KeyStore};
use switchboard_engine::store::survey::{SurveyPage, SurveyQuery, WaitingQuery};
use switchboard_engine::store::webhooks::{
    DeliveryKey, DeliveryRow, DueDelivery, OutboxCounts, OutboxHead, OutboxWrite, Signing, WebhookFilter, WebhookKey,
    WebhookRoute, WebhookRow, WebhookState, WebhookStore, WebhookSummary,
};
use switchboard_engine::store::{
    Append, Appended, Conversation, EventRow, IdempotencyRecord, IdempotencyScope, ListPage, ListQuery, LoadedTask,
    LoadedTaskWithin, Retention, ServerStore, Store, StoreError, StoreFuture, TaskCounts, TaskHead, TaskRow,
};
use switchboard_store::{Durability, Options, SqliteStore};
use tokio::sync::watch;

/// What was read since the last reset. Pages of all rows do not count, nor in rows and bytes what is read of one log:
/// consumers read both at any time.
#[derive(Default)]
pub(crate) struct Counts {
    /// Reads of one log.
    reads: AtomicUsize,
    /// What was read of the logs of several tasks.
    rows: AtomicUsize,
    bytes: AtomicUsize,
    /// The bytes of the largest of all reads.
    largest: AtomicUsize,
    /// Tasks that were read whole.
    loads: AtomicUsize,
    journal_fails: AtomicBool,
    rows_fail: AtomicBool,
    /// Only those of agents, tombstones among them.
    agent_rows_fail: AtomicBool,
    /// Jobs cannot be deleted by their names.
    jobs_stay: AtomicBool,
    /// The ends of jobs cannot be stored.
    ends_fail: AtomicBool,
    /// Rows of registrations that were refused therefore.
    failed_rows: AtomicUsize,
    /// Rows of agents that were written and not deleted by that.
    agent_rows: AtomicUsize,
}

/// One look at the counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    pub(crate) reads: usize,
    pub(crate) rows: usize,
    pub(crate) bytes: usize,
    pub(crate) largest: usize,
    pub(crate) loads: usize,
}

impl Counts {
    /// What was counted; begins anew.
    pub(crate) fn take(&self) -> Counted {
        let take = |count: &AtomicUsize| count.swap(0, Ordering::SeqCst);
        let (reads, rows, bytes) = (take(&self.reads), take(&self.rows), take(&self.bytes));
        Counted { reads, rows, bytes, largest: take(&self.largest), loads: take(&self.loads) }
    }

    pub(crate) fn fail_journal(&self) {
        self.journal_fails.store(true, Ordering::SeqCst);
    }

    pub(crate) fn mend_journal(&self) {
        self.journal_fails.store(false, Ordering::SeqCst);
    }

    /// Whether rows of registrations cannot be written.
    pub(crate) fn fail_rows(&self, fail: bool) {
        self.rows_fail.store(fail, Ordering::SeqCst);
    }

    /// Whether rows of agents cannot be written, while all others can.
    pub(crate) fn fail_agent_rows(&self, fail: bool) {
        self.agent_rows_fail.store(fail, Ordering::SeqCst);
    }

    /// Whether jobs cannot be deleted by their names.
    pub(crate) fn keep_jobs(&self, keep: bool) {
        self.jobs_stay.store(keep, Ordering::SeqCst);
    }

    /// Whether the ends of jobs cannot be stored.
    pub(crate) fn keep_ends(&self, keep: bool) {
        self.ends_fail.store(keep, Ordering::SeqCst);
    }

    pub(crate) fn failed_rows(&self) -> usize {
        self.failed_rows.load(Ordering::SeqCst)
    }

    pub(crate) fn agent_rows(&self) -> usize {
        self.agent_rows.load(Ordering::SeqCst)
    }
}

/// The store.
pub(crate) struct CountedStore {
    store: Arc<dyn ServerStore>,
    counts: Arc<Counts>,
}

impl CountedStore {
    pub(crate) fn open(data: &Path) -> (Arc<dyn ServerStore>, Arc<Counts>) {
        let (durability, max_queue_delay) = (Durability::Process, Duration::from_secs(60 * 60));
        let options = Options { durability, max_queue_delay, ..Options::default() };
        let store: Arc<dyn ServerStore> = Arc::new(SqliteStore::open(data, options).unwrap());
        let counts = Arc::<Counts>::default();
        (Arc::new(Self { store, counts: counts.clone() }), counts)
    }

    /// The same call, of whose answer the bytes of each part are counted.
    fn counted<T: Send + 'static>(
        &self,
        call: StoreFuture<T>,
        sizes: impl Fn(&T) -> Vec<usize> + Send + 'static,
        count: impl Fn(&Counts, usize, usize) + Send + 'static,
    ) -> StoreFuture<T> {
        let counts = self.counts.clone();
        Box::pin(async move {
            let read = call.await?;
            let sizes = sizes(&read);
            let bytes = sizes.iter().sum();
            counts.largest.fetch_max(bytes, Ordering::SeqCst);
            count(&counts, sizes.len(), bytes);
            Ok(read)
        })
    }

    fn loaded<T: Send + 'static>(
        &self,
        call: StoreFuture<T>,
        sizes: impl Fn(&T) -> Vec<usize> + Send + 'static,
    ) -> StoreFuture<T> {
        self.counted(call, sizes, |counts, tasks, _| {
            counts.loads.fetch_add(tasks, Ordering::SeqCst);
        })
    }
}

/// Implements a trait by the store behind; what is to be different stands behind the list.
macro_rules! forwarded {
    ($trait:path { $(fn $name:ident($($argument:ident: $kind:ty),*) -> $result:ty;)* } $($own:tt)*) => {
        impl $trait for CountedStore {
            $(fn $name(&self, $($argument: $kind),*) -> $result {
                self.store.$name($($argument),*)
            })*
            $($own)*
        }
    };
}

forwarded! { Store {
    fn append(append: Append) -> StoreFuture<Appended>;
    fn row(id: &TaskId) -> StoreFuture<Option<TaskRow>>;
    fn list(query: ListQuery) -> StoreFuture<ListPage>;
    fn find_send(scope: IdempotencyScope) -> StoreFuture<Option<IdempotencyRecord>>;
    fn unfinished(after: TaskKey, max: usize) -> StoreFuture<Vec<TaskRow>>;
    fn live(after: TaskKey, max: usize) -> StoreFuture<Vec<TaskRow>>;
    fn expired(now: Timestamp, after: (Timestamp, TaskKey), max: usize) -> StoreFuture<Vec<TaskRow>>;
    fn heads(keys: Vec<TaskKey>) -> StoreFuture<Vec<TaskHead>>;
    fn context(conversation: Conversation, max: usize) -> StoreFuture<Vec<TaskRow>>;
    fn noted(conversation: Conversation) -> StoreFuture<Option<String>>;
    fn last_agent(owner: CallerId, context: ContextId) -> StoreFuture<Option<AgentName>>;
    fn children(parent: TaskKey, after: TaskKey, max: usize) -> StoreFuture<Vec<TaskRow>>;
    fn ancestors(key: TaskKey, max: usize) -> StoreFuture<Vec<TaskRow>>;
    fn tree(root: TaskKey, after: TaskKey, max: usize) -> StoreFuture<Vec<TaskRow>>;
    fn waiting(query: WaitingQuery) -> StoreFuture<Vec<TaskRow>>;
    fn survey(query: SurveyQuery) -> StoreFuture<SurveyPage>;
    fn read_all(after: Position, max_rows: usize, max_bytes: usize) -> StoreFuture<FeedPage>;
    fn locate(start: FeedStart) -> StoreFuture<Located>;
    fn committed() -> watch::Receiver<i64>;
    fn evict(retention: Retention, max: usize) -> StoreFuture<usize>;
    fn held_by_consumers(retention: Retention, max: usize) -> StoreFuture<usize>;
    fn evict_journal(retention: JournalRetention, max: usize) -> StoreFuture<usize>;
    fn census() -> StoreFuture<TaskCounts>;
    fn bus() -> Option<Arc<dyn Bus>>;
    fn secret() -> [u8; 32];
    fn ready() -> Result<(), StoreError>;
    fn close() -> StoreFuture<()>;
}
    fn load(&self, id: &TaskId) -> StoreFuture<Option<LoadedTask>> {
        self.loaded(self.store.load(id), |task| task.iter().map(LoadedTask::size).collect())
    }
    fn load_within(&self, id: &TaskId, max_bytes: u64) -> StoreFuture<Option<LoadedTaskWithin>> {
        self.loaded(self.store.load_within(id, max_bytes), |task| match task {
            Some(LoadedTaskWithin::Whole(task)) => vec![task.size()],
            _ => Vec::new(),
        })
    }
    fn load_some(&self, keys: Vec<TaskKey>, max_bytes: usize) -> StoreFuture<Vec<LoadedTask>> {
        self.loaded(self.store.load_some(keys, max_bytes), |tasks| tasks.iter().map(LoadedTask::size).collect())
    }
    fn read(&self, key: TaskKey, after: Seq, max_bytes: usize) -> StoreFuture<Vec<EventRow>> {
        let call = self.store.read(key, after, max_bytes);
        let sizes = |rows: &Vec<EventRow>| rows.iter().map(|row| row.events.len()).collect();
        self.counted(call, sizes, |counts, _, _| {
            counts.reads.fetch_add(1, Ordering::SeqCst);
        })
    }
    fn read_logs(&self, query: LogsQuery) -> StoreFuture<Vec<FeedRow>> {
        let call = self.store.read_logs(query);
        let sizes = |rows: &Vec<FeedRow>| rows.iter().map(FeedRow::size).collect();
        self.counted(call, sizes, |counts, rows, bytes| {
            counts.rows.fetch_add(rows, Ordering::SeqCst);
            counts.bytes.fetch_add(bytes, Ordering::SeqCst);
        })
    }
}

forwarded! { HubStore {
    fn take_consumer(name: &str) -> StoreFuture<ConsumerRow>;
    fn advance(advance: Advance) -> StoreFuture<bool>;
    fn remove_consumer(name: &str) -> StoreFuture<bool>;
    fn registrations(kind: &str, after: &str, max: usize) -> StoreFuture<Vec<RegistrationRow>>;
    fn claim_jobs(now: Timestamp, max: usize) -> StoreFuture<Vec<ClaimedJob>>;
    fn health(step: HealthStep, since: Timestamp) -> StoreFuture<Vec<HealthSum>>;
    fn health_series(series: HealthSeries, since: Timestamp, max: usize) -> StoreFuture<Vec<(Timestamp, Bytes)>>;
    fn ended_with_live_children(keys: Vec<TaskKey>) -> StoreFuture<Vec<TaskKey>>;
    fn owed_jobs() -> StoreFuture<Vec<(String, u64)>>;
    fn jobs_named(prefix: &str, after: &str, max: usize) -> StoreFuture<Vec<NewJob>>;
    fn count_jobs_named(prefix: &str) -> StoreFuture<u64>;

    fn count_asked_since(since: Timestamp) -> StoreFuture<u64>;
    fn count_tasks(owner: Option<CallerId>, agents: Option<Vec<AgentName>>) -> StoreFuture<Vec<(TaskState, u64)>>;
    fn evict_health(step: HealthStep, before: Timestamp, max: usize) -> StoreFuture<usize>;
}
    fn journal(&self, lines: Vec<JournalLine>) -> StoreFuture<Vec<FeedCursor>> {
        if self.counts.journal_fails.load(Ordering::SeqCst) {
            return Box::pin(std::future::ready(Err(StoreError::Failed("as the test has ordered".to_owned()))));
        }
        self.store.journal(lines)
    }
    fn finish_job(&self, name: &str, attempts: u32, end: JobEnd) -> StoreFuture<bool> {
        if self.counts.ends_fail.load(Ordering::SeqCst) {
            return Box::pin(std::future::ready(Err(StoreError::Failed("as the test has ordered".to_owned()))));
        }
        self.store.finish_job(name, attempts, end)
    }
    fn remove_jobs(&self, names: Vec<String>) -> StoreFuture<usize> {
        if self.counts.jobs_stay.load(Ordering::SeqCst) {
            return Box::pin(std::future::ready(Err(StoreError::Failed("as the test has ordered".to_owned()))));
        }
        self.store.remove_jobs(names)
    }
    fn put_registration(&self, put: PutRegistration) -> StoreFuture<u64> {
        let is_agent = put.kind == "agent";
        if self.counts.rows_fail.load(Ordering::SeqCst)
            || (is_agent && self.counts.agent_rows_fail.load(Ordering::SeqCst))
        {
            self.counts.failed_rows.fetch_add(1, Ordering::SeqCst);
            return Box::pin(std::future::ready(Err(StoreError::Failed("as the test has ordered".to_owned()))));
        }
        self.counts.agent_rows.fetch_add(usize::from(is_agent && put.body.is_some()), Ordering::SeqCst);
        self.store.put_registration(put)
    }
}

forwarded! { KeyStore {
    fn create_key(key: KeyRow) -> StoreFuture<()>;
    fn revoke_key(id: &str, at: Timestamp) -> StoreFuture<bool>;
    fn list_keys() -> StoreFuture<Vec<KeyRow>>;
} }

forwarded! { CallbackStore {
    fn open_callback(task: &TaskId, digest: [u8; 32]) -> StoreFuture<bool>;
    fn callback(task: &TaskId) -> StoreFuture<Option<CallbackRow>>;
    fn add_update(
        task: TaskKey, id: &str, body: Bytes, at: Timestamp, max: usize, max_bytes: u64
    ) -> StoreFuture<UpdateAdded>;
    fn newest_updates(task: TaskKey, max: usize) -> StoreFuture<Vec<CallbackUpdate>>;
} }

forwarded! { WebhookStore {
    fn webhook(task: TaskKey, id: &str) -> StoreFuture<Option<WebhookRow>>;
    fn webhooks(task: TaskKey, after: WebhookKey, max: usize) -> StoreFuture<Vec<WebhookRow>>;
    fn delete_webhook(task: TaskKey, id: &str) -> StoreFuture<bool>;
    fn head(webhook: WebhookKey) -> StoreFuture<Option<OutboxHead>>;
    fn active_webhooks(task: TaskKey) -> StoreFuture<Vec<WebhookRoute>>;
    fn lagging_webhooks(after: WebhookKey, max: usize) -> StoreFuture<Vec<WebhookRoute>>;
    fn due_deliveries(
        after: (Timestamp, DeliveryKey), until: Timestamp, max: usize
    ) -> StoreFuture<Vec<DueDelivery>>;
    fn next_due(after: Timestamp) -> StoreFuture<Option<Timestamp>>;
    fn delivery(delivery: DeliveryKey) -> StoreFuture<Option<(WebhookRow, DeliveryRow)>>;
    fn outbox(write: OutboxWrite) -> StoreFuture<()>;
    fn release_endpoint(endpoint: &str, now: Timestamp) -> StoreFuture<usize>;
    fn overdue_webhooks(ended_before: Timestamp, max: usize) -> StoreFuture<Vec<WebhookKey>>;
    fn held_beyond_caps(retention: Retention, max: usize) -> StoreFuture<Vec<WebhookKey>>;
    fn list_webhooks(filter: WebhookFilter) -> StoreFuture<Vec<WebhookSummary>>;
    fn deliveries(webhook: WebhookKey, max: usize) -> StoreFuture<Vec<DeliveryRow>>;
    fn dead_letters(after: DeliveryKey, max: usize) -> StoreFuture<Vec<(WebhookRow, DeliveryRow)>>;
    fn replay(delivery: DeliveryKey, now: Timestamp) -> StoreFuture<bool>;
    fn set_webhook_state(webhook: WebhookKey, state: WebhookState, now: Timestamp) -> StoreFuture<bool>;
    fn prune_dead_letters(died_before: Timestamp, keep: usize, keep_bytes: u64) -> StoreFuture<usize>;
    fn signing() -> StoreFuture<Signing>;
    fn rotate_signing(now: Timestamp, previous_until: Timestamp) -> StoreFuture<Signing>;
    fn outbox_census() -> StoreFuture<OutboxCounts>;
} }
