//! Round robin between keys, FIFO within one: however many items one key has queued, the next turn of another key is at
//! most one round away.

use std::collections::{HashMap, VecDeque};

use crate::Key;

/// Queued items by key. Only keys with items are stored.
pub struct FairQueue<K, T> {
    items: HashMap<K, VecDeque<T>>,
    /// The keys of `items`; the first has its turn.
    round: VecDeque<K>,
}

impl<K, T> Default for FairQueue<K, T> {
    fn default() -> Self {
        Self { items: HashMap::new(), round: VecDeque::new() }
    }
}

impl<K: Key, T> FairQueue<K, T> {
    /// Whether no item is queued.
    pub fn is_empty(&self) -> bool {
        self.round.is_empty()
    }

    /// Queues an item behind those of its key.
    pub fn push(&mut self, key: &K, item: T) {
        if let Some(items) = self.items.get_mut(key) {
            items.push_back(item);
            return;
        }
        self.items.insert(key.clone(), VecDeque::from([item]));
        self.round.push_back(key.clone());
    }

    /// Queues an item before all others of every key.
    pub fn push_front(&mut self, key: &K, item: T) {
        self.items.entry(key.clone()).or_default().push_front(item);
        self.round.retain(|other| other != key);
        self.round.push_front(key.clone());
    }

    /// Takes the first matching item of a key out.
    pub fn remove(&mut self, key: &K, matches: impl FnMut(&T) -> bool) -> Option<T> {
        let items = self.items.get_mut(key)?;
        let index = items.iter().position(matches)?;
        let removed = items.remove(index);
        if items.is_empty() {
            self.items.remove(key);
            self.round.retain(|other| other != key);
        }
        removed
    }

    /// Takes the next item that may start: the first of each key is offered in turn until one is admitted, and its key
    /// goes to the end of the round. A key whose first item is not admitted keeps its turn.
    pub fn pop(&mut self, mut admit: impl FnMut(&K, &T) -> bool) -> Option<(K, T)> {
        let first_of = |key| self.items.get(key).and_then(VecDeque::front);
        let index = self.round.iter().position(|key| first_of(key).is_some_and(|first| admit(key, first)))?;
        let key = self.round.remove(index)?;
        let items = self.items.get_mut(&key)?;
        let item = items.pop_front()?;
        if items.is_empty() {
            self.items.remove(&key);
        } else {
            self.round.push_back(key.clone());
        }
        Some((key, item))
    }
}
