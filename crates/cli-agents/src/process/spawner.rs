//! The thread that starts all children. Linux ends a child with the *thread* that started it, so that thread must live
//! as long as the server: a worker of the runtime may not.

use std::ffi::OsString;
use std::process::{ChildStderr, ChildStdin, ChildStdout};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;

use parking_lot::Mutex;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use tokio::sync::{oneshot, watch};
use tracing::warn;

use super::children::ChildrenState;
use super::command::{ChildCommand, SpawnError};
use super::guard::Guard;
use super::ledger::Ledger;
use super::process_table::{self, ProcessIdentity};
use super::reaper::{ReaperHandle, ReaperMessage, Run};
use super::signal::ExitStatus;

pub(super) struct SpawnRequest {
    pub(super) command: ChildCommand,
    pub(super) children: Arc<ChildrenState>,
    pub(super) reply: oneshot::Sender<Result<StartedChild, SpawnError>>,
}

pub(super) struct StartedChild {
    pub(super) run: RunHandle,
    pub(super) stdin: Option<ChildStdin>,
    pub(super) stdout: Option<ChildStdout>,
    pub(super) stderr: Option<ChildStderr>,
}

/// The handle of a run. Dropping it kills the process tree.
pub(super) struct RunHandle {
    number: u64,
    pub(super) pid: i32,
    pub(super) done: watch::Receiver<Option<ExitStatus>>,
    children: Arc<ChildrenState>,
}

impl RunHandle {
    /// Has the reaper kill the process tree, whatever happens to the caller.
    pub(super) fn end(&self) {
        if self.done.borrow().is_none() {
            self.children.reaper_handle.send(ReaperMessage::End(self.number));
        }
    }
}

impl Drop for RunHandle {
    fn drop(&mut self) {
        self.end();
    }
}

pub(super) struct Spawner {
    pub(super) helper: Vec<OsString>,
    pub(super) ledger: Ledger,
    pub(super) guard: Guard,
    pub(super) reaper_handle: ReaperHandle,
    pub(super) running: Arc<watch::Sender<usize>>,
    /// Held from the start of a child until the reaper knows it.
    pub(super) spawning: Arc<Mutex<()>>,
    pub(super) started: u64,
}

impl Spawner {
    /// Works until the last sender of requests is dropped.
    pub(super) fn run(mut self, requests: &Receiver<SpawnRequest>) {
        while let Ok(request) = requests.recv() {
            let started = self.start(&request.command, request.children);
            // If the caller has stopped waiting, dropping the reply kills the child.
            let _ = request.reply.send(started);
        }
    }

    fn start(&mut self, command: &ChildCommand, children: Arc<ChildrenState>) -> Result<StartedChild, SpawnError> {
        command.check()?;
        self.started += 1;
        let number = self.started;
        let marker = self.ledger.marker(number);
        let failed = |source| SpawnError::Start { program: command.program.clone(), source };
        let mut helper = command.with_helper(&self.helper, &marker);

        let quiet = self.spawning.lock();
        if children.is_closed.load(Ordering::Acquire) {
            return Err(SpawnError::Closed);
        }
        self.guard.ensure();
        let mut child = helper.spawn().map_err(failed)?;
        let pid = child.id().cast_signed();
        let Some(start) = process_table::start(pid) else {
            // It is our unreaped child, so the pid is its own.
            let _ = Pid::from_raw(pid).map(|pid| kill_process(pid, Signal::KILL));
            let _ = child.wait();
            return Err(failed(std::io::Error::other("the new process cannot be seen in /proc")));
        };
        let root = ProcessIdentity { pid, start };
        let entry = self.ledger.record(number, root, &command.label);
        let entry = entry.inspect_err(|error| warn!(%error, "a child process could not be written down")).ok();
        let (done, ended) = watch::channel(None);
        let handle = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let label = command.label.clone();
        let run =
            Run { number, root, label, marker, handle, entry, done, status: None, is_unreaped: true, kill_tree: None };
        self.running.send_modify(|count| *count += 1);
        self.reaper_handle.send(ReaperMessage::Began(Box::new(run)));
        drop(quiet);

        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        Ok(StartedChild { run: RunHandle { number, pid, done: ended, children }, stdin, stdout, stderr })
    }
}

/// The exit status of a run, once its process tree has exited.
pub(super) async fn ended(done: &mut watch::Receiver<Option<ExitStatus>>) -> ExitStatus {
    match done.wait_for(Option::is_some).await {
        Ok(status) => status.unwrap_or_default(),
        // The reaper is gone, and will not say.
        Err(_) => ExitStatus::default(),
    }
}
