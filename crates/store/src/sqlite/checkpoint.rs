//! Checkpoints: moves the write-ahead log into the file, on a thread and connection of its own.
//!
//! Passive rounds copy the log while the writer goes on, and the file is synced beside it as well. Where the writer
//! pauses, such a round leaves nothing over, and SQLite begins the log anew with the next transaction.
//!
//! Under continuous load the next transaction has begun before a round is over, and SQLite has one log: it can begin it
//! anew only with a transaction that finds every page of it copied and synced. So at
//! [`RESTART_PAGES`] the writer is held between two transactions, but only after rounds have brought the remainder down to
//! the few pages that were written during the last of them, and with everything else synced. That is as much as a commit
//! more for every 32 MiB of log.
//!
//! Readers that are in the log keep it from being begun anew. New ones do not enter it while the writer is held and all
//! of it is copied, so it takes as long as the reads under way. Up to [`LIMIT_PAGES`] the writer is not held for those
//! that do not end at once; the next round tries again. Beyond it the writer waits for them, and for a disk that does
//! not keep up. So the log is at most [`LIMIT_PAGES`] long and what one transaction writes, unless a read takes longer than
//! [`LIMIT_PATIENCE`]: a backup does, and the log grows until it ends.

mod wal;

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use self::wal::{CheckpointResult, SqliteLog, WriteAheadLog};
use super::Durability;
use super::open::OpenError;
use crate::metric_definitions::CHECKPOINT_HOLD_SECONDS;

/// 4 MiB of log: large enough that a page that is written again and again is copied once, small enough that a round takes
/// a few milliseconds of a core that it may share with requests.
const ROUND_PAGES: i64 = 512;
/// 32 MiB of log: what the writer is held for is shared by so many appends that it is seen by few.
const RESTART_PAGES: i64 = 4096;
/// What the writer may be held for at most: about a millisecond of copying. After a round it is much less, unless a reader
/// is in the way.
const REMAINDER_PAGES: i64 = 256;
/// Rounds that bring the remainder down before the writer is held.
const RESTART_ROUNDS: usize = 4;
/// 128 MiB of log, which is only reached where reads overlap all the time.
const LIMIT_PAGES: i64 = 16_384;
/// How long the held writer waits for reads under way: ordinary ones are done in it.
const RESTART_PATIENCE: Duration = Duration::from_millis(5);
/// The same beyond the limit: all but the largest tasks are read in it.
const LIMIT_PATIENCE: Duration = Duration::from_millis(50);
/// Without a commit for so long, the log is truncated.
const IDLE: Duration = Duration::from_secs(2);

struct State {
    /// Pages in the log, as of the last commit.
    pages: i64,
    /// The next round is due at this many.
    due: i64,
    commits: u64,
    /// There was a commit since the log was last truncated.
    dirty: bool,
    in_round: bool,
    stop: bool,
}

struct CheckpointState {
    state: Mutex<State>,
    wake: Condvar,
    round_over: Condvar,
    gate: Arc<Mutex<()>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Due {
    Round,
    Truncate,
}

/// The checkpoint thread.
pub(crate) struct Checkpointer {
    shared: Arc<CheckpointState>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// The file that the thread syncs, which is closed after the last connection.
    _database: Option<Arc<File>>,
}

impl Checkpointer {
    pub(crate) fn spawn(path: &Path, durability: Durability) -> Result<Self, OpenError> {
        let (log, database) = SqliteLog::open(path, durability)?;
        let thread_error = |source| OpenError::File { path: path.to_owned(), source };
        let mut checkpointer = Self::spawn_with(log).map_err(thread_error)?;
        checkpointer._database = Some(database);
        Ok(checkpointer)
    }

