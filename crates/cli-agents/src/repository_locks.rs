//! One task at a time in a repository, whichever agent's, in the order of arrival.
//!
//! A folder and one below it cannot be worked in at once either: who works in the upper one can change the lower one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use switchboard_a2a::{TaskId, Timestamp};
use switchboard_engine::clock::Clock;
use switchboard_engine::{AgentName, BlockingTask, BlockingTaskView, CallerId, TaskHandle};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::process::TreeExit;

/// Everybody who works in a repository, or waits to.
pub(super) struct RepositoryLocks {
    line: Mutex<Line>,
    clock: Arc<dyn Clock>,
    /// Told when somebody has left, or asks, or asks no longer.
    changed: Notify,
}

#[derive(Default)]
struct Line {
    /// In the order of arrival.
    members: Vec<Member>,
    last: u64,
}

struct Member {
    number: u64,
    folder: PathBuf,
    who: LockOwner,
    lined_up_at: Timestamp,
    /// Since when it has the repository, if it does.
    holds_since: Option<Timestamp>,
    /// Since when it waits for an answer, if it does.
    asks_since: Option<Timestamp>,
}

/// Which task stands in the line.
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

/// A place in the line; dropping it leaves the line.
pub(super) struct RepositoryLock {
    repositories: Arc<RepositoryLocks>,
    number: u64,
    /// A child that works under it. While anything of that is left, nobody else may be let in.
    tree_exit: Option<TreeExit>,
}

/// Who has to leave before it is one's turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TasksAhead {
    pub(super) count: usize,
    /// The one to turn to: one that waits for an answer, else one that works there, else the first in the line.
    pub(super) blocker: BlockingTask,
    /// Whether that one has the repository, or waits for it too.
    pub(super) holds: bool,
}

impl TasksAhead {
    /// What the waiting task says, to a reader who may know this of the task in front.
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
        Self { line: Mutex::default(), clock, changed: Notify::new() }
    }

    /// Stands in line for a repository, by its top folder.
    pub(super) fn enqueue(self: &Arc<Self>, folder: &Path, who: LockOwner) -> RepositoryLock {
        let now = self.clock.now();
        let mut line = self.line.lock();
        line.last += 1;
        let number = line.last;
        let folder = folder.to_owned();
        let holds_since = (!line.members.iter().any(|member| overlap(&member.folder, &folder))).then_some(now);
        line.members.push(Member { number, folder, who, lined_up_at: now, holds_since, asks_since: None });
        RepositoryLock { repositories: self.clone(), number, tree_exit: None }
    }

    /// Whether a task waits for somebody's answer now.
    pub(super) fn set_waits_for_answer(&self, task: &TaskId, asks: bool) {
        let asks_since = asks.then(|| self.clock.now());
        let mut line = self.line.lock();
        let mut members = line.members.iter_mut();
        let is_news = |member: &&mut Member| member.who.task == *task && member.asks_since.is_some() != asks;
        if let Some(member) = members.find(is_news) {
            member.asks_since = asks_since;
            self.changed.notify_waiters();
        }
    }

    fn leave(&self, number: u64) {
        let now = self.clock.now();
        let mut line = self.line.lock();
        line.members.retain(|member| member.number != number);
        for index in 0..line.members.len() {
            let (before, rest) = line.members.split_at_mut(index);
            let Some(member) = rest.first_mut().filter(|member| member.holds_since.is_none()) else { continue };
            if !before.iter().any(|other| overlap(&other.folder, &member.folder)) {
                member.holds_since = Some(now);
            }
        }
        drop(line);
        self.changed.notify_waiters();
    }
}

impl RepositoryLock {
    /// Who is ahead; nobody if it is one's turn.
    pub(super) fn ahead(&self) -> Option<TasksAhead> {
        let line = self.repositories.line.lock();
        let own = line.members.iter().find(|member| member.number == self.number)?;
        let before = line.members.iter().take_while(|member| member.number < self.number);
        let before: Vec<&Member> = before.filter(|member| overlap(&member.folder, &own.folder)).collect();
        let asking = before.iter().find(|member| member.asks_since.is_some());
        let first = asking.or_else(|| before.iter().find(|member| member.holds_since.is_some())).or(before.first())?;
        let LockOwner { task, agent, owner } = first.who.clone();
        let since = first.holds_since.unwrap_or(first.lined_up_at);
        let blocker = BlockingTask { task, agent, owner, since, asks_since: first.asks_since };
        Some(TasksAhead { count: before.len(), blocker, holds: first.holds_since.is_some() })
    }

    /// Whether it is a place in the line for this repository.
    pub(super) fn is_for(&self, folder: &Path) -> bool {
        let line = self.repositories.line.lock();
        line.members.iter().any(|member| member.number == self.number && member.folder == folder)
    }

