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
pub(crate) mod keys;
pub(crate) mod lock;
mod migrate;
pub(crate) mod open;
mod query;
mod readers;
mod replies;
pub(crate) mod restore;
mod tasks;
mod webhooks;
mod write_queue;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use switchboard_engine::store::StoreFuture;

use self::checkpoint::Checkpointer;
use self::open::{OpenError, Start};
use self::readers::{ReadSize, Reader, ReaderPool};
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
