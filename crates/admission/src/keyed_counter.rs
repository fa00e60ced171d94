//! A limit per key and one in total, without waiting: connections by address, streams and turns by caller.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::Key;

/// Counts permits by key. Clones share the counts; a key without permits takes no memory.
#[derive(Clone, Debug)]
pub struct KeyedCounter<K>(Arc<Mutex<Counts<K>>>);

#[derive(Debug)]
struct Counts<K> {
    max_total: usize,
    max_per_key: usize,
    total: usize,
    by_key: HashMap<K, usize>,
}

/// One unit of a [`KeyedCounter`].
#[derive(Debug)]
pub struct KeyedPermit<K: Key> {
    key: K,
    counter: KeyedCounter<K>,
}

/// Which limit refused a permit, with how many are held under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitReached {
    /// The limit for all keys together.
    Total(usize),
    /// The limit for this key.
    Key(usize),
}

impl<K: Key> KeyedCounter<K> {
    /// At most `max_total` permits, and `max_per_key` of them for one key.
    pub fn new(max_total: usize, max_per_key: usize) -> Self {
        Self(Arc::new(Mutex::new(Counts { max_total, max_per_key, total: 0, by_key: HashMap::new() })))
    }

    /// How many are held in total.
    pub fn held(&self) -> usize {
        self.0.lock().total
    }

    /// Whether a key could have a permit now.
    pub fn check(&self, key: &K) -> Result<(), LimitReached> {
        self.0.lock().check(key)
    }

    /// A permit for one key, if neither limit is reached.
    pub fn try_acquire(&self, key: &K) -> Result<KeyedPermit<K>, LimitReached> {
        let mut counts = self.0.lock();
        counts.check(key)?;
        counts.change(key, 1);
        Ok(KeyedPermit { key: key.clone(), counter: self.clone() })
    }

    /// Counts a change whatever the limits say, for what needs no permit because it outlives the process.
    pub fn change(&self, key: &K, change: isize) {
        self.0.lock().change(key, change);
    }

    /// Forgets all counts that [`Self::change`] has made, for these. Not for counters that give permits.
    pub fn replace(&self, counts: impl IntoIterator<Item = (K, usize)>) {
        let by_key: HashMap<K, usize> = counts.into_iter().filter(|(_, count)| *count > 0).collect();
        let mut held = self.0.lock();
        held.total = by_key.values().sum();
        held.by_key = by_key;
    }
}

impl<K: Key> Counts<K> {
    fn check(&self, key: &K) -> Result<(), LimitReached> {
        if self.total >= self.max_total {
            return Err(LimitReached::Total(self.total));
        }
        match self.by_key.get(key).copied().unwrap_or(0) {
            own if own >= self.max_per_key => Err(LimitReached::Key(own)),
            _ => Ok(()),
        }
    }

    fn change(&mut self, key: &K, change: isize) {
        let own = self.by_key.entry(key.clone()).or_default();
        let before = *own;
        *own = before.saturating_add_signed(change);
        // What the key does not have is not taken from the others.
        self.total = self.total - before + *own;
        if *own == 0 {
            self.by_key.remove(key);
        }
    }
}

impl<K: Key> Drop for KeyedPermit<K> {
    fn drop(&mut self) {
        self.counter.change(&self.key, -1);
    }
}