    /// Resolves when something has changed since it was enabled.
    pub(super) fn changed(&self) -> Notified<'_> {
        self.repositories.changed.notified()
    }

    /// A child works under it from now on: it is kept until nothing of the child is left, whoever drops it before.
    pub(super) fn hold_until_exit(&mut self, tree_exit: TreeExit) {
        self.tree_exit = Some(tree_exit);
    }
}

impl Drop for RepositoryLock {
    fn drop(&mut self) {
        let left = self.tree_exit.take().filter(|tree_exit| !tree_exit.has_exited());
        let (Some(tree_exit), Ok(runtime)) = (left, tokio::runtime::Handle::try_current()) else {
            self.repositories.leave(self.number);
            return;
        };
        let (repositories, number) = (self.repositories.clone(), self.number);
        runtime.spawn(async move {
            tree_exit.wait().await;
            repositories.leave(number);
        });
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

    fn line() -> (Arc<RepositoryLocks>, SimulatedClock) {
        let clock = SimulatedClock::at(Timestamp(START));
        (Arc::new(RepositoryLocks::new(Arc::new(clock.clone()))), clock)
    }

    fn enqueue(line: &Arc<RepositoryLocks>, folder: &str) -> RepositoryLock {
        let who =
            LockOwner { task: TaskId::from(folder), agent: AgentName::from("coder"), owner: CallerId::from("ann") };
        line.enqueue(Path::new(folder), who)
    }

    #[test]
    fn a_folder_and_those_above_and_below_it_are_worked_in_one_after_the_other() {
        let (line, _) = line();
        let first = enqueue(&line, "/repos/a");
        let beside = [enqueue(&line, "/repos/b"), enqueue(&line, "/repos/a-side")];
        let above = enqueue(&line, "/repos");
        let below = enqueue(&line, "/repos/a/vendor/c");
        let count = |place: &RepositoryLock| place.ahead().map(|ahead| ahead.count);
        assert_eq!(count(&first), None);
        assert_eq!(beside.each_ref().map(count), [None, None]);
        assert_eq!(count(&above), Some(3));
        assert_eq!(count(&below), Some(2), "the order is that of arrival");
        drop((first, beside));
        assert_eq!((count(&above), count(&below)), (None, Some(1)));
        drop((above, below));
        assert!(line.line.lock().members.is_empty());
    }

    #[test]
    fn who_waits_learns_which_task_is_in_the_way_and_since_when() {
        let (line, clock) = line();
        let first = enqueue(&line, "/a");
        clock.advance(Duration::from_secs(1));
        let (second, other) = (enqueue(&line, "/a/b"), enqueue(&line, "/c"));
        let last = enqueue(&line, "/");
        let seen = |place: &RepositoryLock| {
            let ahead = place.ahead()?;
            let BlockingTask { task, since, asks_since, .. } = ahead.blocker;
            let seconds = |at: Timestamp| (at.0 - START) / 1_000;
            Some((task.to_string(), seconds(since), asks_since.map(seconds), ahead.holds))
        };
        line.set_waits_for_answer(&TaskId::from("/c"), true);
        assert_eq!(seen(&second), Some(("/a".to_owned(), 0, None, true)));
        assert_eq!(seen(&last), Some(("/c".to_owned(), 1, Some(1), true)), "the one that can be answered");
        clock.advance(Duration::from_secs(1));
        line.set_waits_for_answer(&TaskId::from("/a"), true);
        line.set_waits_for_answer(&TaskId::from("/c"), false);
        assert_eq!(seen(&second), Some(("/a".to_owned(), 0, Some(2), true)));
        line.set_waits_for_answer(&TaskId::from("/a"), false);
        let behind = enqueue(&line, "/a/b/c");
        drop(other);
        clock.advance(Duration::from_secs(1));
        drop(first);
        assert_eq!((seen(&second), seen(&last)), (None, Some(("/a/b".to_owned(), 3, None, true))));
        assert_eq!(seen(&enqueue(&line, "/d")), Some(("/".to_owned(), 1, None, false)), "it waits itself");
        drop((second, last));
        assert_eq!(seen(&behind), None);
    }

    #[tokio::test]
    async fn a_place_is_kept_until_nothing_is_left_of_its_child() {
        let (line, _) = line();
        let mut first = enqueue(&line, "/a");
        let (end, tree_exit) = TreeExit::detached();
        first.hold_until_exit(tree_exit);
        let second = enqueue(&line, "/a");
        drop(first);
        tokio::task::yield_now().await;
        assert!(second.ahead().is_some(), "the child lives");
        let changed = second.changed();
        end();
        changed.await;
        assert_eq!(second.ahead(), None);
    }
}
