//! How everything of a run is ended: asked, given a grace, then killed.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::process_table::{Process, ProcessIdentity, ProcessTable};
use super::process_tree::ProcessTree;
use super::signal;

/// One run, or what an earlier server left, on its way out.
#[derive(Debug)]
pub(super) struct Termination {
    process_tree: ProcessTree,
    /// The group to signal at one stroke. Only while its leader is a child of ours that nobody has reaped.
    leader: Option<i32>,
    /// When it was asked to end. Whatever holds us up, nobody is killed who was not asked before.
    terminated_at: Option<Instant>,
    is_killing: bool,
    /// From the first signal to the one that cannot be ignored.
    grace: Duration,
    /// From then until it is given up.
    patience: Duration,
    /// Who has had a signal. Nobody is asked twice: some programs take that for impatience and skip their cleaning up.
    asked: HashSet<ProcessIdentity>,
    /// The last look has found nothing. One look is not enough: what starts another and ends while the table is read may
    /// be in it with neither.
    is_quiet: bool,
}

/// How far an ending is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Something is left.
    Going,
    /// Nothing is left but the root, which may be a zombie.
    Over,
    /// These could not be ended.
    GivenUp(Vec<ProcessIdentity>),
}

impl Termination {
    pub(super) fn new(process_tree: ProcessTree, leader: Option<i32>, grace: Duration, patience: Duration) -> Self {
        Self {
            process_tree,
            leader,
            terminated_at: None,
            is_killing: false,
            grace,
            patience,
            asked: HashSet::new(),
            is_quiet: false,
        }
    }

    /// The leader was reaped by somebody else, so its number may be anybody's.
    pub(super) fn lose_leader(&mut self) {
        self.leader = None;
    }

    /// How many have had a signal.
    pub(super) fn asked(&self) -> usize {
        self.asked.len()
    }

    /// Whether the grace was over when this round began.
    pub(super) fn is_killing(&self) -> bool {
        self.is_killing
    }

    fn is_timed_out(&self) -> bool {
        self.terminated_at.is_some_and(|terminated_at| terminated_at.elapsed() >= self.grace + self.patience)
    }

    /// Comes before the look at all processes. Once the grace is over it kills the group at one stroke: members that
    /// start others while one is killed after the other would win, and a root that outlives its children would take
    /// itself for done.
    pub(super) fn begin_round(&mut self) {
        self.is_killing = self.terminated_at.is_some_and(|terminated_at| terminated_at.elapsed() >= self.grace);
        if let Some(leader) = self.leader.filter(|_| self.is_killing) {
            signal::send_to_group(leader, Signal::KILL);
        }
    }

    /// Kills at first sight, once the grace is over. What is replaced by another of its kind all the time is gone by the
    /// time a round is made up.
    pub(super) fn kill_on_sight(&self, process: &Process) {
        if !process.is_zombie && self.is_killing && self.process_tree.is_tied(process, self.leader) {
            signal::send(process.identity, Signal::KILL);
        }
    }

    /// Signals what is there, reaps what is ours. `abandoned` were given up before and hold up nobody.
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

    /// A round in which the processes could not be seen: there is only the group.
    pub(super) fn blind_round(&mut self) -> Progress {
        if self.terminated_at.is_none() {
            self.terminated_at = Some(Instant::now());
            self.leader.into_iter().for_each(terminate_group);
        }
        if self.is_timed_out() { Progress::GivenUp(Vec::new()) } else { Progress::Going }
    }

    fn terminate(&mut self, alive: &[&Process]) {
        let new: Vec<&Process> =
            alive.iter().filter(|process| !self.asked.contains(&process.identity)).copied().collect();
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
        self.asked.extend(new.iter().map(|process| process.identity));
    }

    fn kill(&mut self, alive: &[&Process]) {
        for process in alive {
            signal::send(process.identity, Signal::KILL);
        }
        self.asked.extend(alive.iter().map(|process| process.identity));
    }

    /// Reaps those that have come to us, except the root, whose number must stay taken. Says whether the table is torn:
    /// one whose parent ended while it was read may have come to us since.
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

/// One that was stopped can only do as it is asked once it runs.
fn terminate_group(leader: i32) {
    signal::send_to_group(leader, Signal::TERM);
    signal::send_to_group(leader, Signal::CONT);
}
