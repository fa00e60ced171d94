//! Moves the write-ahead log into the file, off the writer's path, on a thread and connection of its own.
//!
//! A passive checkpoint never blocks the writer, but while the writer goes on it never catches up either, and the log
//! would grow without end. So passive rounds do the bulk of the work, and then the writer is held for the moment that
//! the rest takes, after which it begins the log anew in the same space.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use rusqlite::Connection;

/// 8 MiB of log: large enough that pages written again and again are moved once, small enough that a round takes a few
/// milliseconds of a busy core and nobody waits long behind it.
const RESTART_PAGES: i32 = 1024;
/// After a round that could not finish, the next one comes when the log has grown by this.
const RETRY_PAGES: i32 = 512;
/// The rest that the writer may be held for: about a millisecond of copying.
const REMAINDER_PAGES: i64 = 256;
/// Passive rounds before the rest is taken as it is.
const ROUNDS: usize = 4;
/// Without a commit for so long, the log is emptied altogether.
const IDLE: Duration = Duration::from_secs(2);

#[derive(Default)]
struct State {
    /// Pages in the log, as of the last commit.
    pages: i32,
    /// The next round is due at this many.
    due: i32,
    commits: u64,
    /// Something has been committed since the log was last emptied.
    dirty: bool,
    stop: bool,
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

/// The thread and how to talk to it.
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

    /// What the writer holds during a transaction.
    pub(crate) fn gate(&self) -> Arc<Mutex<()>> {
        Arc::clone(&self.shared.gate)
    }

    /// The writer has committed and the log now has so many pages.
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
            // Without this thread the log would grow until the disk is full, so no round may end it.
            match catch_unwind(AssertUnwindSafe(|| round(due))) {
                Ok(Ok(())) => continue,
                // The log stays and is tried again; the writer reports a full disk by itself.
                Ok(Err(error)) => {
                    tracing::warn!(%error, "the write-ahead log could not be moved into the database file");
                }
                // What held the writer was let go on the way here.
                Err(_) => tracing::error!("moving the write-ahead log into the database file panicked"),
            }
            let mut state = self.state.lock();
            state.due = state.pages + RETRY_PAGES;
        }
    }

    fn round(&self, connection: &Connection, due: CheckpointMode) -> rusqlite::Result<()> {
        match due {
            CheckpointMode::Restart => self.restart(connection),
            CheckpointMode::Truncate => self.truncate(connection),
        }
    }

    /// Blocks until a round is due; nothing once the thread is to end.
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
        let mut state = self.state.lock();
        if done {
            state.pages = 0;
            state.due = RESTART_PAGES;
        } else {
            state.due = state.pages + RETRY_PAGES;
        }
        Ok(())
    }

    fn truncate(&self, connection: &Connection) -> rusqlite::Result<()> {
        let _writer_waits = self.gate.lock();
        let done = !checkpoint(connection, "TRUNCATE")?.busy;
        let mut state = self.state.lock();
        if done {
            state.pages = 0;
            state.due = RESTART_PAGES;
            state.dirty = false;
        }
        Ok(())
    }
}

struct CheckpointResult {
    /// Somebody was in the way, so not everything asked for was done.
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
    fn a_round_that_panics_lets_the_writer_go_on_and_is_not_the_last_one() {
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
