//! What [`FairSemaphore`] promises: limits, fairness, and that no wake-up is lost however waiters come and go.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use proptest::prelude::*;
use switchboard_admission::{FairSemaphore, Limits, Permit, Share};

type Waiting = BoxFuture<'static, Permit<usize>>;

struct World {
    semaphore: Arc<FairSemaphore<usize>>,
    shares: [Share; 3],
}

const ANN: usize = 0;
const BOB: usize = 1;
const EVE: usize = 2;

impl World {
    fn new(total: usize, per_key: usize, always: usize) -> Self {
        Self { semaphore: FairSemaphore::new(Limits { total, per_key, always }), shares: Default::default() }
    }

    fn acquire(&self, key: usize, weight: usize) -> Waiting {
        let (semaphore, share) = (Arc::clone(&self.semaphore), Arc::clone(&self.shares[key]));
        async move { semaphore.acquire(&key, &share, weight).await }.boxed()
    }

    fn now(&self, key: usize, weight: usize) -> Permit<usize> {
        self.acquire(key, weight).now_or_never().expect("there is enough")
    }

    fn counts(&self) -> (usize, usize) {
        (self.semaphore.taken(), self.semaphore.waiting())
    }
}

fn waits(permit: &mut Waiting) -> bool {
    permit.now_or_never().is_none()
}

#[tokio::test]
async fn a_key_at_its_limit_waits_and_the_others_do_not() {
    let world = World::new(100, 30, 0);
    let first = world.now(ANN, 20);
    let mut second = world.acquire(ANN, 20);
    assert!(waits(&mut second));
    let _bob = world.now(BOB, 20);
    drop(first);
    let second = second.await;
    // One that is larger than the limit comes when nothing else of its key is there, and nothing passes it.
    let mut huge = world.acquire(ANN, 60);
    let mut small = world.acquire(ANN, 1);
    assert!(waits(&mut huge) && waits(&mut small));
    drop(second);
    let huge = huge.await;
    assert!(waits(&mut small));
    drop(huge);
    drop(small.await);
    assert_eq!(world.counts(), (20, 0));
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
    assert_eq!(world.counts(), (0, 0));
}

#[tokio::test]
async fn little_is_there_while_another_key_waits_for_the_total() {
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
    // It has its permit and is never polled again.
    drop(second);
    assert_eq!(world.counts(), (0, 0));
}

#[tokio::test]
async fn parts_are_given_back_one_by_one() {
    let world = World::new(10, 10, 0);
    let mut permit = world.now(ANN, 8);
    permit.resize(10);
    let part = permit.split(4);
    assert_eq!(world.semaphore.taken(), 10);
    let mut next = world.acquire(BOB, 3);
    assert!(waits(&mut next));
    drop(part);
    let next = next.await;
    assert_eq!(world.semaphore.taken(), 9);
    permit.resize(1);
    assert_eq!(world.semaphore.taken(), 4);
    drop((permit, next));
    assert_eq!(world.shares.each_ref().map(|share| share.load(Ordering::SeqCst)), [0; 3]);
}

#[test]
fn shares_are_kept_while_in_use_and_forgotten_after() {
    let world = World::new(usize::MAX, 10, 0);
    let share = world.semaphore.share(&7);
    let _permit = world.semaphore.try_acquire(&share, 9).unwrap();
    let forgotten = Arc::downgrade(&world.semaphore.share(&8));
    for key in 1_000..10_000 {
        drop(world.semaphore.share(&key));
    }
    assert!(Arc::ptr_eq(&share, &world.semaphore.share(&7)));
    assert!(world.semaphore.try_acquire(&share, 2).is_none());
    assert!(forgotten.upgrade().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_waiter_is_forgotten_however_they_come_and_go() {
    let world = Arc::new(World::new(8, 4, 0));
    let turns = (0..3).flat_map(|key| (0..8).map(move |number| (key, number)));
    let tasks = turns.map(|(key, number)| {
        let world = Arc::clone(&world);
        tokio::spawn(async move {
            for round in 0..500 {
                let weight = 1 + (number + round) % 6;
                if (number + round) % 5 == 0 {
                    drop(world.acquire(key, weight).now_or_never());
                    continue;
                }
                let permit = world.acquire(key, weight).await;
                tokio::task::yield_now().await;
                drop(permit);
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    assert_eq!(world.counts(), (0, 0));
}

#[derive(Clone, Debug)]
enum Step {
    Acquire {
        key: usize,
        weight: usize,
    },
    /// Drops a held permit or, if none is held, a waiter.
    Release(usize),
    Cancel(usize),
    Split(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..3_usize, 1..12_usize).prop_map(|(key, weight)| Step::Acquire { key, weight }),
        3 => any::<usize>().prop_map(Step::Release),
        1 => any::<usize>().prop_map(Step::Cancel),
        1 => any::<usize>().prop_map(Step::Split),
    ]
}

/// A permit, with its key and weight.
struct Held {
    key: usize,
    weight: usize,
    permit: Permit<usize>,
}

proptest! {
    /// A model of the limits: whatever happens, what is taken is what is held, no limit is passed but by a single permit,
    /// and the first waiter of each key waits for a reason.
    #[test]
    fn limits_hold_and_every_waiter_waits_for_a_reason(steps in proptest::collection::vec(step(), 1..80)) {
        const TOTAL: usize = 20;
        const PER_KEY: usize = 8;
        let world = World::new(TOTAL, PER_KEY, 0);
        let mut waiting: Vec<(usize, usize, Waiting)> = Vec::new();
        let mut held: Vec<Held> = Vec::new();
        for step in steps {
            match step {
                Step::Acquire { key, weight } => waiting.push((key, weight, world.acquire(key, weight))),
                Step::Release(index) if !held.is_empty() => drop(held.swap_remove(index % held.len())),
                Step::Release(index) | Step::Cancel(index) if !waiting.is_empty() => {
                    drop(waiting.remove(index % waiting.len()));
                }
                Step::Split(index) if !held.is_empty() => {
                    let index = index % held.len();
                    let whole = &mut held[index];
                    let (key, weight) = (whole.key, whole.weight / 2);
                    whole.weight -= weight;
                    let permit = whole.permit.split(weight);
                    held.push(Held { key, weight, permit });
                }
                _ => {}
            }
            waiting.retain_mut(|(key, weight, permit)| match permit.now_or_never() {
                Some(permit) => {
                    held.push(Held { key: *key, weight: *weight, permit });
                    false
                }
                None => true,
            });
            let of = |key: usize| held.iter().filter(|one| one.key == key).map(|one| one.weight).sum::<usize>();
            let total: usize = (0..3).map(of).sum();
            prop_assert_eq!(world.counts(), (total, waiting.len()));
            for key in 0..3 {
                prop_assert_eq!(world.shares[key].load(Ordering::SeqCst), of(key));
                // Weights are below 12: more than the limit is one permit, or the parts of one.
                prop_assert!(of(key) < 12);
            }
            prop_assert!(total <= TOTAL);
            let fits_key = |key: usize, weight: usize| of(key) == 0 || of(key) + weight <= PER_KEY;
            let firsts = (0..3).filter_map(|key| waiting.iter().find(|(other, ..)| *other == key));
            let ready: Vec<_> = firsts.filter(|(key, weight, _)| fits_key(*key, *weight)).collect();
            let is_total_short = ready.iter().any(|(_, weight, _)| total + weight > TOTAL);
            prop_assert!(ready.is_empty() || is_total_short, "{} could start at {total}", ready.len());
        }
        drop((waiting, held));
        prop_assert_eq!(world.counts(), (0, 0));
    }
}
