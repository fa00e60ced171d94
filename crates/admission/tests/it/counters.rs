//! Limits without waiting, and the order between keys.

use switchboard_admission::{Counter, FairQueue, KeyedCounter, LimitReached};

#[test]
fn permits_are_limited_and_given_back_once() {
    let counter = Counter::default();
    let mut first = counter.try_acquire(2).unwrap();
    let second = counter.try_acquire(2).unwrap();
    assert!(counter.try_acquire(2).is_none());
    let third = counter.acquire();
    first.set_held(false);
    first.set_held(false);
    assert_eq!(counter.held(), 2);
    first.set_held(true);
    assert_eq!(counter.held(), 3);
    first.set_held(false);
    drop((first, second, third));
    assert_eq!(counter.held(), 0);
}

#[test]
fn both_limits_hold_and_a_key_without_permits_is_forgotten() {
    let counter = KeyedCounter::new(3, 2);
    let first = counter.try_acquire(&"ann").unwrap();
    let _second = counter.try_acquire(&"ann").unwrap();
    assert_eq!(counter.try_acquire(&"ann").unwrap_err(), LimitReached::Key(2));
    let third = counter.try_acquire(&"bob").unwrap();
    assert_eq!(counter.try_acquire(&"bob").unwrap_err(), LimitReached::Total(3));
    drop(first);
    let _again = counter.try_acquire(&"ann").unwrap();
    assert!(format!("{counter:?}").contains("bob"));
    counter.change(&"bob", 2);
    assert_eq!((counter.held(), counter.check(&"eve")), (5, Err(LimitReached::Total(5))));
    counter.change(&"bob", -2);
    assert_eq!((counter.held(), counter.check(&"eve")), (3, Err(LimitReached::Total(3))));
    counter.change(&"eve", -1);
    assert_eq!(counter.held(), 3, "what a key does not have is not taken from the others");
    drop(third);
    assert_eq!((counter.check(&"ann"), counter.check(&"eve")), (Err(LimitReached::Key(2)), Ok(())));
    assert!(!format!("{counter:?}").contains("bob"), "a key without permits takes no memory");
}

#[test]
fn keys_have_their_turn_one_after_the_other() {
    let mut queue = FairQueue::default();
    for number in 1..=4 {
        queue.push(&"ann", number);
    }
    queue.push(&"bob", 10);
    queue.push(&"bob", 11);
    queue.push(&"eve", 20);
    assert_eq!(queue.remove(&"bob", |number| *number == 10), Some(10));
    assert_eq!(queue.remove(&"bob", |number| *number == 10), None);

    assert_eq!(queue.pop(|_, _| false), None);
    assert_eq!(queue.pop(|_, _| true), Some(("ann", 1)));
    assert_eq!(queue.pop(|key, _| *key != "bob"), Some(("eve", 20)));
    queue.push_front(&"eve", 21);
    let order: Vec<_> = std::iter::from_fn(|| queue.pop(|_, _| true)).map(|(_, number)| number).collect();
    assert_eq!(order, [21, 11, 2, 3, 4]);
    assert!(queue.is_empty());
    for key in ["ann", "bob", "eve"] {
        queue.push(&key, 0);
        assert_eq!(queue.pop(|_, _| true), Some((key, 0)), "nothing is left of its time before");
    }
}
