//! A store in front of another one, to which it forwards every call. Hooks change some of them.
//!
//! Tests make stores of it that fail, wait or do something wrong. That way all calls are listed once, and a test shows only
//! those that it changes.

use std::sync::Arc;

use switchboard_a2a::{ContextId, TaskId, Timestamp};
use tokio::sync::watch;

use super::feed::{FeedPage, FeedRow, FeedStart, JournalRetention, Located, LogsQuery, Position};
use super::survey::{SurveyPage, SurveyQuery, WaitingQuery};
use super::{
    Append, Appended, Conversation, EventRow, IdempotencyRecord, IdempotencyScope, ListPage, ListQuery, LoadedTask,
    LoadedTaskWithin, Retention, Store, StoreError, StoreFuture, TaskCounts, TaskHead, TaskRow,
};
use crate::bus::Bus;
use crate::ids::{AgentName, CallerId, Seq, TaskKey};

/// A store with hooks.
pub struct ForwardingStore<H> {
    /// Where calls go in the end.
    pub store: Arc<dyn Store>,
    pub hooks: H,
}

/// What a store does differently from the one behind it; nothing by default.
pub trait StoreHooks: Send + Sync + 'static {
    /// Every append and every read of tasks passes here.
    fn around<T: Send + 'static>(&self, call: StoreFuture<T>) -> StoreFuture<T> {
        call
    }
    fn append(&self, store: &Arc<dyn Store>, append: Append) -> StoreFuture<Appended> {
        self.around(store.append(append))
    }
    fn row(&self, store: &Arc<dyn Store>, id: &TaskId) -> StoreFuture<Option<TaskRow>> {
        self.around(store.row(id))
    }
    fn load(&self, store: &Arc<dyn Store>, id: &TaskId) -> StoreFuture<Option<LoadedTask>> {
        self.around(store.load(id))
    }
    fn load_some(&self, store: &Arc<dyn Store>, keys: Vec<TaskKey>, max: usize) -> StoreFuture<Vec<LoadedTask>> {
        self.around(store.load_some(keys, max))
    }
    /// Before [`Store::load_within`].
    fn before_load_within(&self) {}
    /// Before [`Store::read`].
    fn before_read(&self) {}
    fn read_all(
        &self,
        store: &Arc<dyn Store>,
        after: Position,
        max_rows: usize,
        max_bytes: usize,
    ) -> StoreFuture<FeedPage> {
        self.around(store.read_all(after, max_rows, max_bytes))
    }
    fn read_logs(&self, store: &Arc<dyn Store>, query: LogsQuery) -> StoreFuture<Vec<FeedRow>> {
        self.around(store.read_logs(query))
    }
}

impl<H: StoreHooks> Store for ForwardingStore<H> {
    fn append(&self, append: Append) -> StoreFuture<Appended> {
        self.hooks.append(&self.store, append)
    }
    fn row(&self, id: &TaskId) -> StoreFuture<Option<TaskRow>> {
        self.hooks.row(&self.store, id)
    }
    fn load(&self, id: &TaskId) -> StoreFuture<Option<LoadedTask>> {
        self.hooks.load(&self.store, id)
    }
    fn load_within(&self, id: &TaskId, max_bytes: u64) -> StoreFuture<Option<LoadedTaskWithin>> {
        self.hooks.before_load_within();
        self.hooks.around(self.store.load_within(id, max_bytes))
    }
    fn read(&self, key: TaskKey, after: Seq, max_bytes: usize) -> StoreFuture<Vec<EventRow>> {
        self.hooks.before_read();
        self.hooks.around(self.store.read(key, after, max_bytes))
    }
    fn list(&self, query: ListQuery) -> StoreFuture<ListPage> {
        self.hooks.around(self.store.list(query))
    }
    fn load_some(&self, keys: Vec<TaskKey>, max_bytes: usize) -> StoreFuture<Vec<LoadedTask>> {
        self.hooks.load_some(&self.store, keys, max_bytes)
    }
    fn find_send(&self, scope: IdempotencyScope) -> StoreFuture<Option<IdempotencyRecord>> {
        self.hooks.around(self.store.find_send(scope))
    }
    fn unfinished(&self, after: TaskKey, max: usize) -> StoreFuture<Vec<TaskRow>> {
        self.hooks.around(self.store.unfinished(after, max))
    }
    fn live(&self, after: TaskKey, max: usize) -> StoreFuture<Vec<TaskRow>> {
        self.hooks.around(self.store.live(after, max))
    }
    fn expired(&self, now: Timestamp, after: (Timestamp, TaskKey), max: usize) -> StoreFuture<Vec<TaskRow>> {
        self.hooks.around(self.store.expired(now, after, max))
    }
    fn heads(&self, keys: Vec<TaskKey>) -> StoreFuture<Vec<TaskHead>> {
        self.hooks.around(self.store.heads(keys))
    }
    fn context(&self, conversation: Conversation, max: usize) -> StoreFuture<Vec<TaskRow>> {
        self.hooks.around(self.store.context(conversation, max))
    }
    fn noted(&self, conversation: Conversation) -> StoreFuture<Option<String>> {
        self.hooks.around(self.store.noted(conversation))
    }
    fn last_agent(&self, owner: CallerId, context: ContextId) -> StoreFuture<Option<AgentName>> {
        self.hooks.around(self.store.last_agent(owner, context))
    }
    fn children(&self, parent: TaskKey, after: TaskKey, max: usize) -> StoreFuture<Vec<TaskRow>> {
        self.hooks.around(self.store.children(parent, after, max))
    }
    fn ancestors(&self, key: TaskKey, max: usize) -> StoreFuture<Vec<TaskRow>> {
        self.hooks.around(self.store.ancestors(key, max))
    }
    fn tree(&self, root: TaskKey, after: TaskKey, max: usize) -> StoreFuture<Vec<TaskRow>> {
        self.hooks.around(self.store.tree(root, after, max))
    }
    fn waiting(&self, query: WaitingQuery) -> StoreFuture<Vec<TaskRow>> {
        self.hooks.around(self.store.waiting(query))
    }
    fn survey(&self, query: SurveyQuery) -> StoreFuture<SurveyPage> {
        self.hooks.around(self.store.survey(query))
    }
    fn read_all(&self, after: Position, max_rows: usize, max_bytes: usize) -> StoreFuture<FeedPage> {
        self.hooks.read_all(&self.store, after, max_rows, max_bytes)
    }
    fn read_logs(&self, query: LogsQuery) -> StoreFuture<Vec<FeedRow>> {
        self.hooks.read_logs(&self.store, query)
    }
    fn locate(&self, start: FeedStart) -> StoreFuture<Located> {
        self.hooks.around(self.store.locate(start))
    }
    fn committed(&self) -> watch::Receiver<i64> {
        self.store.committed()
    }
    fn evict(&self, retention: Retention, max: usize) -> StoreFuture<usize> {
        self.store.evict(retention, max)
    }
    fn held_by_consumers(&self, retention: Retention, max: usize) -> StoreFuture<usize> {
        self.store.held_by_consumers(retention, max)
    }
    fn evict_journal(&self, retention: JournalRetention, max: usize) -> StoreFuture<usize> {
        self.store.evict_journal(retention, max)
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
