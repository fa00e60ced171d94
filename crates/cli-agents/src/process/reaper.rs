//! The reaper: the thread that notices the exit of children, kills their process trees, and reaps zombies.
//!
//! One thread for all, so that one read of the process table serves every termination, and so that a termination goes
//! on when a future is dropped or the runtime goes away. It sleeps while nothing happens.

use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::process::Signal;
use tokio::sync::watch;
use tracing::{error, warn};

use super::kill_tree::{KillTree, Progress};
use super::ledger::LedgerEntry;
use super::process_table::{Process, ProcessIdentity, ProcessTable};
use super::process_tree::{Marker, ProcessTree};
use super::signal::{self, ChildState, ExitStatus};
use super::spawner::SpawnRequest;

/// How often terminations make a step.
const ROUND: Duration = Duration::from_millis(20);

/// The same after an exit or a request to kill.
const SHORTEST_ROUND: Duration = Duration::from_millis(5);

/// How often children are polled on a system without pidfds.
const WITHOUT_HANDLES: Duration = Duration::from_millis(50);

/// How long after SIGKILL a termination gives up: what survives is stuck in the kernel or may not be killed by us.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Run {
    pub(super) number: u64,
    pub(super) root: ProcessIdentity,
    pub(super) label: String,
    pub(super) marker: String,
    /// The pidfd of the root, readable once it exits; none where the system has no pidfds.
    pub(super) handle: Option<OwnedFd>,
    pub(super) entry: Option<LedgerEntry>,
    /// Set once the process tree has exited.
    pub(super) done: watch::Sender<Option<ExitStatus>>,
    pub(super) status: Option<ExitStatus>,
    /// The root was not reaped outside this crate, so its pid is its own.
    pub(super) is_unreaped: bool,
    pub(super) kill_tree: Option<KillTree>,
}

#[derive(Debug)]
pub(super) enum ReaperMessage {
    Began(Box<Run>),
    End(u64),
    EndAll,
    /// The last handle was dropped.
    Leave,
}

/// What the reaper shares with the spawner, and its settings.
pub(super) struct ReaperContext {
    pub(super) grace: Duration,
    pub(super) exclusive: bool,
    pub(super) running: Arc<watch::Sender<usize>>,
    /// Held while a child is started: until the reaper knows it, it looks like an orphan.
    pub(super) spawning: Arc<Mutex<()>>,
    /// The server's guard, which is a child of it and no run.
    pub(super) guard: Arc<Mutex<Option<ProcessIdentity>>>,
}

/// Sends requests to the reaper and wakes it.
#[derive(Clone, Debug)]
pub(super) struct ReaperHandle {
    messages: Sender<ReaperMessage>,
    wake: Arc<OwnedFd>,
}

impl ReaperHandle {
    pub(super) fn new() -> io::Result<(Self, Receiver<ReaperMessage>)> {
        let (messages, receiver) = std::sync::mpsc::channel();
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        Ok((Self { messages, wake }, receiver))
    }

    pub(super) fn send(&self, message: ReaperMessage) {
        if self.messages.send(message).is_ok() {
            // A full counter wakes it as well.
            let _ = rustix::io::write(&*self.wake, &1_u64.to_ne_bytes());
        }
    }
}

pub(super) struct Reaper {
    context: ReaperContext,
    messages: Receiver<ReaperMessage>,
    wake: Arc<OwnedFd>,
    myself: i32,
    runs: Vec<Run>,
    /// Given up, and to be reaped should they end after all.
    lost: Vec<Run>,
    abandoned: HashSet<ProcessIdentity>,
    is_closing: bool,
    is_leaving: bool,
    /// Something has happened since the last round.
    is_urgent: bool,
    last_round: Instant,
    /// What the last round took; rounds take no more than half of the time.
    cost: Duration,
}

impl Reaper {
    pub(super) fn new(context: ReaperContext, reaper_handle: &ReaperHandle, messages: Receiver<ReaperMessage>) -> Self {
        Self {
            context,
            messages,
            wake: Arc::clone(&reaper_handle.wake),
            myself: std::process::id().cast_signed(),
            runs: Vec::new(),
            lost: Vec::new(),
            abandoned: HashSet::new(),
            is_closing: false,
            is_leaving: false,
            is_urgent: false,
            last_round: Instant::now(),
            cost: Duration::ZERO,
        }
    }

    /// Works until the last handle is dropped and no run is left. Only then is `spawner` dropped: the spawner thread
    /// ends with its last sender, and the kernel kills children with the thread that started them.
    pub(super) fn run(mut self, spawner: Sender<SpawnRequest>) {
        while !(self.is_leaving && self.runs.is_empty()) {
            self.sleep();
            self.listen();
            self.look();
            if self.until_round().is_some_and(|wait| wait.is_zero()) {
                self.round();
            }
        }
        drop(spawner);
    }

