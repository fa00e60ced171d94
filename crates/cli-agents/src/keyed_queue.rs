//! One at a time per key, in the order of arrival: per conversation, and per copy of a repository.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::process::TreeExit;

/// What can be waited for.
pub(super) trait Key: Clone + Eq + Hash + Send + 'static {}

impl<K: Clone + Eq + Hash + Send + 'static> Key for K {}

/// Lines that exist while somebody stands in them.
pub(super) struct KeyedQueue<K> {
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
pub(super) struct QueuePosition<K: Key> {
    locks: Arc<KeyedQueue<K>>,
    key: K,
    number: u64,
    moved: Arc<Notify>,
    /// A child that works under it. While anything of that is left, nobody else may be let in.
    tree_exit: Option<TreeExit>,
}

impl<K> Default for KeyedQueue<K> {
    fn default() -> Self {
        Self { lines: Mutex::new(HashMap::new()) }
    }
}

impl<K: Key> KeyedQueue<K> {
    /// Stands in line.
    pub(super) fn enqueue(self: &Arc<Self>, key: K) -> QueuePosition<K> {
        let mut lines = self.lines.lock();
        let line = lines.entry(key.clone()).or_default();
        line.last += 1;
        let number = line.last;
        line.members.push_back(number);
        let moved = line.moved.clone();
        drop(lines);
        QueuePosition { locks: self.clone(), key, number, moved, tree_exit: None }
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

impl<K: Key> QueuePosition<K> {
    /// Whether it is one's turn already.
    pub(super) fn is_admitted(&self) -> bool {
        let lines = self.locks.lines.lock();
        lines.get(&self.key).is_some_and(|line| line.members.front() == Some(&self.number))
    }

    /// Waits for one's turn.
    pub(super) async fn wait(&mut self) {
        loop {
            let mut moved = std::pin::pin!(self.moved.notified());
            moved.as_mut().enable();
            if self.is_admitted() {
                return;
            }
            moved.await;
        }
    }

    /// A child works under it from now on: it is kept until nothing of the child is left, whoever drops it before.
    pub(super) fn hold_until_exit(&mut self, tree_exit: TreeExit) {
        self.tree_exit = Some(tree_exit);
    }

    /// Waits until nothing is left of the last child that worked under it.
    pub(super) async fn child_exited(&self) {
        if let Some(tree_exit) = &self.tree_exit {
            tree_exit.clone().wait().await;
        }
    }
}

impl<K: Key> Drop for QueuePosition<K> {
    fn drop(&mut self) {
        let left = self.tree_exit.take().filter(|tree_exit| !tree_exit.has_exited());
        let (Some(tree_exit), Ok(runtime)) = (left, tokio::runtime::Handle::try_current()) else {
            self.locks.leave(&self.key, self.number);
            return;
        };
        let (locks, key, number) = (self.locks.clone(), self.key.clone(), self.number);
        runtime.spawn(async move {
            tree_exit.wait().await;
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
        let locks = Arc::new(KeyedQueue::default());
        let mut first = locks.enqueue("a");
        let mut second = locks.enqueue("a");
        let other = locks.enqueue("b");
        assert!(first.is_admitted() && other.is_admitted() && !second.is_admitted());
        first.wait().await;
        let waiting = tokio::time::timeout(Duration::from_millis(10), second.wait());
        assert!(waiting.await.is_err(), "the first still has it");
        drop(first);
        second.wait().await;
        assert!(second.is_admitted());
        drop((second, other));
        assert_eq!(locks.len(), 0);
    }

    #[tokio::test]
    async fn the_order_is_that_of_lining_up_whoever_begins_to_wait_first() {
        let locks = Arc::new(KeyedQueue::default());
        let first = locks.enqueue("a");
        let mut second = locks.enqueue("a");
        let mut third = locks.enqueue("a");
        let early = tokio::spawn(async move {
            third.wait().await;
            third
        });
        tokio::task::yield_now().await;
        drop(first);
        assert!(second.is_admitted(), "it has not begun to wait, and is next all the same");
        assert!(!locks.enqueue("a").is_admitted());
        second.wait().await;
        assert!(!early.is_finished());
        drop(second);
        assert!(early.await.unwrap().is_admitted());
        assert_eq!(locks.len(), 0);
    }

    #[tokio::test]
    async fn a_place_is_kept_until_nothing_is_left_of_its_child() {
        let locks = Arc::new(KeyedQueue::default());
        let mut first = locks.enqueue("a");
        let (end, tree_exit) = TreeExit::detached();
        first.hold_until_exit(tree_exit);
        let mut second = locks.enqueue("a");
        drop(first);
        assert!(tokio::time::timeout(Duration::from_millis(10), second.wait()).await.is_err(), "the child lives");
        end();
        second.wait().await;
        let (end, tree_exit) = TreeExit::detached();
        end();
        second.hold_until_exit(tree_exit);
        drop(second);
        assert_eq!(locks.len(), 0, "at once, if nothing is left already");
    }
}
