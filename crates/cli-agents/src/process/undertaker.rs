//! The thread that notices when children end, ends them, and reaps them.
//!
//! One thread for all, so that one look at the processes of the machine serves every run that is ending, and so that
//! nothing is left undone when a future is dropped or the runtime goes away. It sleeps while nothing happens.

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

use super::ending::{Ending, Progress};
use super::ledger::Entry;
use super::quarry::{Marker, Quarry};
use super::signal::{self, Life, Status};
use super::spawner::Request;
use super::table::{Identity, Process, Table};

/// How often runs that are ending are looked at.
const ROUND: Duration = Duration::from_millis(20);

/// And how soon again when something has happened in between.
const SHORTEST_ROUND: Duration = Duration::from_millis(5);

/// How often children are looked at on a system that cannot wake us when they end.
const WITHOUT_HANDLES: Duration = Duration::from_millis(50);

/// How long killing is tried before it is given up: what survives this is stuck in the kernel or not ours to kill.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// One child and all that belongs to it.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) number: u64,
    pub(super) root: Identity,
    pub(super) label: String,
    pub(super) marker: String,
    /// Becomes readable when the root ends; none where the system has no such thing.
    pub(super) handle: Option<OwnedFd>,
    pub(super) entry: Option<Entry>,
    /// Told once nothing of the run is left.
    pub(super) done: watch::Sender<Option<Status>>,
    /// How the root ended.
    pub(super) status: Option<Status>,
    /// Nobody else has reaped the root, so its number is its own.
    pub(super) is_held: bool,
    pub(super) ending: Option<Ending>,
}

/// What the undertaker is told.
#[derive(Debug)]
pub(super) enum Message {
    Began(Box<Run>),
    End(u64),
    EndAll,
    /// Nobody will say anything any more.
    Leave,
}

/// What an undertaker knows from the start.
pub(super) struct Office {
    pub(super) grace: Duration,
    pub(super) exclusive: bool,
    /// How many runs there are.
    pub(super) running: Arc<watch::Sender<usize>>,
    /// Held while a child is started: until it is announced here, it looks like a stray.
    pub(super) spawning: Arc<Mutex<()>>,
    /// The server's guard, which is a child of it and no run.
    pub(super) guard: Arc<Mutex<Option<Identity>>>,
}

/// How the undertaker is reached.
#[derive(Clone, Debug)]
pub(super) struct Bell {
    messages: Sender<Message>,
    wake: Arc<OwnedFd>,
}

impl Bell {
    pub(super) fn new() -> io::Result<(Self, Receiver<Message>)> {
        let (messages, receiver) = std::sync::mpsc::channel();
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        Ok((Self { messages, wake }, receiver))
    }

    pub(super) fn ring(&self, message: Message) {
        if self.messages.send(message).is_ok() {
            // A counter that is full is as good as one that is counted up.
            let _ = rustix::io::write(&*self.wake, &1_u64.to_ne_bytes());
        }
    }
}

/// The thread's state.
pub(super) struct Undertaker {
    office: Office,
    messages: Receiver<Message>,
    wake: Arc<OwnedFd>,
    myself: i32,
    runs: Vec<Run>,
    /// Given up, and to be reaped should they end after all.
    lost: Vec<Run>,
    abandoned: HashSet<Identity>,
    is_closing: bool,
    is_leaving: bool,
    /// Something has happened since the last round.
    is_urgent: bool,
    last_round: Instant,
    /// What the last round took; rounds take no more than half of the time.
    cost: Duration,
}

