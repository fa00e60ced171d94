//! Kill tree: terminates every process of a run with SIGTERM, waits for the grace, then sends SIGKILL.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::process_table::{Process, ProcessIdentity, ProcessTable};
use super::process_tree::ProcessTree;
use super::signal;

/// The termination of one process tree: a run, or the orphans of an earlier server.
#[derive(Debug)]
pub(super) struct KillTree {
    process_tree: ProcessTree,
    /// The process group to signal at once. Only while its leader is our unreaped child: then its pid is not reused.
    leader: Option<i32>,
    /// When SIGTERM was first sent. No process gets SIGKILL before SIGTERM, however late this thread is.
    terminated_at: Option<Instant>,
    is_killing: bool,
    /// From SIGTERM to SIGKILL.
    grace: Duration,
    /// From SIGKILL until the termination gives up.
    patience: Duration,
    /// Processes that had a signal. SIGTERM is sent once: some programs take a second one as "skip the clean-up".
    signalled: HashSet<ProcessIdentity>,
    /// The last round found no process. One such round is not enough: a process that forks and exits while the table is
    /// read may be in it with neither half.
    is_quiet: bool,
}

/// How far a termination is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Going,
    /// Only the root is left, which may be a zombie.
    Over,
    GivenUp(Vec<ProcessIdentity>),
}

impl KillTree {
    pub(super) fn new(process_tree: ProcessTree, leader: Option<i32>, grace: Duration, patience: Duration) -> Self {
        Self {
            process_tree,
            leader,
            terminated_at: None,
            is_killing: false,
            grace,
            patience,
            signalled: HashSet::new(),
            is_quiet: false,
        }
    }

    /// The leader was reaped outside this crate, so its pid may be reused.
    pub(super) fn lose_leader(&mut self) {
        self.leader = None;
    }

    pub(super) fn signalled(&self) -> usize {
        self.signalled.len()
    }

    /// Whether the grace was over when this round began.
    pub(super) fn is_killing(&self) -> bool {
        self.is_killing
    }

    fn is_timed_out(&self) -> bool {
        self.terminated_at.is_some_and(|terminated_at| terminated_at.elapsed() >= self.grace + self.patience)
    }

    /// Called before the process table is read. Once the grace is over it kills the process group at once: members that
    /// fork while they are killed one by one would win, and a root that outlives its children would take itself for
    /// done.
    pub(super) fn begin_round(&mut self) {
        self.is_killing = self.terminated_at.is_some_and(|terminated_at| terminated_at.elapsed() >= self.grace);
        if let Some(leader) = self.leader.filter(|_| self.is_killing) {
            signal::send_to_group(leader, Signal::KILL);
        }
    }

    /// Once the grace is over, kills a process as soon as the table shows it: a process that keeps replacing itself by
    /// a fork is gone by the time the round has the whole table.
    pub(super) fn kill_on_sight(&self, process: &Process) {
        if !process.is_zombie && self.is_killing && self.process_tree.is_tied(process, self.leader) {
            signal::send(process.identity, Signal::KILL);
        }
    }

    /// Signals the processes of the tree and reaps our zombies. `abandoned` were given up before and are not waited
    /// for.
    pub(super) fn round(
        &mut self,
        table: &ProcessTable,
        orphans: &HashSet<ProcessIdentity>,
        abandoned: &HashSet<ProcessIdentity>,
    ) -> Progress {
        let members = self.process_tree.find(table, orphans);
        let is_torn = self.reap(&members, table);
        let is_alive = |process: &&&Process| !process.is_zombie && !abandoned.contains(&process.identity);
        let alive: Vec<&Process> = members.iter().filter(is_alive).copied().collect();
        let was_quiet = std::mem::replace(&mut self.is_quiet, alive.is_empty() && !is_torn);
        if alive.is_empty() {
            return if was_quiet && self.is_quiet { Progress::Over } else { Progress::Going };
        }
        if self.is_timed_out() {
            return Progress::GivenUp(alive.iter().map(|process| process.identity).collect());
        }
        if self.is_killing {
            self.kill(&alive);
        } else {
            self.terminate(&alive);
        }
        Progress::Going
    }

    /// A round without a process table: only the process group can be signalled.
    pub(super) fn blind_round(&mut self) -> Progress {
        if self.terminated_at.is_none() {
            self.terminated_at = Some(Instant::now());
            self.leader.into_iter().for_each(terminate_group);
        }
        if self.is_timed_out() { Progress::GivenUp(Vec::new()) } else { Progress::Going }
    }

    fn terminate(&mut self, alive: &[&Process]) {
        let new: Vec<&Process> =
            alive.iter().filter(|process| !self.signalled.contains(&process.identity)).copied().collect();
        let is_first = self.terminated_at.is_none();
        self.terminated_at.get_or_insert_with(Instant::now);
        let is_in_group = |process: &Process| Some(process.group) == self.leader;
        if let Some(leader) = self.leader.filter(|_| is_first && new.iter().any(|process| is_in_group(process))) {
            terminate_group(leader);
        }
        for process in &new {
            if !(is_first && is_in_group(process)) {
                signal::send(process.identity, Signal::TERM);
                signal::send(process.identity, Signal::CONT);
            }
        }
        self.signalled.extend(new.iter().map(|process| process.identity));
    }

    fn kill(&mut self, alive: &[&Process]) {
        for process in alive {
            signal::send(process.identity, Signal::KILL);
        }
        self.signalled.extend(alive.iter().map(|process| process.identity));
    }

    /// Reaps zombies that were reparented to us, except the root, whose pid must stay taken. Says whether the table is
    /// torn: a process whose parent exited while it was read may have been reparented since.
    fn reap(&self, members: &[&Process], table: &ProcessTable) -> bool {
        let myself = std::process::id().cast_signed();
        let mut is_torn = false;
        for zombie in members.iter().filter(|process| process.is_zombie && !self.process_tree.is_root(process)) {
            if zombie.parent == myself {
                signal::reap(zombie.identity.pid);
            }
            is_torn |= table.get(zombie.parent).is_some_and(|parent| parent.is_zombie);
        }
        is_torn
    }
}

/// A stopped process handles SIGTERM only once it continues.
fn terminate_group(leader: i32) {
    signal::send_to_group(leader, Signal::TERM);
    signal::send_to_group(leader, Signal::CONT);
}
