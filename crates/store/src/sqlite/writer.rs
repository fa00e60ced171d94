//! The writer thread. It writes everything queued since the last commit in one transaction (group commit) and replies only
//! after the commit. It also closes the store, because it is the last one to touch the file.

pub(crate) mod append;
pub(crate) mod callbacks;
pub(crate) mod cooldowns;
pub(crate) mod counters;
pub(crate) mod dead_letters;
pub(crate) mod evict;
pub(crate) mod group_commit;
pub(crate) mod hub;
pub(crate) mod journal;
pub(crate) mod names;
pub(crate) mod outbox;
pub(crate) mod session;
pub(crate) mod signing;
pub(crate) mod statements;
mod tree_limits;
pub(crate) mod webhooks;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use rusqlite::Connection;
use tokio::sync::{oneshot, watch};

use self::session::Session;
use super::checkpoint::Checkpointer;
use super::errors::{needs_reopening, store_error};
use super::lock::DirectoryLock;
use super::open::{Start, mark_clean};
use super::readers::ReaderPool;
use super::replies::send_replies;
use super::sent_keys::SentKeys;
use super::write_queue::{PROBE_EVERY, Work, WriteQueue};
use super::{Options, connection};

/// What the writer thread uses, and closes at the end.
pub(crate) struct Writer {
    pub(crate) queue: Arc<WriteQueue>,
    pub(crate) path: PathBuf,
    /// The one to begin with.
    pub(crate) connection: Option<Connection>,
    pub(crate) options: Options,
    pub(crate) start: Start,
    pub(crate) checkpointer: Checkpointer,
    pub(crate) readers: Arc<ReaderPool>,
    pub(crate) sent_keys: Arc<SentKeys>,
    pub(crate) lock: DirectoryLock,
    /// Told of the greatest row of each commit.
    pub(crate) committed: watch::Sender<i64>,
}

enum End {
    Close(oneshot::Sender<()>),
    Stop,
    Reopen,
}

impl Writer {
    pub(crate) fn spawn(self) -> std::io::Result<JoinHandle<()>> {
        std::thread::Builder::new().name("store-writer".to_owned()).spawn(move || {
            let _end_queue = EndQueueOnDrop(Arc::clone(&self.queue));
            self.run();
        })
    }

    fn run(mut self) {
        let mut prepared = self.connection.take();
        let (last_connection, told) = loop {
            let log_pages = Arc::new(AtomicI32::new(0));
            let opened = self.open(prepared.take(), &log_pages);
            let ended = match &opened {
                Ok(connection) => self.serve(connection, &log_pages),
                Err(error) => self.refuse(error),
            };
            match ended {
                End::Reopen => {}
                End::Stop => break (opened, None),
                End::Close(told) => break (opened, Some(told)),
            }
        };
        self.readers.stop();
        self.checkpointer.stop();
        // Closing the last connection checkpoints the write-ahead log.
        drop(last_connection);
        drop(self.lock);
        self.queue.end();
        if let Some(told) = told {
            // The caller of close may have gone away.
            told.send(()).ok();
        }
    }

    /// Makes a connection the writer's: the one that is there, or a new one.
    fn open(&self, prepared: Option<Connection>, log_pages: &Arc<AtomicI32>) -> rusqlite::Result<Connection> {
        let mut connection = match prepared {
            Some(connection) => connection,
            None => connection::open_for_writing(&self.path, &self.options)?,
        };
        connection::relax(&connection, self.options.durability)?;
        let log_pages = Arc::clone(log_pages);
        connection.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages| {
            log_pages.store(pages, Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(connection)
    }

    fn serve(&self, connection: &Connection, log_pages: &AtomicI32) -> End {
        let (gate, sent_keys) = (self.checkpointer.gate(), Arc::clone(&self.sent_keys));
        let mut session = match Session::new(connection, self.start, gate, sent_keys, self.committed.clone()) {
            Ok(session) => session,
            Err(error) => return self.refuse(&error),
        };
        loop {
            let failed = match self.queue.take() {
                Work::Writes(writes) => session.write(writes, &self.queue),
                Work::Exclusive(work) => {
                    let failed = work(&mut session);
                    self.queue.finished(failed.as_ref().map(store_error));
                    failed
                }
                Work::Probe => {
                    let failed = session.probe().err();
                    self.queue.finished(failed.as_ref().map(store_error));
                    failed
                }
                Work::Stop => return End::Stop,
                Work::Close(told) => {
                    if let Err(error) = mark_clean(connection) {
                        tracing::error!(%error, "the end of the store could not be marked as clean");
                    }
                    return End::Close(told);
                }
            };
            let Some(error) = failed else {
                // A transaction that has changed nothing, such as a claim where no job is due, leaves the log idle.
                let pages = log_pages.swap(0, Ordering::Relaxed);
                if pages > 0 {
                    self.checkpointer.committed(pages);
                }
                continue;
            };
            // Without a commit the checkpointer sees an idle log, and empties it even while a full disk is probed every second.
            tracing::error!(%error, "the store could not write");
            if needs_reopening(&error) {
                return End::Reopen;
            }
        }
    }

    /// Refuses all writes without a usable connection until it is time to open it again. It keeps the time itself, because
    /// the queue probes only while it is empty, and refused callers retry.
    fn refuse(&self, error: &rusqlite::Error) -> End {
        let failure = store_error(error);
        tracing::error!(%error, "the store cannot open its file for writing");
        let reopen_at = Instant::now() + PROBE_EVERY;
        loop {
            self.queue.finished(Some(failure.clone()));
            if Instant::now() >= reopen_at {
                return End::Reopen;
            }
            match self.queue.take() {
                Work::Writes(writes) => {
                    send_replies(writes.into_iter().map(|queued| (queued.reply, Err(failure.clone()))), None);
                }
                // Dropped without a reply, its caller reads the failure from the queue.
                Work::Exclusive(work) => drop(work),
                Work::Probe => return End::Reopen,
                Work::Stop => return End::Stop,
                Work::Close(told) => return End::Close(told),
            }
        }
    }
}

/// Ends the queue even if the writer panics.
struct EndQueueOnDrop(Arc<WriteQueue>);

impl Drop for EndQueueOnDrop {
    fn drop(&mut self) {
        self.0.end();
    }
}
