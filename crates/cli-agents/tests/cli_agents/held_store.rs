//! A store whose next commit that says "the program is being started" waits until the test lets it through.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use switchboard_a2a::{ContextId, TaskId, Timestamp};
use switchboard_engine::ids::TaskKey;
use switchboard_engine::store::feed::{FeedPage, FeedStart, JournalRetention, Located, Position};
use switchboard_engine::store::survey::{SurveyPage, SurveyQuery, WaitingQuery};
use switchboard_engine::store::*;
use switchboard_engine::{AgentName, Bus, CallerId, Seq};
use switchboard_store::SqliteStore;
use tokio::sync::{Semaphore, watch};

/// The test's end of it. Clones share it.
#[derive(Clone)]
pub(crate) struct Gate {
    /// The next such commit waits.
    is_closed: Arc<AtomicBool>,
    arrived: Arc<Semaphore>,
    opened: Arc<Semaphore>,
}

impl Gate {
    pub(crate) fn closed() -> Self {
        Self {
            is_closed: Arc::new(AtomicBool::new(true)),
            arrived: Arc::new(Semaphore::new(0)),
            opened: Arc::new(Semaphore::new(0)),
        }
    }

    /// Waits until a commit waits.
    pub(crate) async fn reached(&self) {
        self.arrived.acquire().await.unwrap().forget();
    }

    pub(crate) fn open(&self) {
        self.opened.add_permits(1);
    }
}

pub(crate) struct HeldStore {
    pub(crate) store: Arc<SqliteStore>,
    pub(crate) gate: Gate,
}

impl Store for HeldStore {
    fn append(&self, append: Append) -> StoreFuture<Appended> {
        let starts = String::from_utf8_lossy(&append.events).contains(r#""started":true"#);
        if !starts || !self.gate.is_closed.swap(false, Ordering::SeqCst) {
            return self.store.append(append);
        }
        let (store, gate) = (self.store.clone(), self.gate.clone());
        Box::pin(async move {
            gate.arrived.add_permits(1);
            gate.opened.acquire().await.unwrap().forget();
            store.append(append).await
        })
    }
    fn row(&self, id: &TaskId) -> StoreFuture<Option<TaskRow>> {
        self.store.row(id)
    }
    fn load(&self, id: &TaskId) -> StoreFuture<Option<LoadedTask>> {
        self.store.load(id)
    }
    fn load_within(&self, id: &TaskId, max_bytes: u64) -> StoreFuture<Option<LoadedTaskWithin>> {
        self.store.load_within(id, max_bytes)
    }
    fn read(&self, key: TaskKey, after: Seq, max_bytes: usize) -> StoreFuture<Vec<EventRow>> {
        Store::read(&*self.store, key, after, max_bytes)
    }
    fn list(&self, query: ListQuery) -> StoreFuture<ListPage> {
        self.store.list(query)
    }
    fn load_some(&self, keys: Vec<TaskKey>, max_bytes: usize) -> StoreFuture<Vec<LoadedTask>> {
        self.store.load_some(keys, max_bytes)
    }
    fn find_send(&self, scope: IdempotencyScope) -> StoreFuture<Option<IdempotencyRecord>> {
        self.store.find_send(scope)
    }
    fn unfinished(&self, after: TaskKey, max: usize) -> StoreFuture<Vec<TaskRow>> {
        self.store.unfinished(after, max)
    }
    fn live(&self, after: TaskKey, max: usize) -> StoreFuture<Vec<TaskRow>> {
        self.store.live(after, max)
    }
    fn expired(&self, now: Timestamp, max: usize) -> StoreFuture<Vec<TaskRow>> {
        self.store.expired(now, max)
    }
    fn heads(&self, keys: Vec<TaskKey>) -> StoreFuture<Vec<TaskHead>> {
        self.store.heads(keys)
    }
    fn context(&self, conversation: Conversation, max: usize) -> StoreFuture<Vec<TaskRow>> {
        self.store.context(conversation, max)
    }
    fn noted(&self, conversation: Conversation) -> StoreFuture<Option<String>> {
        self.store.noted(conversation)
    }
    fn last_agent(&self, owner: CallerId, context: ContextId) -> StoreFuture<Option<AgentName>> {
        self.store.last_agent(owner, context)
    }
    fn children(&self, parent: TaskKey, after: TaskKey, max: usize) -> StoreFuture<Vec<TaskRow>> {
        self.store.children(parent, after, max)
    }
    fn waiting(&self, query: WaitingQuery) -> StoreFuture<Vec<TaskRow>> {
        self.store.waiting(query)
    }
    fn survey(&self, query: SurveyQuery) -> StoreFuture<SurveyPage> {
        self.store.survey(query)
    }
    fn read_all(&self, after: Position, max_rows: usize, max_bytes: usize) -> StoreFuture<FeedPage> {
        self.store.read_all(after, max_rows, max_bytes)
    }
    fn locate(&self, start: FeedStart) -> StoreFuture<Located> {
        self.store.locate(start)
    }
    fn committed(&self) -> watch::Receiver<i64> {
        self.store.committed()
    }
    fn evict_journal(&self, retention: JournalRetention, max: usize) -> StoreFuture<usize> {
        self.store.evict_journal(retention, max)
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
