//! A limit per key and one in total, without waiting: connections by address, streams by caller.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::Key;

/// Counts permits by key. A key without permits takes no memory.
#[derive(Debug)]
pub struct KeyedCounter<K> {
    total: usize,
    per_key: usize,
    held: Arc<Mutex<Held<K>>>,
}

#[derive(Debug)]
struct Held<K> {
    total: usize,
    by_key: HashMap<K, usize>,
}

/// One unit of a [`KeyedCounter`].
#[derive(Debug)]
pub struct KeyedPermit<K: Key> {
    key: K,
    held: Arc<Mutex<Held<K>>>,
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
    /// At most `total` permits, and `per_key` of them for one key.
    pub fn new(total: usize, per_key: usize) -> Self {
        let held = Held { total: 0, by_key: HashMap::new() };
        Self { total, per_key, held: Arc::new(Mutex::new(held)) }
    }

    /// A permit for one key, if neither limit is reached.
    pub fn try_acquire(&self, key: &K) -> Result<KeyedPermit<K>, LimitReached> {
        let mut held = self.held.lock();
        if held.total >= self.total {
            return Err(LimitReached::Total(held.total));
        }
        let own = held.by_key.get(key).copied().unwrap_or(0);
        if own >= self.per_key {
            return Err(LimitReached::Key(own));
        }
        held.by_key.insert(key.clone(), own + 1);
        held.total += 1;
        Ok(KeyedPermit { key: key.clone(), held: Arc::clone(&self.held) })
    }
}

impl<K: Key> Drop for KeyedPermit<K> {
    fn drop(&mut self) {
        let mut held = self.held.lock();
        held.total -= 1;
        if let Some(own) = held.by_key.get_mut(&self.key) {
            *own -= 1;
            if *own == 0 {
                held.by_key.remove(&self.key);
            }
        }
    }
}
