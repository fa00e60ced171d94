//! A store with faults to order: appends that wait at a gate, fail, or dawdle by a seed. It also counts what is loaded,
//! and for listed tasks how many bytes of them are held.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::FutureExt;
use switchboard_a2a::{ContextId, TaskId, Timestamp};
use switchboard_engine::ids::TaskKey;
use switchboard_engine::store::survey::{SurveyPage, SurveyQuery, WaitingQuery};
use switchboard_engine::store::*;
use switchboard_engine::{AgentName, Bus, CallerId, Seq};
use switchboard_store::SqliteStore;
use tokio::sync::Notify;

use crate::races::Dice;

/// What goes wrong. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Faults(Arc<Ordered>);

#[derive(Default)]
struct Ordered {
    closed: AtomicBool,
    opened: Notify,
    /// Calls that stand at the closed gate.
    held: AtomicUsize,
    /// The next append closes the gate behind itself.
    close_at_append: AtomicBool,
    failing: AtomicBool,
    failed: AtomicUsize,
    /// After so many more appends they fail; none at zero.
    fail_after: AtomicUsize,
    /// Rows that are read lack their last event, as after a power cut, until a task is loaded anew.
    rewound: AtomicBool,
    loads: AtomicUsize,
    portions: AtomicUsize,
    listed_bytes: AtomicUsize,
    most_listed_bytes: AtomicUsize,
    /// Seeds the yields around each call; none at zero.
    seed: AtomicU64,
}

impl Faults {
    /// Commits happen, but the kernel does not hear of them until the gate opens.
    pub(crate) fn close_gate(&self) {
        self.0.closed.store(true, Ordering::SeqCst);
    }

    /// The same from the next append on; what is read before it comes through.
    pub(crate) fn close_gate_at_append(&self) {
        self.0.close_at_append.store(true, Ordering::SeqCst);
    }

    pub(crate) fn open_gate(&self) {
        self.0.closed.store(false, Ordering::SeqCst);
        self.0.opened.notify_waiters();
        self.0.opened.notify_one();
    }

    /// Waits until so many calls stand at the closed gate.
    pub(crate) async fn until_held(&self, calls: usize) {
        while !self.0.closed.load(Ordering::SeqCst) || self.0.held.load(Ordering::SeqCst) < calls {
            tokio::task::yield_now().await;
        }
    }

    /// Appends fail as on a full disk.
    pub(crate) fn fail(&self, failing: bool) {
        self.0.failing.store(failing, Ordering::SeqCst);
    }

    /// So many more appends are made, and then they fail.
    pub(crate) fn fail_after(&self, appends: usize) {
        self.0.fail_after.store(appends, Ordering::SeqCst);
    }

    /// How many appends have failed.
    pub(crate) fn failed(&self) -> usize {
        self.0.failed.load(Ordering::SeqCst)
    }

    /// Rows say that the log is shorter than it was, until a task is loaded anew.
    pub(crate) fn rewind(&self) {
        self.0.rewound.store(true, Ordering::SeqCst);
    }

    /// How many tasks have been loaded.
    pub(crate) fn loads(&self) -> usize {
        self.0.loads.load(Ordering::SeqCst)
    }

    /// How many times some of a page have been loaded.
    pub(crate) fn portions(&self) -> usize {
        self.0.portions.load(Ordering::SeqCst)
    }

    /// The most bytes of listed tasks that were ever held at once.
    pub(crate) fn most_listed_bytes(&self) -> usize {
        self.0.most_listed_bytes.load(Ordering::SeqCst)
    }

    /// The same task, with its bytes counted until they are let go.
    fn counted(&self, mut loaded: LoadedTask) -> LoadedTask {
        if let Some((_, _, snapshot)) = &mut loaded.snapshot {
            *snapshot = self.count(snapshot.clone());
        }
        for row in &mut loaded.events {
            row.events = self.count(row.events.clone());
        }
        loaded
    }

    fn count(&self, bytes: Bytes) -> Bytes {
        let held = self.0.listed_bytes.fetch_add(bytes.len(), Ordering::SeqCst) + bytes.len();
        self.0.most_listed_bytes.fetch_max(held, Ordering::SeqCst);
        Bytes::from_owner(ListedBytes { bytes, faults: self.clone() })
    }

    /// Others go first around every call, as the seed says.
    pub(crate) fn dawdle(seed: u64) -> Self {
        let faults = Self::default();
        faults.0.seed.store(seed, Ordering::SeqCst);
        faults
    }