    /// Until a message, an exit, or the next round.
    fn sleep(&self) {
        let unseen = || self.runs.iter().filter(|run| run.status.is_none()).chain(&self.lost);
        let mut fds = vec![PollFd::new(&*self.wake, PollFlags::IN)];
        fds.extend(unseen().filter_map(|run| run.handle.as_ref()).map(|handle| PollFd::new(handle, PollFlags::IN)));
        let look = unseen().any(|run| run.handle.is_none()).then_some(WITHOUT_HANDLES);
        let timeout = match (self.until_round(), look) {
            (Some(round), Some(look)) => Some(round.min(look)),
            (round, look) => round.or(look),
        };
        let timespec = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        match poll(&mut fds, timespec.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            // Not to spin, whatever it is.
            Err(_) => std::thread::sleep(ROUND),
        }
        let mut count = [0; 8];
        let _ = rustix::io::read(&*self.wake, &mut count);
    }

    fn until_round(&self) -> Option<Duration> {
        self.runs.iter().find(|run| run.kill_tree.is_some())?;
        let rest = if self.is_urgent { SHORTEST_ROUND } else { ROUND }.max(self.cost);
        Some(rest.saturating_sub(self.last_round.elapsed()))
    }

    fn listen(&mut self) {
        while let Ok(message) = self.messages.try_recv() {
            match message {
                ReaperMessage::Began(run) => self.runs.push(*run),
                ReaperMessage::End(number) => self.end(|run| run.number == number),
                ReaperMessage::EndAll => self.is_closing = true,
                ReaperMessage::Leave => self.is_leaving = true,
            }
        }
        if self.is_closing || self.is_leaving {
            self.end(|_| true);
        }
    }

    /// Finds roots that have exited. The rest of their process trees is killed too.
    fn look(&mut self) {
        let mut has_ended = false;
        for run in self.runs.iter_mut().filter(|run| run.status.is_none()) {
            match signal::peek(run.root.pid) {
                ChildState::Running => continue,
                ChildState::Ended(status) => run.status = Some(status),
                ChildState::Unknown => {
                    run.status = Some(ExitStatus::default());
                    run.is_unreaped = false;
                    run.kill_tree.iter_mut().for_each(KillTree::lose_leader);
                }
            }
            has_ended = true;
        }
        self.is_urgent |= has_ended;
        if has_ended {
            self.end(|run| run.status.is_some());
        }
        self.lost.retain(|run| match signal::reap(run.root.pid) {
            ChildState::Running => true,
            ChildState::Ended(_) | ChildState::Unknown => false,
        });
    }

    fn end(&mut self, which: impl Fn(&Run) -> bool) {
        for run in self.runs.iter_mut().filter(|run| run.kill_tree.is_none() && which(run)) {
            let process_tree = ProcessTree::new(vec![run.root], vec![Marker::Run(run.marker.clone())]);
            let leader = run.is_unreaped.then_some(run.root.pid);
            run.kill_tree = Some(KillTree::new(process_tree, leader, self.context.grace, PATIENCE));
            self.is_urgent = true;
        }
    }

    /// One read of the process table, and one step of every termination.
    fn round(&mut self) {
        let spawning = Arc::clone(&self.context.spawning);
        let quiet = spawning.lock();
        // Every child started before the lock was taken is in the messages by now, and is no orphan.
        self.listen();
        let begun = Instant::now();
        self.runs.iter_mut().filter_map(|run| run.kill_tree.as_mut()).for_each(KillTree::begin_round);
        let table = ProcessTable::read(|process| self.kill_on_sight(process));
        let table = table.inspect_err(|error| warn!(%error, "the processes of this machine cannot be seen")).ok();
        let mut orphans = table.as_ref().map(|table| self.orphans(table)).unwrap_or_default();
        let mut going = Vec::new();
        for mut run in std::mem::take(&mut self.runs) {
            let progress = match (&mut run.kill_tree, &table) {
                (None, _) => Progress::Going,
                // Orphans belong to no run in particular: the first termination kills them too.
                (Some(kill_tree), Some(table)) => {
                    kill_tree.round(table, &std::mem::take(&mut orphans), &self.abandoned)
                }
                (Some(kill_tree), None) => kill_tree.blind_round(),
            };
            match progress {
                Progress::Over if run.status.is_some() => self.finish(run),
                Progress::Going | Progress::Over => going.push(run),
                Progress::GivenUp(left) => self.give_up(run, left),
            }
        }
        self.runs = going;
        drop(quiet);
        self.is_urgent = false;
        self.last_round = Instant::now();
        self.cost = begun.elapsed();
    }

    /// Kills processes that must not live until the table is complete.
    fn kill_on_sight(&self, process: &Process) {
        let kill_trees = || self.runs.iter().filter_map(|run| run.kill_tree.as_ref());
        for kill_tree in kill_trees() {
            kill_tree.kill_on_sight(process);
        }
        if !process.is_zombie && kill_trees().any(KillTree::is_killing) && self.is_orphan(process) {
            signal::send(process.identity, Signal::KILL);
        }
    }

