//! A weighted semaphore that is fair between keys: so much in total, so much per key, and while there is not enough, keys
//! are served in turn.
//!
//! The fast path is two atomic operations without a lock, because every response of a server may come by here. Only a key
//! that has to wait, and what is given back while one does, goes through the queue.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::{FairQueue, Key};

/// Hands out permits of a weight.
pub struct FairSemaphore<K: Key> {
    limits: Limits,
    taken: AtomicUsize,
    /// How many wait. Raised before a waiter looks for the last time and read after permits are given back, both in one
    /// order for all threads (`SeqCst`), so that one of the two sees the other and no wake-up is lost.
    waiting: AtomicUsize,
    queue: Mutex<FairQueue<K, Waiter<K>>>,
    last_ticket: AtomicUsize,
    shares: Mutex<HashMap<K, Share>>,
}

/// How much there is.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// In total. A permit beyond it is given when nothing else is taken.
    pub total: usize,
    /// For one key. A permit beyond it is given when the key has no other.
    pub per_key: usize,
    /// Up to here a key does not have to wait for what others have.
    pub always: usize,
}

/// What one key has taken. Kept beside what the key names, it saves [`FairSemaphore::share`]'s look-up.
pub type Share = Arc<AtomicUsize>;

struct Waiter<K: Key> {
    ticket: usize,
    share: Share,
    weight: usize,
    granted: oneshot::Sender<Permit<K>>,
}

/// What was taken; given back when dropped.
pub struct Permit<K: Key> {
    semaphore: Arc<FairSemaphore<K>>,
    share: Share,
    weight: usize,
}

/// The limit that stands in the way of a permit.
enum Refused {
    Key,
    Total,
}

impl<K: Key> FairSemaphore<K> {
    /// A semaphore with nothing taken.
    pub fn new(limits: Limits) -> Arc<Self> {
        let (taken, waiting, last_ticket) = Default::default();
        Arc::new(Self { limits, taken, waiting, queue: Mutex::default(), last_ticket, shares: Mutex::default() })
    }

    /// What all keys have taken together.
    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// The share of a key, for users that keep none themselves. It is forgotten some time after its last permit.
    pub fn share(&self, key: &K) -> Share {
        let mut shares = self.shares.lock();
        if let Some(share) = shares.get(key) {
            return Arc::clone(share);
        }
        if shares.len() == shares.capacity() {
            // Every permit and waiter holds its share, so one that only this table holds is zero.
            shares.retain(|_, share| Arc::strong_count(share) > 1);
        }
        Arc::clone(shares.entry(key.clone()).or_default())
    }

