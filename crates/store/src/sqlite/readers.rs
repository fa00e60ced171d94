//! The reader pool: threads with a read-only connection each, and one queue. A thread runs the queued reads in batches of
//! one short read transaction each. No database call runs on an async thread, and no transaction outlives its batch.
//!
//! A read that may load a large task runs alone, and never on all threads at a time: one thread is always left for the
//! small reads, which would otherwise wait for megabytes that do not concern them.

pub(crate) mod deliveries;
pub(crate) mod eviction;
pub(crate) mod feed;
pub(crate) mod list;
pub(crate) mod load;
pub(crate) mod log;
pub(crate) mod names;
pub(crate) mod survey;
pub(crate) mod webhooks;

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex, MutexGuard};
use rusqlite::Connection;
use switchboard_engine::store::{StoreError, StoreFuture};
use tokio::sync::oneshot;

use self::names::Names;
use super::connection;
use super::errors::{needs_reopening, store_error};

/// Reads per transaction; few, so that a slow one among them delays few.
const BATCH: usize = 16;

/// One reader thread's connection and cache.
pub(crate) struct Reader {
    pub(crate) connection: Connection,
    pub(crate) names: Names,
}

/// How much a read may load.
#[derive(Clone, Copy)]
pub(crate) enum ReadSize {
    Small,
    /// Megabytes.
    Large,
}

/// Replies to its caller itself; returns whether the connection is still good.
type Job = Box<dyn FnOnce(&mut Reader) -> bool + Send>;

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    /// Reads that may take long.
    large: VecDeque<Job>,
    large_running: usize,
    sleeping: usize,
    /// Of the sleeping threads, those that were woken and have not looked yet.
    woken: usize,
    stop: bool,
}

impl State {
    /// Whether another thread is to be woken. One that was woken takes a batch, so most reads of a burst wake none: a
    /// wake-up for each would cost more than the read, and on a busy core a switch to the thread and back.
    fn needs_thread(&self) -> bool {
        self.sleeping > self.woken && self.jobs.len().div_ceil(BATCH) + self.large.len() > self.woken
    }
}

struct Pool {
    path: PathBuf,
    /// Concurrent large reads.
    large_limit: usize,
    state: Mutex<State>,
    wake: Condvar,
}

pub(crate) struct ReaderPool {
    shared: Arc<Pool>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl ReaderPool {
    pub(crate) fn spawn(path: &Path, count: usize) -> Result<Self, super::OpenError> {
        let large_limit = count.saturating_sub(1).max(1);
        let (state, wake) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(Pool { path: path.to_owned(), large_limit, state, wake });
        let readers = Self { shared, threads: Mutex::default() };
        for number in 0..count {
            let reader = Reader { connection: connection::open_for_reading(path)?, names: Names::default() };
            let shared = Arc::clone(&readers.shared);
            let thread = std::thread::Builder::new()
                .name(format!("store-reader-{number}"))
                .spawn(move || shared.run(reader))
                .map_err(|source| super::OpenError::File { path: path.to_owned(), source })?;
            readers.threads.lock().push(thread);
        }
        Ok(readers)
    }

    /// Runs a read: a small one in a batch, a large one alone.
    pub(crate) fn read<T: Send + 'static>(
        &self,
        size: ReadSize,
        work: impl FnOnce(&mut Reader) -> rusqlite::Result<T> + Send + 'static,
    ) -> StoreFuture<T> {
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |reader| {
            // The request was canceled while it was queued.
            if reply.is_closed() {
                return true;
            }
            // A panic must not end the thread: in the end none would be left.
            let (result, good) = match catch_unwind(AssertUnwindSafe(|| work(reader))) {
                Ok(result) => {
                    let good = !result.as_ref().is_err_and(needs_reopening);
                    (result.map_err(|error| store_error(&error)), good)
                }
                Err(_) => {
                    tracing::error!("a read of the store panicked; its reader goes on with a new connection");
                    (Err(StoreError::Failed("a read panicked".to_owned())), false)
                }
            };
            // A caller that has gone away needs no answer.
            reply.send(result).ok();
            good
        });
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            shared.push(job, size)?;
            answer.await.unwrap_or(Err(StoreError::Closed))
        })
    }

    /// Ends the threads and waits for them; reads still queued are refused.
    pub(crate) fn stop(&self) {
        let dropped = {
            let mut state = self.shared.state.lock();
            state.stop = true;
            (std::mem::take(&mut state.jobs), std::mem::take(&mut state.large))
        };
        drop(dropped);
        self.shared.wake.notify_all();
        for thread in self.threads.lock().drain(..) {
            if thread.join().is_err() {
                tracing::error!("a reader of the store panicked");
            }
        }
    }
}

impl Drop for ReaderPool {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Pool {
    fn push(&self, job: Job, size: ReadSize) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        if state.stop {
            return Err(StoreError::Closed);
        }
        match size {
            ReadSize::Small => state.jobs.push_back(job),
            ReadSize::Large => state.large.push_back(job),
        }
        let wake = state.needs_thread();
        state.woken += usize::from(wake);
        drop(state);
        if wake {
            self.wake.notify_one();
        }
        Ok(())
    }

