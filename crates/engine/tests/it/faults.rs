//! A store with faults to order: appends that wait at a gate, fail, or dawdle by a seed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use futures_util::FutureExt;
use switchboard_a2a::{ContextId, TaskId, Timestamp};
use switchboard_engine::ids::{Epoch, Position, TaskKey};
use switchboard_engine::store::*;
use switchboard_engine::{AgentName, CallerId, Seq};
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
    failing: AtomicBool,
    failed: AtomicUsize,
    loads: AtomicUsize,
    /// Seeds the yields around each call; none at zero.
    seed: AtomicU64,
}

impl Faults {
    /// Commits happen, but nobody hears of them until the gate opens.
    pub(crate) fn close_gate(&self) {
        self.0.closed.store(true, Ordering::SeqCst);
    }

    pub(crate) fn open_gate(&self) {
        self.0.closed.store(false, Ordering::SeqCst);
        self.0.opened.notify_waiters();
        self.0.opened.notify_one();
    }

    /// Appends fail as on a full disk.
    pub(crate) fn fail(&self, failing: bool) {
        self.0.failing.store(failing, Ordering::SeqCst);
    }

    /// How many appends have failed.
    pub(crate) fn failed(&self) -> usize {
        self.0.failed.load(Ordering::SeqCst)
    }

    /// How many tasks have been loaded.
    pub(crate) fn loads(&self) -> usize {
        self.0.loads.load(Ordering::SeqCst)
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
        while self.0.closed.load(Ordering::SeqCst) {
            self.0.opened.notified().await;
        }
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
        self.around(self.store.append(append))
    }
    fn row(&self, id: &TaskId) -> StoreFuture<Option<TaskRow>> {
        self.around(self.store.row(id))
    }
    fn load(&self, id: &TaskId) -> StoreFuture<Option<Loaded>> {
        self.faults.0.loads.fetch_add(1, Ordering::SeqCst);
        self.around(self.store.load(id))
    }
    fn read(&self, key: TaskKey, after: Seq, max_bytes: usize) -> StoreFuture<Vec<EventRow>> {
        self.around(Store::read(&*self.store, key, after, max_bytes))
    }
    fn read_all(&self, after: Position, max_rows: usize) -> StoreFuture<Vec<(TaskId, EventRow)>> {
        self.around(self.store.read_all(after, max_rows))
    }
    fn list(&self, query: ListQuery) -> StoreFuture<ListPage> {
        self.around(self.store.list(query))
    }
    fn find_send(&self, scope: SendScope) -> StoreFuture<Option<SendRecord>> {
        self.around(self.store.find_send(scope))
    }
    fn unfinished(&self, after: TaskKey, max: usize) -> StoreFuture<Vec<TaskRow>> {
        self.around(self.store.unfinished(after, max))
    }
    fn expired(&self, now: Timestamp, max: usize) -> StoreFuture<Vec<TaskRow>> {
        self.around(self.store.expired(now, max))
    }
    fn context(
        &self,
        owner: &CallerId,
        agent: &AgentName,
        context: &ContextId,
        max: usize,
    ) -> StoreFuture<Vec<TaskRow>> {
        self.around(self.store.context(owner, agent, context, max))
    }
    fn evict(&self, retention: Retention, max: usize) -> StoreFuture<usize> {
        self.store.evict(retention, max)
    }
    fn census(&self) -> StoreFuture<Census> {
        self.store.census()
    }
    fn epoch(&self) -> Epoch {
        self.store.epoch()
    }
    fn ready(&self) -> Result<(), StoreError> {
        self.store.ready()
    }
    fn close(&self) -> StoreFuture<()> {
        self.store.close()
    }
}