    /// All living orphans. Zombies among them are reaped here.
    fn orphans(&self, table: &ProcessTable) -> HashSet<ProcessIdentity> {
        let orphans = table.children(self.myself).filter(|child| self.is_orphan(child));
        let (ended, alive): (Vec<&Process>, Vec<&Process>) = orphans.partition(|orphan| orphan.is_zombie);
        for orphan in ended {
            signal::reap(orphan.identity.pid);
        }
        alive.iter().map(|orphan| orphan.identity).collect()
    }

    /// Whether it is an orphan: reparented to this process, and without any tie to a run.
    fn is_orphan(&self, process: &Process) -> bool {
        let is_child = self.context.exclusive && process.parent == self.myself;
        let is_root = |run: &Run| run.root == process.identity;
        let is_of = |run: &Run| {
            let root = run.root.pid;
            process.group == root || process.session == root || process.marker.as_ref() == Some(&run.marker)
        };
        is_child
            && !self.runs.iter().any(|run| is_root(run) || !process.is_zombie && is_of(run))
            && !self.lost.iter().any(is_root)
            && !self.abandoned.contains(&process.identity)
            && *self.context.guard.lock() != Some(process.identity)
    }

    fn finish(&self, run: Run) {
        if let Some(entry) = run.entry {
            entry.remove();
        }
        if run.is_unreaped {
            signal::reap(run.root.pid);
        }
        self.context.running.send_modify(|count| *count = count.saturating_sub(1));
        run.done.send_replace(Some(run.status.unwrap_or_default()));
    }

    /// The pid file stays, so that the next server tries again.
    fn give_up(&mut self, mut run: Run, left: Vec<ProcessIdentity>) {
        let pids: Vec<i32> = left.iter().map(|process| process.pid).collect();
        error!(label = run.label, pid = run.root.pid, left = ?pids, "processes of a run could not be ended");
        self.abandoned.extend(left);
        self.context.running.send_modify(|count| *count = count.saturating_sub(1));
        run.done.send_replace(Some(run.status.unwrap_or_default()));
        run.kill_tree = None;
        self.lost.push(run);
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;
    use crate::process::process_table;

    /// A run as a system without handles for processes has it.
    fn without_handle(child: &Child) -> (Box<Run>, watch::Receiver<Option<ExitStatus>>) {
        let (done, ended) = watch::channel(None);
        let pid = child.id().cast_signed();
        let root = ProcessIdentity { pid, start: process_table::start(pid).unwrap() };
        let run = Run {
            number: child.id().into(),
            root,
            label: "test".to_owned(),
            marker: "none".to_owned(),
            handle: None,
            entry: None,
            done,
            status: None,
            is_unreaped: true,
            kill_tree: None,
        };
        (Box::new(run), ended)
    }

    #[test]
    fn ends_are_noticed_where_children_have_no_handles_and_where_others_reap_them() {
        let (reaper_handle, messages) = ReaperHandle::new().unwrap();
        let running = Arc::new(watch::Sender::new(3));
        let spawning = Arc::new(Mutex::new(()));
        let grace = Duration::from_secs(2);
        let context =
            ReaperContext { grace, exclusive: false, running: Arc::clone(&running), spawning, guard: Arc::default() };
        let reaper = Reaper::new(context, &reaper_handle, messages);
        let (spawner, requests) = std::sync::mpsc::channel();

        let shell = |script: &str| Command::new("/bin/sh").args(["-c", script]).spawn().unwrap();
        let (mut leaves, mut stays, mut reaped) = (shell("exit 3"), shell("exec sleep 60"), shell("exit 4"));
        let (first, left) = without_handle(&leaves);
        let (second, ended) = without_handle(&stays);
        let (third, unknown) = without_handle(&reaped);
        reaped.wait().unwrap();
        let end = ReaperMessage::End(second.number);
        for message in [ReaperMessage::Began(first), ReaperMessage::Began(second), ReaperMessage::Began(third), end] {
            reaper_handle.send(message);
        }
        let working = std::thread::spawn(move || reaper.run(spawner));
        while *running.borrow() > 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
        reaper_handle.send(ReaperMessage::Leave);
        working.join().unwrap();
        assert!(leaves.wait().is_err() && stays.wait().is_err(), "they were reaped");
        assert_eq!(*left.borrow(), Some(ExitStatus { code: Some(3), signal: None }));
        assert_eq!(*ended.borrow(), Some(ExitStatus { code: None, signal: Some(15) }));
        assert_eq!(*unknown.borrow(), Some(ExitStatus::default()));
        assert!(requests.recv().is_err(), "the spawner is told that nothing needs it any more");
    }
}
