//! A store with faults to order: appends that wait at a gate, fail, or dawdle by a seed. It also counts what is loaded,
//! and for listed tasks how many bytes of them are held.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::FutureExt;
use switchboard_a2a::TaskId;
use switchboard_engine::Seq;
use switchboard_engine::ids::TaskKey;
use switchboard_engine::store::feed::{FeedPage, Position};
use switchboard_engine::store::forwarding::{ForwardingStore, StoreHooks};
use switchboard_engine::store::*;
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
    /// The next append panics instead.
    panicking: AtomicBool,
    /// After so many more appends they fail; none at zero.
    fail_after: AtomicUsize,
    /// Rows have lost their last event, as after a power cut, until a task is loaded anew.
    rewound: AtomicBool,
    loads: AtomicUsize,
    /// The next load keeps what it has read to itself until it is released.
    hold_load: AtomicBool,
    load_held: Notify,
    load_released: Notify,
    /// The next append is not made until it is released.
    hold_append: AtomicBool,
    append_held: Notify,
    append_released: Notify,
    /// Rows, loads and parts of logs that were read of single tasks.
    task_reads: AtomicUsize,
    portions: AtomicUsize,
    feeds: AtomicUsize,
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

    /// The next append panics, as code with a mistake in it would.
    pub(crate) fn panic_at_append(&self) {
        self.0.panicking.store(true, Ordering::SeqCst);
    }

    /// The next row that is read says that the log is shorter than it was.
    pub(crate) fn rewind(&self) {
        self.0.rewound.store(true, Ordering::SeqCst);
    }

    /// How many tasks have been loaded.
    pub(crate) fn loads(&self) -> usize {
        self.0.loads.load(Ordering::SeqCst)
    }

    /// The next load has read its task and does not return it until [`Self::release_load`].
    pub(crate) fn hold_next_load(&self) {
        self.0.hold_load.store(true, Ordering::SeqCst);
    }

    /// Waits until a load is held.
    pub(crate) async fn until_load_held(&self) {
        self.0.load_held.notified().await;
    }

    pub(crate) fn release_load(&self) {
        self.0.load_released.notify_one();
    }

    /// The next append is not made until [`Self::release_append`].
    pub(crate) fn hold_next_append(&self) {
        self.0.hold_append.store(true, Ordering::SeqCst);
    }

    /// Waits until an append is held.
    pub(crate) async fn until_append_held(&self) {
        self.0.append_held.notified().await;
    }

    pub(crate) fn release_append(&self) {
        self.0.append_released.notify_one();
    }

    /// How many reads of single tasks there were, of whatever kind.
    pub(crate) fn task_reads(&self) -> usize {
        self.0.task_reads.load(Ordering::SeqCst)
    }

    /// How many times some of a page have been loaded.
    pub(crate) fn portions(&self) -> usize {
        self.0.portions.load(Ordering::SeqCst)
    }

    /// How many times rows of all tasks have been read.
    pub(crate) fn feeds(&self) -> usize {
        self.0.feeds.load(Ordering::SeqCst)
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
pub(crate) type FaultyStore = ForwardingStore<Faults>;

impl StoreHooks for Faults {
    fn around<T: Send + 'static>(&self, call: StoreFuture<T>) -> StoreFuture<T> {
        let faults = self.clone();
        async move {
            let result = call.await;
            faults.pass().await;
            result
        }
        .boxed()
    }
    fn append(&self, store: &Arc<dyn Store>, append: Append) -> StoreFuture<Appended> {
        assert!(!self.0.panicking.swap(false, Ordering::SeqCst), "the append panics");
        if self.0.failing.load(Ordering::SeqCst) {
            self.0.failed.fetch_add(1, Ordering::SeqCst);
            return std::future::ready(Err(StoreError::Failed("disk full".to_owned()))).boxed();
        }
        if self.0.close_at_append.swap(false, Ordering::SeqCst) {
            self.close_gate();
        }
        let left = self.0.fail_after.load(Ordering::SeqCst);
        if left > 0 {
            self.0.fail_after.store(left - 1, Ordering::SeqCst);
            self.fail(left == 1);
        }
        if !self.0.hold_append.swap(false, Ordering::SeqCst) {
            return self.around(store.append(append));
        }
        let (store, faults) = (store.clone(), self.clone());
        async move {
            faults.0.append_held.notify_one();
            faults.0.append_released.notified().await;
            faults.around(store.append(append)).await
        }
        .boxed()
    }
    fn row(&self, store: &Arc<dyn Store>, id: &TaskId) -> StoreFuture<Option<TaskRow>> {
        self.0.task_reads.fetch_add(1, Ordering::SeqCst);
        let (row, faults) = (self.around(store.row(id)), self.clone());
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
    fn load(&self, store: &Arc<dyn Store>, id: &TaskId) -> StoreFuture<Option<LoadedTask>> {
        self.0.rewound.store(false, Ordering::SeqCst);
        self.0.loads.fetch_add(1, Ordering::SeqCst);
        self.0.task_reads.fetch_add(1, Ordering::SeqCst);
        let loading = self.around(store.load(id));
        if !self.0.hold_load.swap(false, Ordering::SeqCst) {
            return loading;
        }
        let faults = self.clone();
        async move {
            let loaded = loading.await;
            faults.0.load_held.notify_one();
            faults.0.load_released.notified().await;
            loaded
        }
        .boxed()
    }
    fn load_some(&self, store: &Arc<dyn Store>, keys: Vec<TaskKey>, max: usize) -> StoreFuture<Vec<LoadedTask>> {
        self.0.portions.fetch_add(1, Ordering::SeqCst);
        let (some, faults) = (self.around(store.load_some(keys, max)), self.clone());
        async move { Ok(some.await?.into_iter().map(|loaded| faults.counted(loaded)).collect()) }.boxed()
    }
    fn before_load_within(&self) {
        self.0.loads.fetch_add(1, Ordering::SeqCst);
        self.0.task_reads.fetch_add(1, Ordering::SeqCst);
    }
    fn before_read(&self) {
        self.0.task_reads.fetch_add(1, Ordering::SeqCst);
    }
    fn read_all(
        &self,
        store: &Arc<dyn Store>,
        after: Position,
        max_rows: usize,
        max_bytes: usize,
    ) -> StoreFuture<FeedPage> {
        self.0.feeds.fetch_add(1, Ordering::SeqCst);
        self.around(store.read_all(after, max_rows, max_bytes))
    }
}
