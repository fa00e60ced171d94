//! A weighted semaphore that is fair between callers: so much in all, so much for one caller, and while there is not
//! enough, callers are served in turn.
//!
//! What is free is taken with two atomic operations and without a lock, because every small response comes by here. Only
//! a caller that has to wait, and what is given back while one does, goes through the queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use switchboard_engine::CallerId;
use tokio::sync::oneshot;

use super::fair_queue::{FairQueue, Turn};

/// Hands out permits of a weight.
pub(super) struct FairSemaphore {
    limits: Limits,
    taken: AtomicUsize,
    /// How many wait. Raised before a waiter looks for the last time and read after permits are given back, both in one
    /// order for all, so that one of the two sees the other.
    waiting: AtomicUsize,
    queue: Mutex<FairQueue<Waiter>>,
}

/// How much there is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// In all. A permit beyond it is given when nothing else is taken.
    pub(super) total: usize,
    /// For one caller. A permit beyond it is given when the caller has no other.
    pub(super) per_caller: usize,
    /// Up to here a caller does not have to wait for what others have.
    pub(super) always: usize,
}

/// What a caller has taken.
pub(super) type Share = Arc<AtomicUsize>;

struct Waiter {
    share: Share,
    weight: usize,
    granted: oneshot::Sender<Permit>,
}

/// What was taken; given back when dropped.
pub(super) struct Permit {
    semaphore: Arc<FairSemaphore>,
    share: Share,
    weight: usize,
}

/// What stands in the way of a permit.
enum Refused {
    /// What its caller has.
    Caller,
    /// What all have together.
    Total,
}

impl FairSemaphore {
    pub(super) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self { limits, taken: AtomicUsize::new(0), waiting: AtomicUsize::new(0), queue: Mutex::default() })
    }

    /// What all have together.
    pub(super) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// How many wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// A permit, if it is there at once and none waits for one.
    pub(super) fn try_acquire(self: &Arc<Self>, share: &Share, weight: usize) -> Option<Permit> {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            return None;
        }
        self.take(share, weight).ok()
    }

    /// A permit, as soon as it is this caller's turn. A future that is dropped leaves the queue.
    pub(super) async fn acquire(self: &Arc<Self>, caller: &CallerId, share: &Share, weight: usize) -> Permit {
        if let Some(permit) = self.try_acquire(share, weight) {
            return permit;
        }
        let (granted, permit) = oneshot::channel();
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let ticket = self.queue.lock().push(caller, Waiter { share: Arc::clone(share), weight, granted });
        let _queued = Queued { semaphore: self, caller, ticket };
        self.serve();
        // The queue lets go of a waiter only with a permit.
        permit.await.unwrap_or_else(|_| self.force(share, weight))
    }

    /// A permit whatever the limits say, for what cannot wait.
    pub(super) fn force(self: &Arc<Self>, share: &Share, weight: usize) -> Permit {
        share.fetch_add(weight, Ordering::SeqCst);
        self.taken.fetch_add(weight, Ordering::SeqCst);
        self.permit(share, weight)
    }

    fn permit(self: &Arc<Self>, share: &Share, weight: usize) -> Permit {
        Permit { semaphore: Arc::clone(self), share: Arc::clone(share), weight }
    }

    fn take(self: &Arc<Self>, share: &Share, weight: usize) -> Result<Permit, Refused> {
        let limits = self.limits;
        let fits = |taken: usize, limit: usize| {
            let with_it = taken.saturating_add(weight);
            (taken == 0 || with_it <= limit).then_some(with_it)
        };
        let own = share.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |own| fits(own, limits.per_caller));
        let Ok(own) = own else { return Err(Refused::Caller) };
        let total = if own.saturating_add(weight) <= limits.always { usize::MAX } else { limits.total };
        if self.taken.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |taken| fits(taken, total)).is_err() {
            share.fetch_sub(weight, Ordering::SeqCst);
            return Err(Refused::Total);
        }
        Ok(self.permit(share, weight))
    }

    /// Whether a caller gets this whatever the others have.
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

    /// Gives out what is free, to callers in turn.
    fn serve(self: &Arc<Self>) {
        loop {
            let (mut permit, mut is_full) = (None, false);
            let served = self.queue.lock().serve(|waiter| {
                // Behind a waiter for the total only what every caller always gets goes on, so that the total becomes free.
                if is_full && !self.is_always(&waiter.share, waiter.weight) {
                    return Turn::Skip;
                }
                match self.take(&waiter.share, waiter.weight) {
                    Ok(taken) => {
                        permit = Some(taken);
                        return Turn::Serve;
                    }
                    Err(Refused::Caller) => {}
                    Err(Refused::Total) => is_full = true,
                }
                Turn::Skip
            });
            let (Some(waiter), Some(permit)) = (served, permit) else { return };
            self.waiting.fetch_sub(1, Ordering::SeqCst);
            // A waiter that has just gone away lets the permit go, and with it the next one in.
            drop(waiter.granted.send(permit));
        }
    }
}