impl Undertaker {
    pub(super) fn new(office: Office, bell: &Bell, messages: Receiver<Message>) -> Self {
        Self {
            office,
            messages,
            wake: Arc::clone(&bell.wake),
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

    /// Works until there is nobody left to work for. The spawner ends when nobody can ask it for more, and children with
    /// it: not before the last is buried.
    pub(super) fn run(mut self, spawner: Sender<Request>) {
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

    /// Until something happens, or a round is due.
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
        self.runs.iter().find(|run| run.ending.is_some())?;
        let rest = if self.is_urgent { SHORTEST_ROUND } else { ROUND }.max(self.cost);
        Some(rest.saturating_sub(self.last_round.elapsed()))
    }

    fn listen(&mut self) {
        while let Ok(message) = self.messages.try_recv() {
            match message {
                Message::Began(run) => self.runs.push(*run),
                Message::End(number) => self.end(|run| run.number == number),
                Message::EndAll => self.is_closing = true,
                Message::Leave => self.is_leaving = true,
            }
        }
        if self.is_closing || self.is_leaving {
            self.end(|_| true);
        }
    }

    /// Finds roots that have ended. What they have left behind ends too.
    fn look(&mut self) {
        let mut has_ended = false;
        for run in self.runs.iter_mut().filter(|run| run.status.is_none()) {
            match signal::look(run.root.pid) {
                Life::Running => continue,
                Life::Ended(status) => run.status = Some(status),
                Life::Unknown => {
                    run.status = Some(Status::default());
                    run.is_held = false;
                    run.ending.iter_mut().for_each(Ending::lose_leader);
                }
            }
            has_ended = true;
        }
        self.is_urgent |= has_ended;
        if has_ended {
            self.end(|run| run.status.is_some());
        }
        self.lost.retain(|run| match signal::reap(run.root.pid) {
            Life::Running => true,
            Life::Ended(_) | Life::Unknown => false,
        });
    }

    fn end(&mut self, which: impl Fn(&Run) -> bool) {
        for run in self.runs.iter_mut().filter(|run| run.ending.is_none() && which(run)) {
            let quarry = Quarry::new(vec![run.root], vec![Marker::Run(run.marker.clone())]);
            let leader = run.is_held.then_some(run.root.pid);
            run.ending = Some(Ending::new(quarry, leader, self.office.grace, PATIENCE));
            self.is_urgent = true;
        }
    }

    /// One look at all processes, and one step for every run that is ending.
    fn round(&mut self) {
        let spawning = Arc::clone(&self.office.spawning);
        let quiet = spawning.lock();
        // Whoever was started before the lock was ours has been announced, and is no stray.
        self.listen();
        let begun = Instant::now();
        self.runs.iter_mut().filter_map(|run| run.ending.as_mut()).for_each(Ending::begin_round);
        let table = Table::read(|process| self.meet(process));
        let table = table.inspect_err(|error| warn!(%error, "the processes of this machine cannot be seen")).ok();
        let mut strays = table.as_ref().map(|table| self.strays(table)).unwrap_or_default();
        let mut going = Vec::new();
        for mut run in std::mem::take(&mut self.runs) {
            let progress = match (&mut run.ending, &table) {
                (None, _) => Progress::Going,
                // Strays are nobody's in particular: the first that is ending takes them along.
                (Some(ending), Some(table)) => ending.round(table, &std::mem::take(&mut strays), &self.abandoned),
                (Some(ending), None) => ending.blind_round(),
            };
            match progress {
                Progress::Over if run.status.is_some() => self.bury(run),
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

    /// What must be stopped at first sight.
    fn meet(&self, process: &Process) {
        let endings = || self.runs.iter().filter_map(|run| run.ending.as_ref());
        for ending in endings() {
            ending.meet(process);
        }
        if !process.is_zombie && endings().any(Ending::is_killing) && self.is_stray(process) {
            signal::send(process.identity, Signal::KILL);
        }
    }

    /// All strays. Those that have ended are reaped here.
    fn strays(&self, table: &Table) -> HashSet<Identity> {
        let strays = table.children(self.myself).filter(|child| self.is_stray(child));
        let (ended, alive): (Vec<&Process>, Vec<&Process>) = strays.partition(|stray| stray.is_zombie);
        for stray in ended {
            signal::reap(stray.identity.pid);
        }
        alive.iter().map(|stray| stray.identity).collect()
    }

    /// Whether it is a child of ours that nobody has started: it has lost its parent, and left everything that ties it
    /// to a run.
    fn is_stray(&self, process: &Process) -> bool {
        let is_child = self.office.exclusive && process.parent == self.myself;
        let is_root = |run: &Run| run.root == process.identity;
        let is_of = |run: &Run| {
            let root = run.root.pid;
            process.group == root || process.session == root || process.marker.as_ref() == Some(&run.marker)
        };
        is_child
            && !self.runs.iter().any(|run| is_root(run) || !process.is_zombie && is_of(run))
            && !self.lost.iter().any(is_root)
            && !self.abandoned.contains(&process.identity)
            && *self.office.guard.lock() != Some(process.identity)
    }

    fn bury(&self, run: Run) {
        if let Some(entry) = run.entry {
            entry.remove();
        }
        if run.is_held {
            signal::reap(run.root.pid);
        }
        self.office.running.send_modify(|count| *count = count.saturating_sub(1));
        run.done.send_replace(Some(run.status.unwrap_or_default()));
    }

    /// The entry stays, so that the next server tries again.
    fn give_up(&mut self, mut run: Run, left: Vec<Identity>) {
        let pids: Vec<i32> = left.iter().map(|process| process.pid).collect();
        error!(label = run.label, pid = run.root.pid, left = ?pids, "processes of a run could not be ended");
        self.abandoned.extend(left);
        self.office.running.send_modify(|count| *count = count.saturating_sub(1));
        run.done.send_replace(Some(run.status.unwrap_or_default()));
        run.ending = None;
        self.lost.push(run);
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;
    use crate::process::table;

    /// A run as a system without handles for processes has it.
    fn without_handle(child: &Child) -> (Box<Run>, watch::Receiver<Option<Status>>) {
        let (done, ended) = watch::channel(None);
        let pid = child.id().cast_signed();
        let root = Identity { pid, start: table::start(pid).unwrap() };
        let run = Run {
            number: child.id().into(),
            root,
            label: "test".to_owned(),
            marker: "none".to_owned(),
            handle: None,
            entry: None,
            done,
            status: None,
            is_held: true,
            ending: None,
        };
        (Box::new(run), ended)
    }

    #[test]
    fn ends_are_noticed_where_children_have_no_handles_and_where_others_reap_them() {
        let (bell, messages) = Bell::new().unwrap();
        let running = Arc::new(watch::Sender::new(3));
        let spawning = Arc::new(Mutex::new(()));
        let grace = Duration::from_secs(2);
        let office = Office { grace, exclusive: false, running: Arc::clone(&running), spawning, guard: Arc::default() };
        let undertaker = Undertaker::new(office, &bell, messages);
        let (spawner, requests) = std::sync::mpsc::channel();

        let shell = |script: &str| Command::new("/bin/sh").args(["-c", script]).spawn().unwrap();
        let (mut leaves, mut stays, mut reaped) = (shell("exit 3"), shell("exec sleep 60"), shell("exit 4"));
        let (first, left) = without_handle(&leaves);
        let (second, ended) = without_handle(&stays);
        let (third, unknown) = without_handle(&reaped);
        reaped.wait().unwrap();
        let end = Message::End(second.number);
        for message in [Message::Began(first), Message::Began(second), Message::Began(third), end] {
            bell.ring(message);
        }
        let working = std::thread::spawn(move || undertaker.run(spawner));
        while *running.borrow() > 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
        bell.ring(Message::Leave);
        working.join().unwrap();
        assert!(leaves.wait().is_err() && stays.wait().is_err(), "they were reaped");
        assert_eq!(*left.borrow(), Some(Status { code: Some(3), signal: None }));
        assert_eq!(*ended.borrow(), Some(Status { code: None, signal: Some(15) }));
        assert_eq!(*unknown.borrow(), Some(Status::default()));
        assert!(requests.recv().is_err(), "the spawner is told that nobody needs it any more");
    }
}
