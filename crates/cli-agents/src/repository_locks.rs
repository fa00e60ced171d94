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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use switchboard_engine::clock::SimulatedClock;

    use super::*;

    const START: i64 = 1_800_000_000_000;

    fn locks() -> (RepositoryLocks, SimulatedClock) {
        let clock = SimulatedClock::at(Timestamp(START));
        (RepositoryLocks::new(Arc::new(clock.clone())), clock)
    }

    fn enqueue(locks: &RepositoryLocks, folder: &str) -> RepositoryLock {
        let who =
            LockOwner { task: TaskId::from(folder), agent: AgentName::from("coder"), owner: CallerId::from("ann") };
        locks.enqueue(Path::new(folder), who)
    }

    #[test]
    fn a_folder_and_those_above_and_below_it_are_worked_in_one_after_the_other() {
        let (locks, _) = locks();
        let first = enqueue(&locks, "/repos/a");
        let beside = [enqueue(&locks, "/repos/b"), enqueue(&locks, "/repos/a-side")];
        let above = enqueue(&locks, "/repos");
        let below = enqueue(&locks, "/repos/a/vendor/c");
        let count = |place: &RepositoryLock| place.ahead().map(|ahead| ahead.count);
        assert_eq!(count(&first), None);
        assert_eq!(beside.each_ref().map(count), [None, None]);
        assert_eq!(count(&above), Some(3));
        assert_eq!(count(&below), Some(2), "the order is that of arrival");
        drop((first, beside));
        assert_eq!((count(&above), count(&below)), (None, Some(1)));
        drop((above, below));
        assert!(locks.queue.is_empty());
    }

    #[test]
    fn who_waits_learns_which_task_is_in_the_way_and_since_when() {
        let (locks, clock) = locks();
        let first = enqueue(&locks, "/a");
        clock.advance(Duration::from_secs(1));
        let (second, other) = (enqueue(&locks, "/a/b"), enqueue(&locks, "/c"));
        let last = enqueue(&locks, "/");
        let seen = |place: &RepositoryLock| {
            let ahead = place.ahead()?;
            let BlockingTask { task, since, asks_since, .. } = ahead.blocker;
            let seconds = |at: Timestamp| (at.0 - START) / 1_000;
            Some((task.to_string(), seconds(since), asks_since.map(seconds), ahead.holds))
        };
        locks.set_waits_for_answer(&TaskId::from("/c"), true);
        assert_eq!(seen(&second), Some(("/a".to_owned(), 0, None, true)));
        assert_eq!(seen(&last), Some(("/c".to_owned(), 1, Some(1), true)), "the one that can be answered");
        clock.advance(Duration::from_secs(1));
        locks.set_waits_for_answer(&TaskId::from("/a"), true);
        locks.set_waits_for_answer(&TaskId::from("/c"), false);
        assert_eq!(seen(&second), Some(("/a".to_owned(), 0, Some(2), true)));
        locks.set_waits_for_answer(&TaskId::from("/a"), false);
        let behind = enqueue(&locks, "/a/b/c");
        drop(other);
        clock.advance(Duration::from_secs(1));
        drop(first);
        assert_eq!((seen(&second), seen(&last)), (None, Some(("/a/b".to_owned(), 3, None, true))));
        assert_eq!(seen(&enqueue(&locks, "/d")), Some(("/".to_owned(), 1, None, false)), "it waits itself");
        drop((second, last));
        assert_eq!(seen(&behind), None);
    }
}
