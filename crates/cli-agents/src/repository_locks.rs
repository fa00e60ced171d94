//! Repository locks: one task at a time in a repository, whichever agent's, in the order of arrival.
//!
//! A folder and one below it conflict too: a program that works in the upper one can change the lower one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use switchboard_a2a::TaskId;
use switchboard_admission::ExclusiveQueue;
use switchboard_engine::clock::Clock;
use switchboard_engine::{BlockingTask, BlockingTaskView, TaskHandle};

use super::process_bound_position::ProcessBoundPosition;

/// The tasks that work in a repository or wait for one.
pub(super) struct RepositoryLocks {
    queue: Arc<ExclusiveQueue<LockRequest>>,
    clock: Arc<dyn Clock>,
}

/// A task in the queue.
pub(super) struct LockRequest {
    folder: PathBuf,
    /// The task as those behind it see it: since when it holds the lock, or waits for it.
    blocker: BlockingTask,
    holds: bool,
}

/// A lock on a repository, held or waited for; dropping it leaves the queue.
pub(super) type RepositoryLock = ProcessBoundPosition<LockRequest>;

/// The tasks that have to leave before a lock is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TasksAhead {
    pub(super) count: usize,
    /// The one to turn to: one that waits for an answer, else one that holds the lock, else the first in the queue.
    pub(super) blocker: BlockingTask,
    /// Whether the blocker holds the lock, or waits for it too.
    pub(super) holds: bool,
}

impl TasksAhead {
    /// The status of the waiting task, for a reader who may see this of the blocker.
    pub(super) fn text(&self, shown: &BlockingTaskView) -> String {
        let (agent, since, count) = (&shown.agent, shown.since, self.count);
        let doing = match (shown.asks_since, self.holds) {
            (Some(asks), _) => {
                format!("works in this repository since {since} and waits for an answer since {asks}")
            }
            (None, true) => format!("works in this repository since {since}"),
            (None, false) => format!("waits for a part of this repository since {since}"),
        };
        let help = match (&shown.task_id, &shown.answer, &shown.cancel) {
            (Some(task), Some(answer), Some(cancel)) => {
                format!("It is task {task}. Answer it: {answer}. Or stop it: {cancel}")
            }
            (Some(task), None, Some(cancel)) => format!("It is task {task}. To stop it: {cancel}"),
            _ => "It is another caller's; operators find it with: switchboard task list --all".to_owned(),
        };
        format!("Waiting: agent {agent} {doing} ({count} ahead). {help}")
    }
}

impl RepositoryLocks {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        let lock_clock = clock.clone();
        let conflict = |one: &LockRequest, other: &LockRequest| overlap(&one.folder, &other.folder);
        let queue = ExclusiveQueue::new(conflict, move |request: &mut LockRequest| {
            request.holds = true;
            request.blocker.since = lock_clock.now();
        });
        Self { queue, clock }
    }

    /// Queues a task for a repository, by its top folder.
    pub(super) fn enqueue(&self, folder: &Path, task: &TaskHandle) -> RepositoryLock {
        let blocker = BlockingTask {
            task: task.id().clone(),
            agent: task.agent().clone(),
            owner: task.caller().clone(),
            since: self.clock.now(),
            asks_since: None,
        };
        let request = LockRequest { folder: folder.to_owned(), blocker, holds: false };
        ProcessBoundPosition::new(self.queue.enqueue(request))
    }

    /// Notes whether a task waits for an answer now: those that wait for its lock say so.
    pub(super) fn set_waits_for_answer(&self, task: &TaskId, waits: bool) {
        let asks_since = waits.then(|| self.clock.now());
        self.queue.update(|request| {
            let changes = request.blocker.task == *task && request.blocker.asks_since.is_some() != waits;
            if changes {
                request.blocker.asks_since = asks_since;
            }
            changes
        });
    }
}

impl RepositoryLock {
    /// The tasks ahead; none if the lock is held.
    pub(super) fn ahead(&self) -> Option<TasksAhead> {
        self.read(|_, ahead| {
            let asking = ahead.iter().find(|request| request.blocker.asks_since.is_some());
            let holding = || ahead.iter().find(|request| request.holds);
            let first = asking.or_else(holding).or(ahead.first())?;
            Some(TasksAhead { count: ahead.len(), blocker: first.blocker.clone(), holds: first.holds })
        })?
    }

    /// The tasks that have to leave before it is held.
    pub(super) fn tasks_ahead(&self) -> Vec<TaskId> {
        let ids = |_: &LockRequest, ahead: &[&LockRequest]| {
            ahead.iter().map(|request| request.blocker.task.clone()).collect()
        };
        self.read(ids).unwrap_or_default()
    }

    /// Whether it is a lock on this repository.
    pub(super) fn is_for(&self, folder: &Path) -> bool {
        self.read(|own, _| own.folder == folder).unwrap_or(false)
    }
}

fn overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}
