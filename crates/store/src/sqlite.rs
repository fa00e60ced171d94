//! The store of a single node: one SQLite file, a writer thread with group commit, and a pool of readers.
//!
//! Async code only queues and waits; every database call runs on a thread of the store. A store that is dropped without
//! [`Store::close`] leaves the file as a crash would: nothing committed is lost, and the epoch rises.

pub(crate) mod backup;
mod callbacks;
pub(crate) mod check;
mod checkpoint;
mod columns;
mod connection;
mod errors;
pub(crate) mod keys;
pub(crate) mod lock;
mod migrate;
pub(crate) mod open;
mod query;
mod readers;
mod replies;
pub(crate) mod restore;
mod webhooks;
mod write_queue;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use switchboard_a2a::{ContextId, TaskId, Timestamp};
use switchboard_engine::ids::{AgentName, CallerId, Epoch, Seq, TaskKey};
use switchboard_engine::store::{
    Append, Appended, EventRow, IdempotencyRecord, IdempotencyScope, ListPage, ListQuery, LoadedTask, LoadedTaskWithin,
    Retention, Store, StoreError, StoreFuture, TaskCounts, TaskRow,
};

use self::checkpoint::Checkpointer;
use self::open::{OpenError, Start};
use self::readers::{ReadSize, Reader, ReaderPool};
use self::write_queue::WriteQueue;
use self::writer::Writer;

/// The most that a read may load and still share a transaction with others.
const SMALL_READ: usize = 64 << 10;

/// Tasks evicted per transaction, so that appends wait a few milliseconds at most.
const EVICTED_AT_ONCE: usize = 64;

/// What a commit survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// A power cut: every commit waits for the disk.
    #[default]
    Full,
    /// The end of the process, however sudden; a power cut may take the last commits away.
    Process,
}

/// How to open a store.
#[derive(Clone, Debug)]
pub struct Options {
    /// What a commit survives.
    pub durability: Durability,
    /// How long writes may wait before the store refuses new work (load shedding).
    pub max_queue_delay: Duration,
    /// How large the file may grow; writes fail beyond it as if the disk were full.
    pub max_file_bytes: Option<u64>,
    /// Size of the reader pool.
    pub readers: usize,
    /// Shown to the next process that tries to open the directory, such as the address of this one.
    pub note: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            max_queue_delay: Duration::from_secs(2),
            max_file_bytes: None,
            readers: 2,
            note: String::new(),
        }
    }
}

/// Durable tasks in one file of a data directory.
pub struct SqliteStore {
    queue: Arc<WriteQueue>,
    readers: Arc<ReaderPool>,
    start: Start,
    writer: Option<JoinHandle<()>>,
}

impl SqliteStore {
    /// Opens a data directory, creating it on first use. Blocks for a few milliseconds.
    pub fn open(directory: &Path, options: Options) -> Result<Self, OpenError> {
        let opened = open::open(directory, &options)?;
        let thread_error = |source| OpenError::File { path: opened.path.clone(), source };
        let queue = Arc::new(WriteQueue::new(options.max_queue_delay));
        let readers = Arc::new(ReaderPool::spawn(&opened.path, options.readers.max(1))?);
        let connection = connection::open_for_checkpoints(&opened.path, options.durability)?;
        let checkpointer = Checkpointer::spawn(connection).map_err(thread_error)?;
        let writer = Writer {
            queue: Arc::clone(&queue),
            path: opened.path.clone(),
            options,
            start: opened.start,
            checkpointer,
            readers: Arc::clone(&readers),
            lock: opened.lock,
        };
        let writer = writer.spawn().map_err(thread_error)?;
        Ok(Self { queue, readers, start: opened.start, writer: Some(writer) })
    }

    fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Reader) -> rusqlite::Result<T> + Send + 'static,
    ) -> StoreFuture<T> {
        self.readers.read(ReadSize::Small, work)
    }
}

impl Store for SqliteStore {
    fn append(&self, append: Append) -> StoreFuture<Appended> {
        let queue = Arc::clone(&self.queue);
        Box::pin(async move { queue.append(append).await })
    }

