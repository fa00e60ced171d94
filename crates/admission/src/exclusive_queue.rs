//! One at a time among items that conflict, in the order of arrival: tasks of one conversation, or of one folder and those
//! above and below it. Items that do not conflict pass each other.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// What holds its turn or waits for it. An item waits while one that arrived earlier and conflicts with it is queued.
pub struct ExclusiveQueue<T> {
    conflict: fn(&T, &T) -> bool,
    /// Called once for each item when its turn begins, under the lock.
    admitted: Box<dyn Fn(&mut T) + Send + Sync>,
    entries: Mutex<Entries<T>>,
    changed: Notify,
}

struct Entries<T> {
    /// By rising number.
    queued: Vec<Entry<T>>,
    last: u64,
}

struct Entry<T> {
    number: u64,
    is_admitted: bool,
    item: T,
}

/// One item in an [`ExclusiveQueue`]; dropping it leaves the queue and lets the next one in.
pub struct QueuePosition<T> {
    queue: Arc<ExclusiveQueue<T>>,
    number: u64,
}

impl<T: PartialEq + 'static> ExclusiveQueue<T> {
    /// One at a time per key.
    pub fn per_key() -> Arc<Self> {
        Self::new(|one, other| one == other, |_| {})
    }
}

impl<T> ExclusiveQueue<T> {
    /// One at a time among items for which `conflict` holds; `admitted` is called for each when its turn begins.
    pub fn new(conflict: fn(&T, &T) -> bool, admitted: impl Fn(&mut T) + Send + Sync + 'static) -> Arc<Self> {
        let entries = Mutex::new(Entries { queued: Vec::new(), last: 0 });
        Arc::new(Self { conflict, admitted: Box::new(admitted), entries, changed: Notify::new() })
    }

    /// Queues an item; it has its turn at once if nothing conflicts. The order is that of these calls.
    pub fn enqueue(self: &Arc<Self>, mut item: T) -> QueuePosition<T> {
        let mut entries = self.entries.lock();
        entries.last += 1;
        let number = entries.last;
        let is_admitted = !entries.queued.iter().any(|entry| (self.conflict)(&entry.item, &item));
        if is_admitted {
            (self.admitted)(&mut item);
        }
        entries.queued.push(Entry { number, is_admitted, item });
        QueuePosition { queue: Arc::clone(self), number }
    }

    /// Changes the first item for which `change` says that it did, and wakes those that watch [`Self::changed`].
    pub fn update(&self, change: impl FnMut(&mut T) -> bool) {
        let changed = self.entries.lock().queued.iter_mut().map(|entry| &mut entry.item).any(change);
        if changed {
            self.changed.notify_waiters();
        }
    }

    /// Resolves at the next change of the queue or of an item, once it was polled or enabled.
    pub fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// Whether no item waits or has its turn.
    pub fn is_empty(&self) -> bool {
        self.entries.lock().queued.is_empty()
    }

    fn leave(&self, number: u64) {
        let mut entries = self.entries.lock();
        let Some(index) = entries.index(number) else { return };
        let left = entries.queued.remove(index).item;
        for index in index..entries.queued.len() {
            let (before, rest) = entries.queued.split_at_mut(index);
            let Some(entry) = rest.first_mut() else { break };
            let may_be_next = !entry.is_admitted && (self.conflict)(&left, &entry.item);
            if may_be_next && !before.iter().any(|other| (self.conflict)(&other.item, &entry.item)) {
                entry.is_admitted = true;
                (self.admitted)(&mut entry.item);
            }
        }
        drop(entries);
        self.changed.notify_waiters();
    }
}

impl<T> Entries<T> {
    fn index(&self, number: u64) -> Option<usize> {
        self.queued.binary_search_by_key(&number, |entry| entry.number).ok()
    }
}

impl<T> QueuePosition<T> {
    /// Whether it has its turn.
    pub fn is_admitted(&self) -> bool {
        let entries = self.queue.entries.lock();
        entries.index(self.number).is_some_and(|index| entries.queued[index].is_admitted)
    }

    /// Waits for its turn. A dropped wait keeps the position.
    pub async fn wait(&self) {
        loop {
            let mut changed = std::pin::pin!(self.queue.changed());
            changed.as_mut().enable();
            if self.is_admitted() {
                return;
            }
            changed.await;
        }
    }

    /// Reads the item itself and those it waits for, in order.
    pub fn read<R>(&self, read: impl FnOnce(&T, &[&T]) -> R) -> Option<R> {
        let entries = self.queue.entries.lock();
        let index = entries.index(self.number)?;
        let own = &entries.queued[index].item;
        let before = entries.queued[..index].iter().map(|entry| &entry.item);
        let ahead: Vec<&T> = before.filter(|item| (self.queue.conflict)(item, own)).collect();
        Some(read(own, &ahead))
    }

    /// The queue it is in.
    pub fn queue(&self) -> &Arc<ExclusiveQueue<T>> {
        &self.queue
    }
}

impl<T> Drop for QueuePosition<T> {
    fn drop(&mut self) {
        self.queue.leave(self.number);
    }
}
