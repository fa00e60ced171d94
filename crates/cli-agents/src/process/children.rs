//! All child processes of a server: the spawner and reaper threads behind one handle.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::{getpid, set_child_subreaper};
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;
use tracing::error;

use super::child::Child;
use super::command::{ChildCommand, SpawnError};
use super::guard::Guard;
use super::ledger::Ledger;
use super::orphans::{self, Orphans};
use super::output::OutputLimits;
use super::reaper::{PATIENCE, Reaper, ReaperContext, ReaperHandle, ReaperMessage};
use super::spawner::{SpawnRequest, Spawner};

/// All child processes of a server. Clones share them.
#[derive(Clone)]
pub struct Children {
    inner: Arc<ChildrenState>,
}

/// How children are started and ended.
#[derive(Clone, Debug)]
pub struct ChildrenOptions {
    /// Helper program that becomes the child: `["/proc/self/exe", "exec-child"]` for the server.
    pub helper: Vec<OsString>,
    /// Folder of the ledger; made if needed. A server finds the orphans of an earlier one by it.
    pub ledger: PathBuf,
    /// Time between SIGTERM and SIGKILL.
    pub grace: Duration,
    /// Whether this process starts no other children, so that unknown ones are orphans to be ended and reaped.
    pub exclusive: bool,
}

/// Shared by clones and runs. The threads end when the last one is dropped and no child runs.
pub(super) struct ChildrenState {
    pub(super) reaper_handle: ReaperHandle,
    requests: Sender<SpawnRequest>,
    running: watch::Receiver<usize>,
    grace: Duration,
    /// Held by the spawner while it starts a child.
    spawning: Arc<Mutex<()>>,
    pub(super) is_closed: AtomicBool,
}

impl Drop for ChildrenState {
    fn drop(&mut self) {
        self.reaper_handle.send(ReaperMessage::Leave);
    }
}

impl Children {
    /// Kills the orphans of an earlier server, which may take seconds, and starts the threads.
    pub fn open(options: ChildrenOptions) -> io::Result<(Self, Orphans)> {
        let ledger = Ledger::open(&options.ledger)?;
        let orphans = orphans::end(&ledger, options.grace)?;
        if options.exclusive {
            // Orphaned grandchildren are reparented to this process instead of init, so that the reaper finds them. A
            // program with other children must not get strangers among them.
            set_child_subreaper(Some(getpid()))?;
        }
        let (reaper_handle, messages) = ReaperHandle::new()?;
        let (requests, received) = channel();
        let (running, count) = watch::channel(0);
        let (running, spawning) = (Arc::new(running), Arc::new(Mutex::new(())));
        let guarded = Arc::default();
        let guard = Guard::new(&options.helper, &ledger, options.grace, Arc::clone(&guarded));
        let context = ReaperContext {
            grace: options.grace,
            exclusive: options.exclusive,
            running: Arc::clone(&running),
            spawning: Arc::clone(&spawning),
            guard: guarded,
        };
        let reaper = Reaper::new(context, &reaper_handle, messages);
        let spawner = Spawner {
            helper: options.helper,
            ledger,
            guard,
            reaper_handle: reaper_handle.clone(),
            running,
            spawning: Arc::clone(&spawning),
            started: 0,
        };
        let (grace, is_closed) = (options.grace, AtomicBool::new(false));
        // If something fails from here on, dropping this ends the threads.
        let inner = Arc::new(ChildrenState { reaper_handle, requests, running: count, grace, spawning, is_closed });
        let keeps = inner.requests.clone();
        thread::Builder::new().name("reaper".to_owned()).spawn(move || reaper.run(keeps))?;
        thread::Builder::new().name("spawner".to_owned()).spawn(move || spawner.run(&received))?;
        Ok((Self { inner }, orphans))
    }

    /// Starts a child.
    ///
    /// # Errors
    /// If it cannot be started, as far as that shows before it runs. Later failures show in its exit.
    pub async fn spawn(&self, command: ChildCommand, limits: OutputLimits) -> Result<Child, SpawnError> {
        if self.inner.is_closed.load(Ordering::Acquire) {
            return Err(SpawnError::Closed);
        }
        let (program, label) = (command.program.clone(), command.label.clone());
        let (reply, started) = oneshot::channel();
        let request = SpawnRequest { command, children: Arc::clone(&self.inner), reply };
        self.inner.requests.send(request).map_err(|_| SpawnError::Closed)?;
        let started = started.await.map_err(|_| SpawnError::Closed)??;
        Child::new(started, limits, label).map_err(|source| SpawnError::Start { program, source })
    }

    /// Kills all process trees and waits until they have exited. None is started from now on.
    pub async fn close(&self) {
        {
            // A child whose start is under way is counted before this; a later start sees that it is closed.
            let _quiet = self.inner.spawning.lock();
            self.inner.is_closed.store(true, Ordering::Release);
        }
        self.inner.reaper_handle.send(ReaperMessage::EndAll);
        let mut running = self.inner.running.clone();
        let longest = self.inner.grace + PATIENCE + Duration::from_secs(1);
        if !matches!(timeout(longest, running.wait_for(|count| *count == 0)).await, Ok(Ok(_))) {
            error!(running = self.running(), "child processes are still ending");
        }
    }

    /// How many children there are, those being killed included.
    #[must_use]
    pub fn running(&self) -> usize {
        *self.inner.running.borrow()
    }
}