    fn row(&self, id: &TaskId) -> StoreFuture<Option<TaskRow>> {
        let id = id.clone();
        self.read(move |reader| reader.row(&id))
    }

    fn load(&self, id: &TaskId) -> StoreFuture<Option<LoadedTask>> {
        let id = id.clone();
        self.readers.read(ReadSize::Large, move |reader| reader.load(&id))
    }

    fn load_within(&self, id: &TaskId, max_bytes: u64) -> StoreFuture<Option<LoadedTaskWithin>> {
        let id = id.clone();
        self.read(move |reader| reader.load_within(&id, max_bytes))
    }

    fn read(&self, key: TaskKey, after: Seq, max_bytes: usize) -> StoreFuture<Vec<EventRow>> {
        self.read(move |reader| reader.log(key, after, max_bytes))
    }

    fn list(&self, query: ListQuery) -> StoreFuture<ListPage> {
        self.read(move |reader| reader.list(&query))
    }

    fn load_some(&self, keys: Vec<TaskKey>, max_bytes: usize) -> StoreFuture<Vec<LoadedTask>> {
        let size = if max_bytes > SMALL_READ { ReadSize::Large } else { ReadSize::Small };
        self.readers.read(size, move |reader| reader.load_some(&keys, max_bytes))
    }

    fn find_send(&self, scope: IdempotencyScope) -> StoreFuture<Option<IdempotencyRecord>> {
        self.read(move |reader| reader.find_send(scope))
    }

    fn unfinished(&self, after: TaskKey, max: usize) -> StoreFuture<Vec<TaskRow>> {
        let start = self.start.number;
        self.read(move |reader| reader.unfinished(start, after, max))
    }

    fn live(&self, after: TaskKey, max: usize) -> StoreFuture<Vec<TaskRow>> {
        self.read(move |reader| reader.live(after, max))
    }

    fn expired(&self, now: Timestamp, max: usize) -> StoreFuture<Vec<TaskRow>> {
        self.read(move |reader| reader.expired(now, max))
    }

    fn context(
        &self,
        owner: &CallerId,
        agent: &AgentName,
        context: &ContextId,
        max: usize,
    ) -> StoreFuture<Vec<TaskRow>> {
        let (owner, agent, context) = (owner.clone(), agent.clone(), context.clone());
        self.read(move |reader| reader.context(&owner, &agent, &context, max))
    }

    fn noted(&self, owner: &CallerId, agent: &AgentName, context: &ContextId) -> StoreFuture<Option<String>> {
        let (owner, agent, context) = (owner.clone(), agent.clone(), context.clone());
        self.read(move |reader| reader.noted(&owner, &agent, &context))
    }

    fn evict(&self, retention: Retention, max: usize) -> StoreFuture<usize> {
        let candidates = self.read(move |reader| reader.evictable(retention, max));
        let queue = Arc::clone(&self.queue);
        Box::pin(async move {
            let keys = candidates.await?;
            let mut evicted = 0;
            for some in keys.chunks(EVICTED_AT_ONCE) {
                let some = some.to_vec();
                evicted += queue.write_exclusive(move |session| session.evict(&some)).await?;
            }
            // Each step is queued on its own, so that appends go in between.
            while evicted > 0 && queue.write_exclusive(|session| session.vacuum_step()).await? {}
            Ok(evicted)
        })
    }

    fn census(&self) -> StoreFuture<TaskCounts> {
        self.read(Reader::census)
    }

    fn epoch(&self) -> Epoch {
        self.start.epoch
    }

    fn secret(&self) -> [u8; 32] {
        self.start.secret
    }

    fn ready(&self) -> Result<(), StoreError> {
        self.queue.ready()
    }

    fn close(&self) -> StoreFuture<()> {
        let ended = self.queue.close();
        Box::pin(async move {
            // An error means that the store was closed before.
            ended.await.ok();
            Ok(())
        })
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.queue.stop();
        if let Some(writer) = self.writer.take()
            && writer.join().is_err()
        {
            tracing::error!("the writer of the store panicked");
        }
    }
}