impl Permit {
    /// Changes the weight to what it turned out to be, without waiting.
    pub(super) fn resize(&mut self, weight: usize) {
        if weight > self.weight {
            let more = weight - self.weight;
            self.share.fetch_add(more, Ordering::SeqCst);
            self.semaphore.taken.fetch_add(more, Ordering::SeqCst);
        } else if weight < self.weight {
            self.semaphore.give_back(&self.share, self.weight - weight);
        }
        self.weight = weight;
    }

    /// Takes a part of it off.
    pub(super) fn split(&mut self, weight: usize) -> Self {
        let weight = weight.min(self.weight);
        self.weight -= weight;
        self.semaphore.permit(&self.share, weight)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.weight > 0 {
            self.semaphore.give_back(&self.share, self.weight);
        }
    }
}

/// A waiter in the queue; taken out when its future is dropped.
struct Queued<'a> {
    semaphore: &'a Arc<FairSemaphore>,
    caller: &'a CallerId,
    ticket: u64,
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        let removed = self.semaphore.queue.lock().remove(self.caller, self.ticket);
        if removed.is_some() {
            self.semaphore.waiting.fetch_sub(1, Ordering::SeqCst);
            // Others may have waited behind it.
            self.semaphore.serve();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use futures_util::future::BoxFuture;

    use super::*;

    struct World {
        semaphore: Arc<FairSemaphore>,
        shares: [Share; 3],
    }

    const NAMES: [&str; 3] = ["ann", "bob", "eve"];
    const ANN: usize = 0;
    const BOB: usize = 1;
    const EVE: usize = 2;

    impl World {
        fn new(total: usize, per_caller: usize, always: usize) -> Self {
            let semaphore = FairSemaphore::new(Limits { total, per_caller, always });
            Self { semaphore, shares: Default::default() }
        }

        fn acquire(&self, who: usize, weight: usize) -> BoxFuture<'static, Permit> {
            let (semaphore, share) = (Arc::clone(&self.semaphore), Arc::clone(&self.shares[who]));
            async move { semaphore.acquire(&CallerId::from(NAMES[who]), &share, weight).await }.boxed()
        }

        fn now(&self, who: usize, weight: usize) -> Permit {
            self.acquire(who, weight).now_or_never().expect("there is enough")
        }
    }

    fn waits(permit: &mut BoxFuture<'static, Permit>) -> bool {
        permit.now_or_never().is_none()
    }

    #[tokio::test]
    async fn a_caller_at_its_limit_waits_and_the_others_do_not() {
        let world = World::new(100, 30, 0);
        let first = world.now(ANN, 20);
        let mut second = world.acquire(ANN, 20);
        assert!(waits(&mut second));
        let _bob = world.now(BOB, 20);
        drop(first);
        let second = second.await;
        // One that is larger than the limit comes when nothing else of its caller is there, and nothing passes it.
        let mut huge = world.acquire(ANN, 60);
        let mut small = world.acquire(ANN, 1);
        assert!(waits(&mut huge) && waits(&mut small));
        drop(second);
        let huge = huge.await;
        assert!(waits(&mut small));
        drop(huge);
        drop(small.await);
        assert_eq!((world.semaphore.taken(), world.semaphore.waiting()), (20, 0));
    }

    #[tokio::test]
    async fn what_does_not_fit_into_the_total_has_its_turn_and_little_is_always_there() {
        let world = World::new(40, 30, 2);
        let (ann, bob) = (world.now(ANN, 30), world.now(BOB, 10));
        let mut large = world.acquire(EVE, 30);
        assert!(waits(&mut large));
        let mut another = world.acquire(BOB, 5);
        assert!(waits(&mut another));
        drop(bob);
        assert!(waits(&mut large) && waits(&mut another), "the large one comes first, and 30 of 40 are taken");
        drop(ann);
        let (large, another) = (large.await, another.await);
        assert_eq!(world.semaphore.taken(), 35);
        let full = world.now(BOB, 5);
        let little = world.now(ANN, 2);
        let mut more = world.acquire(ANN, 1);
        assert!(waits(&mut more));
        drop((large, another, full, little, more));
        drop(world.now(EVE, 90));
        assert_eq!((world.semaphore.taken(), world.semaphore.waiting()), (0, 0));
    }

    #[tokio::test]
    async fn little_is_there_while_another_caller_waits_for_the_total() {
        let world = World::new(40, 30, 2);
        let _all = (world.now(ANN, 30), world.now(BOB, 10));
        let mut large = world.acquire(EVE, 30);
        assert!(waits(&mut large));
        let another = World { semaphore: Arc::clone(&world.semaphore), shares: Default::default() };
        drop(another.now(BOB, 2));
        assert!(waits(&mut large));
    }

    #[tokio::test]
    async fn a_waiter_that_goes_away_leaves_the_queue_and_its_permit() {
        let world = World::new(10, 10, 0);
        let all = world.now(ANN, 10);
        let mut first = world.acquire(BOB, 10);
        let mut second = world.acquire(EVE, 1);
        assert!(waits(&mut first) && waits(&mut second));
        assert_eq!(world.semaphore.waiting(), 2);
        drop(first);
        assert_eq!(world.semaphore.waiting(), 1);
        drop(all);
        // It has its permit and never looks.
        drop(second);
        assert_eq!((world.semaphore.taken(), world.semaphore.waiting()), (0, 0));
    }

    #[tokio::test]
    async fn parts_are_given_back_one_by_one() {
        let world = World::new(10, 10, 0);
        let mut permit = world.now(ANN, 8);
        permit.resize(10);
        let part = permit.split(4);
        assert_eq!((permit.weight, part.weight, world.semaphore.taken()), (6, 4, 10));
        let mut next = world.acquire(BOB, 3);
        assert!(waits(&mut next));
        drop(part);
        let next = next.await;
        permit.resize(1);
        assert_eq!(world.semaphore.taken(), 4);
        drop((permit, next));
        assert_eq!(world.shares.each_ref().map(|share| share.load(Ordering::SeqCst)), [0; 3]);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn no_waiter_is_forgotten_however_they_come_and_go() {
        let world = Arc::new(World::new(8, 4, 0));
        let turns = (0..3).flat_map(|who| (0..8).map(move |number| (who, number)));
        let callers = turns.map(|(who, number)| {
            let world = Arc::clone(&world);
            tokio::spawn(async move {
                for round in 0..500 {
                    let weight = 1 + (number + round) % 6;
                    if (number + round) % 5 == 0 {
                        drop(world.acquire(who, weight).now_or_never());
                        continue;
                    }
                    let permit = world.acquire(who, weight).await;
                    tokio::task::yield_now().await;
                    drop(permit);
                }
            })
        });
        for caller in callers.collect::<Vec<_>>() {
            caller.await.unwrap();
        }
        assert_eq!((world.semaphore.taken(), world.semaphore.waiting()), (0, 0));
    }
}
