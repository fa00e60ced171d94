//! A cache with limits on its entries and on their bytes; the oldest entry goes first.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// Values with their sizes, in the order of their last use.
pub(crate) struct ByteCache<K, V> {
    entries: HashMap<K, Entry<V>>,
    by_use: BTreeMap<u64, K>,
    uses: u64,
    bytes: usize,
}

struct Entry<V> {
    value: V,
    bytes: usize,
    used: u64,
}

impl<K, V> Default for ByteCache<K, V> {
    fn default() -> Self {
        Self { entries: HashMap::new(), by_use: BTreeMap::new(), uses: 0, bytes: 0 }
    }
}

impl<K: Clone + Eq + Hash, V> ByteCache<K, V> {
    /// A value, which is the newest one then.
    pub(crate) fn touch(&mut self, key: &K) -> Option<&V> {
        let entry = self.entries.get_mut(key)?;
        self.uses += 1;
        self.by_use.remove(&entry.used);
        self.by_use.insert(self.uses, key.clone());
        entry.used = self.uses;
        Some(&entry.value)
    }

    /// Adds or replaces a value and removes the oldest ones over the limits.
    pub(crate) fn insert(&mut self, key: K, value: V, bytes: usize, max_entries: usize, max_bytes: usize) {
        self.remove(&key);
        self.uses += 1;
        self.bytes += bytes;
        self.by_use.insert(self.uses, key.clone());
        self.entries.insert(key, Entry { value, bytes, used: self.uses });
        while self.entries.len() > max_entries || self.bytes > max_bytes {
            let Some((_, oldest)) = self.by_use.pop_first() else { break };
            self.remove(&oldest);
        }
    }

    pub(crate) fn remove(&mut self, key: &K) {
        if let Some(entry) = self.entries.remove(key) {
            self.by_use.remove(&entry.used);
            self.bytes -= entry.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_goes_first_and_the_bytes_stay_below_their_limit() {
        let mut cache = ByteCache::default();
        for key in ["a", "b"] {
            cache.insert(key, key, 10, 2, 100);
        }
        assert_eq!(cache.touch(&"a"), Some(&"a"));
        cache.insert("c", "c", 10, 2, 100);
        assert_eq!(cache.touch(&"a"), Some(&"a"));
        assert_eq!(cache.touch(&"b"), None);
        for number in 0..50 {
            cache.insert("large", "x", 30, 100, 100);
            cache.insert(["d", "e", "f"][number % 3], "y", 30, 100, 100);
            assert!(cache.bytes <= 100 && cache.entries.len() == cache.by_use.len());
        }
        assert_eq!((cache.entries.len(), cache.bytes), (3, 90));
    }
}