    fn run(&self, mut reader: Reader) {
        while let Some((jobs, large)) = self.take() {
            let good = reader.serve(jobs);
            if large {
                self.finish_large();
            }
            if good {
                continue;
            }
            match connection::open_for_reading(&self.path) {
                Ok(connection) => reader = Reader { connection, names: Names::default() },
                Err(error) => tracing::error!(%error, "a reader cannot open the database file again"),
            }
        }
    }

    /// The next batch, and whether it is a large read.
    fn take(&self) -> Option<(Vec<Job>, bool)> {
        let mut state = self.state.lock();
        loop {
            if state.large_running < self.large_limit
                && let Some(job) = state.large.pop_front()
            {
                state.large_running += 1;
                return Some((vec![job], true));
            }
            if !state.jobs.is_empty() {
                let count = state.jobs.len().min(BATCH);
                return Some((state.jobs.drain(..count).collect(), false));
            }
            if state.stop {
                return None;
            }
            state.sleeping += 1;
            self.wake.wait(&mut state);
            state.sleeping -= 1;
            state.woken = state.woken.saturating_sub(1);
            self.wait_for_group(&mut state);
        }
    }

    /// On a busy core the thread is woken between the first and the second of many requests. Yielding while the queue
    /// still grows lets it serve them in one batch; on an idle core it costs a microsecond.
    fn wait_for_group(&self, state: &mut MutexGuard<'_, State>) {
        let mut seen = 0;
        while state.jobs.len() > seen && state.jobs.len() < BATCH && state.large.is_empty() {
            seen = state.jobs.len();
            MutexGuard::unlocked(state, std::thread::yield_now);
        }
    }

    /// The thread itself looks for the next large read, so no other is woken.
    fn finish_large(&self) {
        self.state.lock().large_running -= 1;
    }
}

impl Reader {
    /// Runs jobs in one transaction; returns whether the connection is still good.
    fn serve(&mut self, jobs: Vec<Job>) -> bool {
        // Begun after the jobs were taken, so that each sees what was committed before it was queued.
        // If it cannot begin, the jobs fail and report it.
        let begun = self.run_statement("BEGIN");
        let mut good = begun.is_ok();
        for job in jobs {
            good &= job(self);
        }
        if begun.is_ok() && self.run_statement("COMMIT").is_err() {
            good = false;
        }
        good
    }

    fn run_statement(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute([])?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;

    use super::*;

    fn pool(threads: usize) -> (tempfile::TempDir, ReaderPool) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("some.db");
        let writer = Connection::open(&path).unwrap();
        writer.execute_batch("CREATE TABLE t (n INTEGER); INSERT INTO t VALUES (7)").unwrap();
        (directory, ReaderPool::spawn(&path, threads).unwrap())
    }

    #[tokio::test]
    async fn a_read_that_panics_fails_alone() {
        let (_directory, readers) = pool(1);
        let read = |panics: bool| {
            readers.read(ReadSize::Small, move |reader| {
                let n: i64 = reader.connection.query_row("SELECT n FROM t", [], |row| row.get(0))?;
                assert!(!panics, "this read was told to panic");
                Ok(n)
            })
        };
        for _ in 0..2 {
            let results = join_all([read(false), read(true), read(false)]).await;
            assert!(matches!(&results[..], [Ok(7), Err(StoreError::Failed(_)), Ok(7)]), "{results:?}");
        }
        readers.stop();
        assert!(matches!(read(false).await, Err(StoreError::Closed)));
    }

    /// Reads that block until they are released, one for each message.
    fn held() -> (std::sync::mpsc::Sender<()>, impl Fn(&mut Reader) -> rusqlite::Result<()> + Clone + Send + 'static) {
        let (release, held) = std::sync::mpsc::channel();
        let held = Arc::new(Mutex::new(held));
        // A failed test releases all of them.
        let wait = move |_: &mut Reader| {
            held.lock().recv().unwrap_or_default();
            Ok(())
        };
        (release, wait)
    }

    #[tokio::test]
    async fn small_reads_do_not_wait_for_large_ones() {
        let (_directory, readers) = pool(2);
        let (release, work) = held();
        let large: Vec<_> = (0..3).map(|_| tokio::spawn(readers.read(ReadSize::Large, work.clone()))).collect();
        let small: Vec<_> = (0..3).map(|_| tokio::spawn(readers.read(ReadSize::Small, |_| Ok(())))).collect();
        let answered = tokio::time::timeout(std::time::Duration::from_secs(90), join_all(small)).await;
        assert!(answered.is_ok_and(|small| small.into_iter().all(|read| read.unwrap().is_ok())));
        for _ in &large {
            release.send(()).unwrap();
        }
        assert!(join_all(large).await.into_iter().all(|read| read.unwrap().is_ok()));
    }

    #[tokio::test]
    async fn a_canceled_read_is_skipped() {
        let (_directory, readers) = pool(1);
        let (release, work) = held();
        let first = tokio::spawn(readers.read(ReadSize::Small, work));
        let done = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let note = Arc::clone(&done);
        let canceled = tokio::spawn(readers.read(ReadSize::Small, move |_| {
            note.store(true, std::sync::atomic::Ordering::SeqCst);
            Ok(())
        }));
        tokio::task::yield_now().await;
        canceled.abort();
        assert!(canceled.await.unwrap_err().is_cancelled());
        release.send(()).unwrap();
        first.await.unwrap().unwrap();
        readers.read(ReadSize::Small, |_| Ok(())).await.unwrap();
        assert!(!done.load(std::sync::atomic::Ordering::SeqCst));
    }
}
