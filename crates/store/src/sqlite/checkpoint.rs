//! Checkpoints: moves the write-ahead log into the file, on a thread and connection of its own.
//!
//! A passive checkpoint never blocks the writer, but while the writer goes on it never catches up either, and the log
//! would grow without end. So passive checkpoints do the bulk of the work, and then the writer is held for the moment
//! that the remainder takes, after which it restarts the log in the same space.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use rusqlite::Connection;

/// 8 MiB of log: large enough that pages written again and again are moved once, small enough that a checkpoint takes a
/// few milliseconds of a busy core.
const RESTART_PAGES: i32 = 1024;
/// After a checkpoint that could not finish, the next one is due when the log has grown by this.
const RETRY_PAGES: i32 = 512;
/// What the writer may be held for: about a millisecond of copying.
const REMAINDER_PAGES: i64 = 256;
/// Passive checkpoints before the remainder is taken as it is.
const ROUNDS: usize = 4;
/// Without a commit for so long, the log is truncated.
const IDLE: Duration = Duration::from_secs(2);

#[derive(Default)]
struct State {
    /// Pages in the log, as of the last commit.
    pages: i32,
    /// The next checkpoint is due at this many.
    due: i32,
    commits: u64,
    /// There was a commit since the log was last truncated.
    dirty: bool,
    stop: bool,
}

impl State {
    fn finish(&mut self, done: bool) {
        if done {
            self.pages = 0;
            self.due = RESTART_PAGES;
        } else {
            self.due = self.pages + RETRY_PAGES;
        }
    }
}

#[derive(Default)]
struct CheckpointState {
    state: Mutex<State>,
    wake: Condvar,
    gate: Arc<Mutex<()>>,
}

#[derive(Clone, Copy)]
enum CheckpointMode {
    Restart,
    Truncate,
}

/// The checkpoint thread.
pub(crate) struct Checkpointer {
    shared: Arc<CheckpointState>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Checkpointer {
    pub(crate) fn spawn(connection: Connection) -> std::io::Result<Self> {
        Self::spawn_with(move |shared, due| shared.round(&connection, due))
    }

    fn spawn_with(
        mut round: impl FnMut(&CheckpointState, CheckpointMode) -> rusqlite::Result<()> + Send + 'static,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(CheckpointState::default());
        shared.state.lock().due = RESTART_PAGES;
        let thread = std::thread::Builder::new().name("store-checkpoint".to_owned()).spawn({
            let shared = Arc::clone(&shared);
            move || shared.run(|due| round(&shared, due))
        })?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)) })
    }

    /// The mutex that the writer holds during a transaction.
    pub(crate) fn gate(&self) -> Arc<Mutex<()>> {
        Arc::clone(&self.shared.gate)
    }

    /// Called by the writer after a commit, with the size of the log.
    pub(crate) fn committed(&self, pages: i32) {
        let mut state = self.shared.state.lock();
        state.pages = pages;
        state.commits += 1;
        let wake = !state.dirty || pages >= state.due;
        state.dirty = true;
        drop(state);
        if wake {
            self.shared.wake.notify_one();
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

impl CheckpointState {
    fn run(&self, mut round: impl FnMut(CheckpointMode) -> rusqlite::Result<()>) {
        while let Some(due) = self.wait() {
            // Without this thread the log would grow until the disk is full, so no panic may end it.
            match catch_unwind(AssertUnwindSafe(|| round(due))) {
                Ok(Ok(())) => continue,
                // The log stays for the next checkpoint; the writer reports a full disk itself.
                Ok(Err(error)) => {
                    tracing::warn!(%error, "the write-ahead log could not be moved into the database file");
                }
                // Unwinding has released the writer.
                Err(_) => tracing::error!("moving the write-ahead log into the database file panicked"),
            }
            self.state.lock().finish(false);
        }
    }

    fn round(&self, connection: &Connection, due: CheckpointMode) -> rusqlite::Result<()> {
        match due {
            CheckpointMode::Restart => self.restart(connection),
            CheckpointMode::Truncate => self.truncate(connection),
        }
    }

    /// Blocks until a checkpoint is due; `None` once the thread is to end.
    fn wait(&self) -> Option<CheckpointMode> {
        let mut state = self.state.lock();
        loop {
            if state.stop {
                return None;
            }
            if state.pages >= state.due {
                return Some(CheckpointMode::Restart);
            }
            if !state.dirty {
                self.wake.wait(&mut state);
                continue;
            }
            let commits = state.commits;
            let idle = self.wake.wait_for(&mut state, IDLE).timed_out();
            if idle && state.commits == commits && !state.stop {
                return Some(CheckpointMode::Truncate);
            }
        }
    }

    fn restart(&self, connection: &Connection) -> rusqlite::Result<()> {
        for _ in 0..ROUNDS {
            let round = checkpoint(connection, "PASSIVE")?;
            if round.log - round.moved <= REMAINDER_PAGES {
                break;
            }
        }
        let _writer_waits = self.gate.lock();
        let done = !checkpoint(connection, "RESTART")?.busy;
        self.state.lock().finish(done);
        Ok(())
    }

    fn truncate(&self, connection: &Connection) -> rusqlite::Result<()> {
        let _writer_waits = self.gate.lock();
        let done = !checkpoint(connection, "TRUNCATE")?.busy;
        if done {
            let mut state = self.state.lock();
            state.finish(done);
            state.dirty = false;
        }
        Ok(())
    }
}

struct CheckpointResult {
    /// Another connection was in the way, so it is incomplete.
    busy: bool,
    log: i64,
    moved: i64,
}

fn checkpoint(connection: &Connection, mode: &str) -> rusqlite::Result<CheckpointResult> {
    connection.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| {
        Ok(CheckpointResult { busy: row.get(0)?, log: row.get(1)?, moved: row.get(2)? })
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_checkpoint_that_panics_releases_the_writer_and_is_not_the_last_one() {
        let (sender, rounds) = mpsc::channel();
        let mut first = true;
        let checkpointer = Checkpointer::spawn_with(move |shared, _| {
            let _writer_waits = shared.gate.lock();
            sender.send(()).unwrap();
            assert!(!std::mem::take(&mut first), "this round was told to panic");
            Ok(())
        })
        .unwrap();
        let patience = Duration::from_secs(30);
        checkpointer.committed(RESTART_PAGES);
        rounds.recv_timeout(patience).unwrap();
        assert!(checkpointer.gate().try_lock_for(patience).is_some(), "the writer waits for ever");
        checkpointer.committed(RESTART_PAGES + RETRY_PAGES);
        rounds.recv_timeout(patience).expect("there was no second round");
    }
}
