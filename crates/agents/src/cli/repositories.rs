//! One task at a time in a repository, whichever agent's, in the order of arrival.
//!
//! A folder and one below it cannot be worked in at once either: who works in the upper one can change the lower one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use switchboard_a2a::TaskId;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::process::Remains;

/// Everybody who works in a repository, or waits to.
#[derive(Default)]
pub(super) struct Repositories {
    line: Mutex<Line>,
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
    task: TaskId,
    /// It waits for somebody's answer.
    asks: bool,
}

/// A place in the line; dropping it leaves the line.
pub(super) struct Place {
    repositories: Arc<Repositories>,
    number: u64,
    /// A child that works under it. While anything of that is left, nobody else may be let in.
    remains: Option<Remains>,
}

/// Who has to leave before it is one's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ahead {
    pub(super) count: usize,
    /// One of them waits for an answer.
    pub(super) asks: bool,
}

impl std::fmt::Display for Ahead {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let asks = if self.asks { " and waits for an answer" } else { "" };
        write!(formatter, "Waiting: another task works in this repository{asks} ({} ahead).", self.count)
    }
}

impl Repositories {
    /// Stands in line for a repository, by its top folder.
    pub(super) fn line_up(self: &Arc<Self>, folder: &Path, task: &TaskId) -> Place {
        let mut line = self.line.lock();
        line.last += 1;
        let number = line.last;
        line.members.push(Member { number, folder: folder.to_owned(), task: task.clone(), asks: false });
        Place { repositories: self.clone(), number, remains: None }
    }

    /// Whether a task waits for somebody's answer now.
    pub(super) fn set_asks(&self, task: &TaskId, asks: bool) {
        let mut line = self.line.lock();
        let mut members = line.members.iter_mut();
        if let Some(member) = members.find(|member| member.task == *task && member.asks != asks) {
            member.asks = asks;
            self.changed.notify_waiters();
        }
    }

    fn leave(&self, number: u64) {
        self.line.lock().members.retain(|member| member.number != number);
        self.changed.notify_waiters();
    }
}

impl Place {
    /// Who is ahead; nobody if it is one's turn.
    pub(super) fn ahead(&self) -> Option<Ahead> {
        let line = self.repositories.line.lock();
        let own = line.members.iter().find(|member| member.number == self.number)?;
        let before = line.members.iter().take_while(|member| member.number < self.number);
        let (mut count, mut asks) = (0, false);
        for member in before.filter(|member| overlap(&member.folder, &own.folder)) {
            count += 1;
            asks |= member.asks;
        }
        (count > 0).then_some(Ahead { count, asks })
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
    pub(super) fn keep_for(&mut self, remains: Remains) {
        self.remains = Some(remains);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let left = self.remains.take().filter(|remains| !remains.are_gone());
        let (Some(remains), Ok(runtime)) = (left, tokio::runtime::Handle::try_current()) else {
            self.repositories.leave(self.number);
            return;
        };
        let (repositories, number) = (self.repositories.clone(), self.number);
        runtime.spawn(async move {
            remains.gone().await;
            repositories.leave(number);
        });
    }
}

fn overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line_up(line: &Arc<Repositories>, folder: &str) -> Place {
        line.line_up(Path::new(folder), &TaskId::from(folder))
    }

    #[test]
    fn a_folder_and_those_above_and_below_it_are_worked_in_one_after_the_other() {
        let line = Arc::new(Repositories::default());
        let first = line_up(&line, "/repos/a");
        let beside = [line_up(&line, "/repos/b"), line_up(&line, "/repos/a-side")];
        let above = line_up(&line, "/repos");
        let below = line_up(&line, "/repos/a/vendor/c");
        let count = |place: &Place| place.ahead().map(|ahead| ahead.count);
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
    fn who_waits_learns_whether_those_ahead_wait_for_an_answer() {
        let line = Arc::new(Repositories::default());
        let first = line_up(&line, "/a");
        let (second, other) = (line_up(&line, "/a/b"), line_up(&line, "/c"));
        line.set_asks(&TaskId::from("/c"), true);
        assert_eq!(second.ahead(), Some(Ahead { count: 1, asks: false }));
        line.set_asks(&TaskId::from("/a"), true);
        assert_eq!(second.ahead(), Some(Ahead { count: 1, asks: true }));
        line.set_asks(&TaskId::from("/a"), false);
        assert_eq!(second.ahead(), Some(Ahead { count: 1, asks: false }));
        drop((first, other));
        assert_eq!(second.ahead(), None);
    }

    #[tokio::test]
    async fn a_place_is_kept_until_nothing_is_left_of_its_child() {
        let line = Arc::new(Repositories::default());
        let mut first = line_up(&line, "/a");
        let (end, remains) = Remains::of_nobody();
        first.keep_for(remains);
        let second = line_up(&line, "/a");
        drop(first);
        tokio::task::yield_now().await;
        assert!(second.ahead().is_some(), "the child lives");
        let changed = second.changed();
        end();
        changed.await;
        assert_eq!(second.ahead(), None);
    }
}