    /// A permit, if it is there at once and no other key waits for one.
    pub fn try_acquire(self: &Arc<Self>, share: &Share, weight: usize) -> Option<Permit<K>> {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            return None;
        }
        self.take(share, weight).ok()
    }

    /// A permit, as soon as it is this key's turn. A future that is dropped leaves the queue, and a permit that was on
    /// its way to it goes to the next; so it can be polled once (`now_or_never`) to try without passing earlier waiters.
    pub async fn acquire(self: &Arc<Self>, key: &K, share: &Share, weight: usize) -> Permit<K> {
        if let Some(permit) = self.try_acquire(share, weight) {
            return permit;
        }
        let (granted, permit) = oneshot::channel();
        let ticket = self.last_ticket.fetch_add(1, Ordering::Relaxed);
        self.waiting.fetch_add(1, Ordering::SeqCst);
        self.queue.lock().push(key, Waiter { ticket, share: Arc::clone(share), weight, granted });
        let _queued = Queued { semaphore: self, key, ticket };
        self.serve();
        // The queue lets go of a waiter only with a permit.
        permit.await.unwrap_or_else(|_| self.force(share, weight))
    }

    /// A permit whatever the limits say, for what cannot wait.
    pub fn force(self: &Arc<Self>, share: &Share, weight: usize) -> Permit<K> {
        share.fetch_add(weight, Ordering::SeqCst);
        self.taken.fetch_add(weight, Ordering::SeqCst);
        self.permit(share, weight)
    }

    fn permit(self: &Arc<Self>, share: &Share, weight: usize) -> Permit<K> {
        Permit { semaphore: Arc::clone(self), share: Arc::clone(share), weight }
    }

    fn take(self: &Arc<Self>, share: &Share, weight: usize) -> Result<Permit<K>, Refused> {
        let limits = self.limits;
        let fits = |taken: usize, limit: usize| {
            let with_it = taken.saturating_add(weight);
            (taken == 0 || with_it <= limit).then_some(with_it)
        };
        let own = share.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |own| fits(own, limits.per_key));
        let Ok(own) = own else { return Err(Refused::Key) };
        let total = if own.saturating_add(weight) <= limits.always { usize::MAX } else { limits.total };
        if self.taken.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |taken| fits(taken, total)).is_err() {
            share.fetch_sub(weight, Ordering::SeqCst);
            return Err(Refused::Total);
        }
        Ok(self.permit(share, weight))
    }

    fn is_always(&self, share: &Share, weight: usize) -> bool {
        share.load(Ordering::SeqCst).saturating_add(weight) <= self.limits.always
    }

    fn give_back(self: &Arc<Self>, share: &Share, weight: usize) {
        share.fetch_sub(weight, Ordering::SeqCst);
        self.taken.fetch_sub(weight, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.serve();
        }
    }

    /// Gives out what is free, to keys in turn.
    fn serve(self: &Arc<Self>) {
        loop {
            let (mut permit, mut is_full) = (None, false);
            let served = self.queue.lock().pop(|_, waiter| {
                // Behind a waiter for the total only what every key always gets goes on, so that the total becomes free.
                if is_full && !self.is_always(&waiter.share, waiter.weight) {
                    return false;
                }
                match self.take(&waiter.share, waiter.weight) {
                    Ok(taken) => permit = Some(taken),
                    Err(Refused::Key) => {}
                    Err(Refused::Total) => is_full = true,
                }
                permit.is_some()
            });
            let (Some((_, waiter)), Some(permit)) = (served, permit) else { return };
            self.waiting.fetch_sub(1, Ordering::SeqCst);
            // A waiter that has just gone away lets the permit go, and with it the next one in.
            drop(waiter.granted.send(permit));
        }
    }
}

impl<K: Key> Permit<K> {
    /// Changes the weight to what it turned out to be, without waiting.
    pub fn resize(&mut self, weight: usize) {
        if weight > self.weight {
            let more = weight - self.weight;
            self.share.fetch_add(more, Ordering::SeqCst);
            self.semaphore.taken.fetch_add(more, Ordering::SeqCst);
        } else if weight < self.weight {
            self.semaphore.give_back(&self.share, self.weight - weight);
        }
        self.weight = weight;
    }

    /// Takes a part of the weight off into a permit of its own.
    pub fn split(&mut self, weight: usize) -> Self {
        let weight = weight.min(self.weight);
        self.weight -= weight;
        self.semaphore.permit(&self.share, weight)
    }
}

impl<K: Key> Drop for Permit<K> {
    fn drop(&mut self) {
        if self.weight > 0 {
            self.semaphore.give_back(&self.share, self.weight);
        }
    }
}

/// A waiter in the queue; taken out when its future is dropped.
struct Queued<'a, K: Key> {
    semaphore: &'a Arc<FairSemaphore<K>>,
    key: &'a K,
    ticket: usize,
}

impl<K: Key> Drop for Queued<'_, K> {
    fn drop(&mut self) {
        let removed = self.semaphore.queue.lock().remove(self.key, |waiter| waiter.ticket == self.ticket);
        if removed.is_some() {
            self.semaphore.waiting.fetch_sub(1, Ordering::SeqCst);
            // Others may have waited behind it.
            self.semaphore.serve();
        }
    }
}