    async fn pass(&self) {
        let seed = self.0.seed.load(Ordering::SeqCst);
        if seed != 0 {
            self.0.seed.store(seed.wrapping_add(0x9e37_79b9), Ordering::SeqCst);
            Dice::seeded(seed).dawdle().await;
        }
        self.0.held.fetch_add(1, Ordering::SeqCst);
        while self.0.closed.load(Ordering::SeqCst) {
            let opened = self.0.opened.notified();
            if self.0.closed.load(Ordering::SeqCst) {
                opened.await;
            }
        }
        self.0.held.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Bytes of a listed task.
struct ListedBytes {
    bytes: Bytes,
    faults: Faults,
}

impl AsRef<[u8]> for ListedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for ListedBytes {
    fn drop(&mut self) {
        self.faults.0.listed_bytes.fetch_sub(self.bytes.len(), Ordering::SeqCst);
    }
}

/// A store that obeys the faults.
pub(crate) struct FaultyStore {
    pub(crate) store: Arc<SqliteStore>,
    pub(crate) faults: Faults,
}

impl FaultyStore {
    fn around<T: Send + 'static>(&self, call: StoreFuture<T>) -> StoreFuture<T> {
        let faults = self.faults.clone();
        async move {
            let result = call.await;
            faults.pass().await;
            result
        }
        .boxed()
    }
}

impl Store for FaultyStore {
    fn append(&self, append: Append) -> StoreFuture<Appended> {
        if self.faults.0.failing.load(Ordering::SeqCst) {
            self.faults.0.failed.fetch_add(1, Ordering::SeqCst);
            return std::future::ready(Err(StoreError::Failed("disk full".to_owned()))).boxed();
        }
        if self.faults.0.close_at_append.swap(false, Ordering::SeqCst) {
            self.faults.close_gate();
        }
        let left = self.faults.0.fail_after.load(Ordering::SeqCst);
        if left > 0 {
            self.faults.0.fail_after.store(left - 1, Ordering::SeqCst);
            self.faults.fail(left == 1);
        }
        self.around(self.store.append(append))
    }
    fn row(&self, id: &TaskId) -> StoreFuture<Option<TaskRow>> {
        let (row, faults) = (self.around(self.store.row(id)), self.faults.clone());
        async move {
            let mut row = row.await?;
            if let Some(row) = &mut row
                && faults.0.rewound.load(Ordering::SeqCst)
            {
                row.last_seq = Seq(row.last_seq.0 - 1);
            }
            Ok(row)
        }
        .boxed()
    }
    fn load(&self, id: &TaskId) -> StoreFuture<Option<LoadedTask>> {
        self.faults.0.rewound.store(false, Ordering::SeqCst);
        self.faults.0.loads.fetch_add(1, Ordering::SeqCst);
        self.around(self.store.load(id))
    }
    fn load_within(&self, id: &TaskId, max_bytes: u64) -> StoreFuture<Option<LoadedTaskWithin>> {
        self.faults.0.loads.fetch_add(1, Ordering::SeqCst);
        self.around(self.store.load_within(id, max_bytes))
    }
    fn read(&self, key: TaskKey, after: Seq, max_bytes: usize) -> StoreFuture<Vec<EventRow>> {
        self.around(Store::read(&*self.store, key, after, max_bytes))
    }
    fn list(&self, query: ListQuery) -> StoreFuture<ListPage> {
        self.around(self.store.list(query))
    }
    fn load_some(&self, keys: Vec<TaskKey>, max_bytes: usize) -> StoreFuture<Vec<LoadedTask>> {
        self.faults.0.portions.fetch_add(1, Ordering::SeqCst);
        let (some, faults) = (self.around(self.store.load_some(keys, max_bytes)), self.faults.clone());
        async move { Ok(some.await?.into_iter().map(|loaded| faults.counted(loaded)).collect()) }.boxed()
    }
    fn find_send(&self, scope: IdempotencyScope) -> StoreFuture<Option<IdempotencyRecord>> {
        self.around(self.store.find_send(scope))
    }
    fn unfinished(&self, after: TaskKey, max: usize) -> StoreFuture<Vec<TaskRow>> {
        self.around(self.store.unfinished(after, max))
    }
    fn live(&self, after: TaskKey, max: usize) -> StoreFuture<Vec<TaskRow>> {
        self.around(self.store.live(after, max))
    }
    fn expired(&self, now: Timestamp, max: usize) -> StoreFuture<Vec<TaskRow>> {
        self.around(self.store.expired(now, max))
    }
    fn context(&self, conversation: Conversation, max: usize) -> StoreFuture<Vec<TaskRow>> {
        self.around(self.store.context(conversation, max))
    }
    fn noted(&self, conversation: Conversation) -> StoreFuture<Option<String>> {
        self.around(self.store.noted(conversation))
    }
    fn last_agent(&self, owner: CallerId, context: ContextId) -> StoreFuture<Option<AgentName>> {
        self.around(self.store.last_agent(owner, context))
    }
    fn children(&self, parent: TaskKey, after: TaskKey, max: usize) -> StoreFuture<Vec<TaskRow>> {
        self.around(self.store.children(parent, after, max))
    }
    fn waiting(&self, query: WaitingQuery) -> StoreFuture<Vec<TaskRow>> {
        self.around(self.store.waiting(query))
    }
    fn survey(&self, query: SurveyQuery) -> StoreFuture<SurveyPage> {
        self.around(self.store.survey(query))
    }
    fn evict(&self, retention: Retention, max: usize) -> StoreFuture<usize> {
        self.store.evict(retention, max)
    }
    fn census(&self) -> StoreFuture<TaskCounts> {
        self.store.census()
    }
    fn bus(&self) -> Option<Arc<dyn Bus>> {
        self.store.bus()
    }
    fn secret(&self) -> [u8; 32] {
        self.store.secret()
    }
    fn ready(&self) -> Result<(), StoreError> {
        self.store.ready()
    }
    fn close(&self) -> StoreFuture<()> {
        self.store.close()
    }
}
