//! One at a time per key, in the order of arrival: per conversation, and per repository.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

/// Locks that exist while somebody holds them or waits.
pub(super) struct Locks<K> {
    held: Mutex<HashMap<K, Held>>,
}

struct Held {
    lock: Arc<tokio::sync::Mutex<()>>,
    /// Who holds it and who waits, together.
    users: usize,
}

/// A place in the line for one key; dropping it leaves the line, or lets the next one in.
pub(super) struct Place<K: Eq + Hash> {
    locks: Arc<Locks<K>>,
    key: K,
    lock: Arc<tokio::sync::Mutex<()>>,
    guard: Option<OwnedMutexGuard<()>>,
    /// How many were there before.
    pub(super) ahead: usize,
}

impl<K> Default for Locks<K> {
    fn default() -> Self {
        Self { held: Mutex::new(HashMap::new()) }
    }
}

impl<K: Clone + Eq + Hash> Locks<K> {
    /// Stands in line.
    pub(super) fn line_up(self: &Arc<Self>, key: K) -> Place<K> {
        let mut all = self.held.lock();
        let held = all.entry(key.clone()).or_insert_with(|| Held { lock: Arc::default(), users: 0 });
        let (ahead, lock) = (held.users, held.lock.clone());
        held.users += 1;
        // Taken while nobody else can: whoever finds nobody ahead has it.
        let guard = lock.clone().try_lock_owned().ok();
        drop(all);
        Place { locks: self.clone(), key, lock, guard, ahead }
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.held.lock().len()
    }
}

impl<K: Eq + Hash> Place<K> {
    /// Whether it is one's turn already.
    pub(super) fn is_held(&self) -> bool {
        self.guard.is_some()
    }

    /// Waits for one's turn.
    pub(super) async fn wait(&mut self) {
        if self.guard.is_none() {
            self.guard = Some(self.lock.clone().lock_owned().await);
        }
    }
}

impl<K: Eq + Hash> Drop for Place<K> {
    fn drop(&mut self) {
        self.guard = None;
        let mut all = self.locks.held.lock();
        if let Some(held) = all.get_mut(&self.key) {
            held.users -= 1;
            if held.users == 0 {
                all.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_at_a_time_in_order_and_nothing_is_kept() {
        let locks = Arc::new(Locks::default());
        let mut first = locks.line_up("a");
        let mut second = locks.line_up("a");
        let other = locks.line_up("b");
        assert!(first.is_held() && other.is_held() && !second.is_held());
        assert_eq!((first.ahead, second.ahead), (0, 1));
        first.wait().await;
        let waiting = tokio::time::timeout(std::time::Duration::from_millis(10), second.wait());
        assert!(waiting.await.is_err(), "the first still has it");
        drop(first);
        second.wait().await;
        assert!(second.is_held());
        drop((second, other));
        assert_eq!(locks.len(), 0);
    }
}
