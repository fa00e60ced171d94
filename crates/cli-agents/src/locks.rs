//! One at a time per key, in the order of arrival: per conversation, and per copy of a repository.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::process::Remains;

/// What can be waited for.
pub(super) trait Key: Clone + Eq + Hash + Send + 'static {}

impl<K: Clone + Eq + Hash + Send + 'static> Key for K {}

/// Lines that exist while somebody stands in them.
pub(super) struct Locks<K> {
    lines: Mutex<HashMap<K, Line>>,
}

#[derive(Default)]
struct Line {
    /// Who stands in it, by number; the first one has its turn.
    members: VecDeque<u64>,
    last: u64,
    /// Told when the first one has left.
    moved: Arc<Notify>,
}

/// A place in the line for one key; dropping it leaves the line, or lets the next one in.
pub(super) struct Place<K: Key> {
    locks: Arc<Locks<K>>,
    key: K,
    number: u64,
    moved: Arc<Notify>,
    /// A child that works under it. While anything of that is left, nobody else may be let in.
    remains: Option<Remains>,
}

impl<K> Default for Locks<K> {
    fn default() -> Self {
        Self { lines: Mutex::new(HashMap::new()) }
    }
}

impl<K: Key> Locks<K> {
    /// Stands in line.
    pub(super) fn line_up(self: &Arc<Self>, key: K) -> Place<K> {
        let mut lines = self.lines.lock();
        let line = lines.entry(key.clone()).or_default();
        line.last += 1;
        let number = line.last;
        line.members.push_back(number);
        let moved = line.moved.clone();
        drop(lines);
        Place { locks: self.clone(), key, number, moved, remains: None }
    }

    fn leave(&self, key: &K, number: u64) {
        let mut lines = self.lines.lock();
        let Some(line) = lines.get_mut(key) else { return };
        let was_first = line.members.front() == Some(&number);
        line.members.retain(|member| *member != number);
        if line.members.is_empty() {
            lines.remove(key);
        } else if was_first {
            line.moved.notify_waiters();
        }
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.lines.lock().len()
    }
}

impl<K: Key> Place<K> {
    /// Whether it is one's turn already.
    pub(super) fn is_held(&self) -> bool {
        let lines = self.locks.lines.lock();
        lines.get(&self.key).is_some_and(|line| line.members.front() == Some(&self.number))
    }

    /// Waits for one's turn.
    pub(super) async fn wait(&mut self) {
        loop {
            let mut moved = std::pin::pin!(self.moved.notified());
            moved.as_mut().enable();
            if self.is_held() {
                return;
            }
            moved.await;
        }
    }

    /// A child works under it from now on: it is kept until nothing of the child is left, whoever drops it before.
    pub(super) fn keep_for(&mut self, remains: Remains) {
        self.remains = Some(remains);
    }

    /// Waits until nothing is left of the last child that worked under it.
    pub(super) async fn vacated(&self) {
        if let Some(remains) = &self.remains {
            remains.clone().gone().await;
        }
    }
}

impl<K: Key> Drop for Place<K> {
    fn drop(&mut self) {
        let left = self.remains.take().filter(|remains| !remains.are_gone());
        let (Some(remains), Ok(runtime)) = (left, tokio::runtime::Handle::try_current()) else {
            self.locks.leave(&self.key, self.number);
            return;
        };
        let (locks, key, number) = (self.locks.clone(), self.key.clone(), self.number);
        runtime.spawn(async move {
            remains.gone().await;
            locks.leave(&key, number);
        });
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn one_at_a_time_in_order_and_nothing_is_kept() {
        let locks = Arc::new(Locks::default());
        let mut first = locks.line_up("a");
        let mut second = locks.line_up("a");
        let other = locks.line_up("b");
        assert!(first.is_held() && other.is_held() && !second.is_held());
        first.wait().await;
        let waiting = tokio::time::timeout(Duration::from_millis(10), second.wait());
        assert!(waiting.await.is_err(), "the first still has it");
        drop(first);
        second.wait().await;
        assert!(second.is_held());
        drop((second, other));
        assert_eq!(locks.len(), 0);
    }

    #[tokio::test]
    async fn the_order_is_that_of_lining_up_whoever_begins_to_wait_first() {
        let locks = Arc::new(Locks::default());
        let first = locks.line_up("a");
        let mut second = locks.line_up("a");
        let mut third = locks.line_up("a");
        let early = tokio::spawn(async move {
            third.wait().await;
            third
        });
        tokio::task::yield_now().await;
        drop(first);
        assert!(second.is_held(), "it has not begun to wait, and is next all the same");
        assert!(!locks.line_up("a").is_held());
        second.wait().await;
        assert!(!early.is_finished());
        drop(second);
        assert!(early.await.unwrap().is_held());
        assert_eq!(locks.len(), 0);
    }

    #[tokio::test]
    async fn a_place_is_kept_until_nothing_is_left_of_its_child() {
        let locks = Arc::new(Locks::default());
        let mut first = locks.line_up("a");
        let (end, remains) = Remains::of_nobody();
        first.keep_for(remains);
        let mut second = locks.line_up("a");
        drop(first);
        assert!(tokio::time::timeout(Duration::from_millis(10), second.wait()).await.is_err(), "the child lives");
        end();
        second.wait().await;
        let (end, remains) = Remains::of_nobody();
        end();
        second.keep_for(remains);
        drop(second);
        assert_eq!(locks.len(), 0, "at once, if nothing is left already");
    }
}
