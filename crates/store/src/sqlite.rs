//! The store of a single node: one SQLite file, a writer thread with group commit, and a pool of readers.
//!
//! Async code only queues and waits; every database call runs on a thread of the store. A store that is dropped without
//! [`Store::close`](switchboard_engine::store::Store::close) leaves the file as a crash would: nothing committed is lost, and the epoch rises.

pub(crate) mod backup;
mod callbacks;
pub(crate) mod check;
mod checkpoint;
mod columns;
mod connection;
mod errors;
mod event_lines;
mod hub;
pub(crate) mod keys;
pub(crate) mod lock;
mod migrate;
mod node;
pub(crate) mod open;
mod query;
mod readers;
mod replies;
pub(crate) mod restore;
mod sent_keys;
mod tasks;
mod webhooks;
mod write_queue;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use switchboard_engine::LocalBus;
use switchboard_engine::store::StoreFuture;
use switchboard_engine::store::feed::JOURNAL_LINE_BYTES;
use tokio::sync::watch;

use self::checkpoint::Checkpointer;
use self::node::Node;
use self::open::{OpenError, Start};
use self::readers::{ReadSize, Reader, ReaderPool};
use self::sent_keys::SentKeys;
use self::write_queue::WriteQueue;
use self::writer::Writer;

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
    /// How large a line of the journal may be.
    pub journal_line: usize,
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
            journal_line: JOURNAL_LINE_BYTES,
            note: String::new(),
        }
    }
}

/// Durable tasks in one file of a data directory.
pub struct SqliteStore {
    queue: Arc<WriteQueue>,
    readers: Arc<ReaderPool>,
    sent_keys: Arc<SentKeys>,
    start: Start,
    node: Node,
    bus: Option<LocalBus>,
    /// How large a line of the journal may be.
    journal_line: usize,
    /// The greatest row that is committed.
    committed: watch::Sender<i64>,
    /// Shared by the nodes of this process; the last one ends it.
    _writer: Arc<WriterThread>,
}

impl SqliteStore {
    /// Opens a data directory, creating it on first use. Blocks for a few milliseconds.
    pub fn open(directory: &Path, options: Options) -> Result<Self, OpenError> {
        let mut nodes = Self::open_nodes(directory, options, 1)?;
        Ok(nodes.remove(0))
    }

    /// Opens a data directory for several nodes of this process, which share its file as the nodes of a cluster would
    /// share a database. For tests: a server has one.
    pub fn open_nodes(directory: &Path, options: Options, count: u32) -> Result<Vec<Self>, OpenError> {
        let count = count.max(1);
        let opened = open::open(directory, &options, count)?;
        let thread_error = |source| OpenError::File { path: opened.path.clone(), source };
        let queue = Arc::new(WriteQueue::new(options.max_queue_delay));
        let readers = Arc::new(ReaderPool::spawn(&opened.path, options.readers.max(1))?);
        let checkpointer = Checkpointer::spawn(&opened.path, options.durability)?;
        let committed = watch::Sender::new(opened.newest_row);
        let sent_keys = Arc::new(SentKeys::new());
        let journal_line = options.journal_line;
        let writer = Writer {
            queue: Arc::clone(&queue),
            path: opened.path.clone(),
            connection: Some(opened.connection),
            options,
            start: opened.start,
            checkpointer,
            readers: Arc::clone(&readers),
            sent_keys: Arc::clone(&sent_keys),
            lock: opened.lock,
            committed: committed.clone(),
        };
        let thread = Some(writer.spawn().map_err(thread_error)?);
        let writer = Arc::new(WriterThread { queue: Arc::clone(&queue), thread });
        let bus = LocalBus::new(opened.start.number.cast_unsigned());
        let nodes = Node::all(opened.start.number, count).into_iter();
        let node = |node: Node| Self {
            journal_line,
            queue: Arc::clone(&queue),
            readers: Arc::clone(&readers),
            sent_keys: Arc::clone(&sent_keys),
            start: opened.start,
            bus: (count > 1).then(|| bus.joined(node.number().cast_unsigned())),
            node,
            committed: committed.clone(),
            _writer: Arc::clone(&writer),
        };
        Ok(nodes.map(node).collect())
    }

    fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Reader) -> rusqlite::Result<T> + Send + 'static,
    ) -> StoreFuture<T> {
        self.readers.read(ReadSize::Small, work)
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.node.die();
    }
}

/// Ends the writer with the last handle of the store.
struct WriterThread {
    queue: Arc<WriteQueue>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for WriterThread {
    fn drop(&mut self) {
        self.queue.stop();
        if let Some(writer) = self.thread.take()
            && writer.join().is_err()
        {
            tracing::error!("the writer of the store panicked");
        }
    }
}
