//! Repository locks: one task at a time in a repository, whichever agent's, in the order of arrival.
//!
//! A folder and one below it conflict too: a program that works in the upper one can change the lower one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use switchboard_a2a::{TaskId, Timestamp};
use switchboard_admission::ExclusiveQueue;
use switchboard_engine::clock::Clock;
use switchboard_engine::{AgentName, BlockingTask, BlockingTaskView, CallerId, TaskHandle};

use super::process_bound_position::ProcessBoundPosition;

/// The tasks that work in a repository or wait for one.
pub(super) struct RepositoryLocks {
    queue: Arc<ExclusiveQueue<LockRequest>>,
    clock: Arc<dyn Clock>,
}

/// A task in the queue.
pub(super) struct LockRequest {
    folder: PathBuf,
    owner: LockOwner,
    queued_at: Timestamp,
    /// Since when it has the repository, if it does.
    holds_since: Option<Timestamp>,
    /// Since when its program waits for an answer, if it does.
    asks_since: Option<Timestamp>,
}

/// Which task wants the lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LockOwner {
    pub(super) task: TaskId,
    pub(super) agent: AgentName,
    pub(super) owner: CallerId,
}

impl LockOwner {
    pub(super) fn of(task: &TaskHandle) -> Self {
        Self { task: task.id().clone(), agent: task.agent().clone(), owner: task.caller().clone() }
    }
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
        let queue = ExclusiveQueue::new(conflict, move |request| request.holds_since = Some(lock_clock.now()));
        Self { queue, clock }
    }

    /// Queues a task for a repository, by its top folder.
    pub(super) fn enqueue(&self, folder: &Path, owner: LockOwner) -> RepositoryLock {
        let (folder, queued_at) = (folder.to_owned(), self.clock.now());
        let request = LockRequest { folder, owner, queued_at, holds_since: None, asks_since: None };
        ProcessBoundPosition::new(self.queue.enqueue(request))
    }

    /// Notes whether a task waits for an answer now: those that wait for its lock say so.
    pub(super) fn set_waits_for_answer(&self, task: &TaskId, waits: bool) {
        let asks_since = waits.then(|| self.clock.now());
        self.queue.update(|request| {
            let changes = request.owner.task == *task && request.asks_since.is_some() != waits;
            if changes {
                request.asks_since = asks_since;
            }
            changes
        });
    }
}

impl RepositoryLock {
    /// The tasks ahead; none if the lock is held.
    pub(super) fn ahead(&self) -> Option<TasksAhead> {
        self.read(|_, ahead| {
            let asking = ahead.iter().find(|request| request.asks_since.is_some());
            let holding = || ahead.iter().find(|request| request.holds_since.is_some());
            let first = asking.or_else(holding).or(ahead.first())?;
            let LockOwner { task, agent, owner } = first.owner.clone();
            let since = first.holds_since.unwrap_or(first.queued_at);
            let blocker = BlockingTask { task, agent, owner, since, asks_since: first.asks_since };
            Some(TasksAhead { count: ahead.len(), blocker, holds: first.holds_since.is_some() })
        })?
    }

    /// Whether it is a lock on this repository.
    pub(super) fn is_for(&self, folder: &Path) -> bool {
        self.read(|own, _| own.folder == folder).unwrap_or(false)
    }
}

fn overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}