    fn spawn_with(mut log: impl WriteAheadLog + 'static) -> std::io::Result<Self> {
        let state = State { pages: 0, due: ROUND_PAGES, commits: 0, dirty: false, in_round: false, stop: false };
        let shared = Arc::new(CheckpointState {
            state: Mutex::new(state),
            wake: Condvar::new(),
            round_over: Condvar::new(),
            gate: Arc::default(),
        });
        let thread = std::thread::Builder::new().name("store-checkpoint".to_owned()).spawn({
            let shared = Arc::clone(&shared);
            move || shared.run(&mut log)
        })?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)), _database: None })
    }

    /// The mutex that the writer holds during a transaction.
    pub(crate) fn gate(&self) -> Arc<Mutex<()>> {
        Arc::clone(&self.shared.gate)
    }

    /// Called by the writer after a commit, with the size of the log. Backpressure: at the limit it waits for the round
    /// under way, which the disk keeps from ending.
    pub(crate) fn committed(&self, pages: i32) {
        let pages = i64::from(pages);
        let mut state = self.shared.state.lock();
        if pages < state.pages {
            // It was begun anew.
            state.due = ROUND_PAGES;
        }
        state.pages = pages;
        state.commits += 1;
        let wake = !state.dirty || pages >= state.due;
        state.dirty = true;
        if wake {
            self.shared.wake.notify_one();
        }
        while state.in_round && state.pages >= LIMIT_PAGES {
            self.shared.round_over.wait(&mut state);
        }
    }

    /// Ends the thread and waits for it.
    pub(crate) fn stop(&self) {
        self.shared.state.lock().stop = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.lock().take()
            && thread.join().is_err()
        {
            tracing::error!("the checkpointer panicked");
        }
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Why a round came to nothing.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
enum RoundError {
    Database(#[from] rusqlite::Error),
    Sync(#[from] std::io::Error),
}

impl CheckpointState {
    fn run(&self, log: &mut impl WriteAheadLog) {
        while let Some((due, pages)) = self.wait() {
            // Without this thread the log would grow until the disk is full, so no panic may end it.
            let round = catch_unwind(AssertUnwindSafe(|| match due {
                Due::Round => self.round(log),
                Due::Truncate => self.truncate(log),
            }));
            match round {
                Ok(Ok(())) => {}
                // The log stays for the next round; the writer reports a full disk itself.
                Ok(Err(error)) => {
                    tracing::warn!(%error, "the write-ahead log could not be moved into the database file");
                    self.next_round(pages);
                }
                // Unwinding has released the writer.
                Err(_) => {
                    tracing::error!("moving the write-ahead log into the database file panicked");
                    self.next_round(pages);
                }
            }
            self.state.lock().in_round = false;
            self.round_over.notify_one();
        }
    }

    /// Blocks until something is due, and says how long the log is then; `None` once the thread is to end.
    fn wait(&self) -> Option<(Due, i64)> {
        let mut state = self.state.lock();
        loop {
            if state.stop {
                return None;
            }
            if state.pages >= state.due {
                state.in_round = true;
                return Some((Due::Round, state.pages));
            }
            if !state.dirty {
                self.wake.wait(&mut state);
                continue;
            }
            let commits = state.commits;
            let idle = self.wake.wait_for(&mut state, IDLE).timed_out();
            if idle && state.commits == commits && !state.stop {
                return Some((Due::Truncate, state.pages));
            }
        }
    }

    /// The log goes on; the next round is due when it has grown beyond these pages.
    fn next_round(&self, pages: i64) {
        self.state.lock().due = pages + ROUND_PAGES;
    }

    /// One passive round, and the restart of the log where it has grown so long that this is due.
    fn round(&self, log: &mut impl WriteAheadLog) -> Result<(), RoundError> {
        let mut copied = log.copy()?;
        self.next_round(copied.log);
        if copied.log < RESTART_PAGES {
            return Ok(());
        }
        for _ in 0..RESTART_ROUNDS {
            log.sync()?;
            copied = log.copy()?;
            if copied.remainder() <= REMAINDER_PAGES || copied.log >= LIMIT_PAGES {
                break;
            }
        }
        if copied.log >= LIMIT_PAGES {
            self.hold_writer(Due::Round, || log.restart(LIMIT_PATIENCE))?;
        } else if copied.remainder() <= REMAINDER_PAGES {
            self.hold_writer(Due::Round, || log.restart(RESTART_PATIENCE))?;
        }
        Ok(())
    }

    fn truncate(&self, log: &mut impl WriteAheadLog) -> Result<(), RoundError> {
        log.copy()?;
        log.sync()?;
        self.hold_writer(Due::Truncate, || log.truncate(RESTART_PATIENCE))
    }

    /// Ends a checkpoint between two transactions, so that the log begins anew if no reader is in the way.
    fn hold_writer(
        &self,
        due: Due,
        end: impl FnOnce() -> rusqlite::Result<CheckpointResult>,
    ) -> Result<(), RoundError> {
        let _writer_waits = self.gate.lock();
        let begun = Instant::now();
        let result = end()?;
        metrics::histogram!(CHECKPOINT_HOLD_SECONDS).record(begun.elapsed().as_secs_f64());
        let mut state = self.state.lock();
        if result.busy {
            // The read that is in the way is a long one, and the writer is not to be held for it all the time.
            state.due = state.pages + RESTART_PAGES;
            return Ok(());
        }
        state.pages = 0;
        state.due = ROUND_PAGES;
        // While the writer is held, no commit can come between.
        state.dirty = state.dirty && due != Due::Truncate;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    /// What the checkpointer did with the log, and whether the writer could have begun a transaction meanwhile.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Step {
        Copy,
        Sync,
        Restart,
    }

    /// A log that a writer extends during every copy.
    struct FakeLog {
        log: i64,
        copied: i64,
        /// Pages that a reader keeps from being copied.
        pinned: i64,
        written_during_copy: i64,
        gate: Arc<Mutex<Option<Arc<Mutex<()>>>>>,
        steps: mpsc::Sender<(Step, bool)>,
        panics: bool,
    }

    impl FakeLog {
        fn report(&self, step: Step) {
            let gate = self.gate.lock().clone();
            let held = gate.is_some_and(|gate| gate.try_lock().is_none());
            self.steps.send((step, held)).unwrap();
        }

        fn result(&self) -> CheckpointResult {
            CheckpointResult { log: self.log, copied: self.copied, busy: false }
        }
    }

    impl WriteAheadLog for FakeLog {
        fn copy(&mut self) -> rusqlite::Result<CheckpointResult> {
            self.report(Step::Copy);
            assert!(!std::mem::take(&mut self.panics), "this round was told to panic");
            self.copied = self.log - self.pinned;
            self.log += self.written_during_copy;
            Ok(self.result())
        }

        fn sync(&mut self) -> std::io::Result<()> {
            self.report(Step::Sync);
            Ok(())
        }

        fn restart(&mut self, _: Duration) -> rusqlite::Result<CheckpointResult> {
            self.report(Step::Restart);
            (self.log, self.copied) = (0, 0);
            Ok(self.result())
        }

        fn truncate(&mut self, patience: Duration) -> rusqlite::Result<CheckpointResult> {
            self.restart(patience)
        }
    }

    /// A checkpointer of a fake log of so many pages, and the steps it takes, with whether the writer was held.
    fn start(log: i64, pinned: i64, panics: bool) -> (Checkpointer, mpsc::Receiver<(Step, bool)>) {
        start_beside(10, log, pinned, panics)
    }

    /// The same beside a writer that commits so many pages during a copy.
    fn start_beside(
        written_during_copy: i64,
        log: i64,
        pinned: i64,
        panics: bool,
    ) -> (Checkpointer, mpsc::Receiver<(Step, bool)>) {
        let (steps, taken) = mpsc::channel();
        let gate = Arc::new(Mutex::new(None));
        let fake = FakeLog { log, copied: 0, pinned, written_during_copy, gate: Arc::clone(&gate), steps, panics };
        let checkpointer = Checkpointer::spawn_with(fake).unwrap();
        *gate.lock() = Some(checkpointer.gate());
        checkpointer.committed(i32::try_from(log).unwrap());
        (checkpointer, taken)
    }

    fn take(taken: &mpsc::Receiver<(Step, bool)>, count: usize) -> Vec<(Step, bool)> {
        (0..count).map(|_| taken.recv_timeout(PATIENCE).expect("there was no further step")).collect()
    }

    #[test]
    fn the_writer_is_held_for_the_pages_of_the_last_round_alone() {
        let (free, held) = (false, true);
        // A short log: the writer is not held at all.
        let (checkpointer, taken) = start(RESTART_PAGES - 11, 0, false);
        assert_eq!(take(&taken, 1), [(Step::Copy, free)]);
        checkpointer.stop();
        assert_eq!(taken.try_iter().count(), 0);

        // A long one: everything is copied and synced before the writer is held.
        let (checkpointer, taken) = start(RESTART_PAGES, 0, false);
        let steps = [(Step::Copy, free), (Step::Sync, free), (Step::Copy, free), (Step::Restart, held)];
        assert_eq!(take(&taken, 4), steps);
        checkpointer.stop();

        // Also where the round leaves nothing over: the transaction under way began before that, and goes on with the log.
        let (checkpointer, taken) = start_beside(0, RESTART_PAGES, 0, false);
        assert_eq!(take(&taken, 4), steps);
        checkpointer.stop();

        // A reader is in the way of so much that the writer would wait for it; so it is not held.
        let (checkpointer, taken) = start(RESTART_PAGES, REMAINDER_PAGES + 1, false);
        let round = [(Step::Sync, free), (Step::Copy, free)];
        assert_eq!(take(&taken, 1 + 2 * RESTART_ROUNDS)[1..], round.repeat(RESTART_ROUNDS));
        checkpointer.stop();
        assert_eq!(taken.try_iter().count(), 0);

        // At the limit it is.
        let (checkpointer, taken) = start(LIMIT_PAGES, REMAINDER_PAGES + 1, false);
        assert_eq!(take(&taken, 4), steps);
        checkpointer.stop();
    }

    #[test]
    fn a_round_that_panics_is_not_the_last_one() {
        let (checkpointer, taken) = start(ROUND_PAGES, 0, true);
        take(&taken, 1);
        checkpointer.committed(3 * ROUND_PAGES as i32);
        take(&taken, 1);
        assert!(checkpointer.gate().try_lock_for(PATIENCE).is_some(), "the writer waits for ever");
    }
}
