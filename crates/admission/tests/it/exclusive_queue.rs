//! Turns in an [`ExclusiveQueue`]: the order of arrival among items that conflict.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt;

use switchboard_admission::{ExclusiveQueue, QueuePosition};

#[tokio::test]
async fn keys_are_exclusive_in_the_order_of_arrival() {
    let queue = ExclusiveQueue::per_key();
    let first = queue.enqueue("a");
    let (second, third, other) = (queue.enqueue("a"), queue.enqueue("a"), queue.enqueue("b"));
    assert!(first.is_admitted() && other.is_admitted() && !second.is_admitted());
    let mut early = Box::pin(third.wait());
    assert!(early.as_mut().now_or_never().is_none());
    drop(first);
    assert!(second.is_admitted(), "it has not begun to wait, and is next all the same");
    assert!(early.as_mut().now_or_never().is_none());
    second.wait().await;
    drop(second);
    early.await;
    drop((third, other));
    assert!(queue.is_empty());
}

#[test]
fn conflicts_need_not_be_equality_and_turns_are_reported_once() {
    let admissions = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&admissions);
    let overlap = |one: &&str, other: &&str| one.starts_with(other) || other.starts_with(one);
    let queue = ExclusiveQueue::new(overlap, move |_| {
        count.fetch_add(1, Ordering::SeqCst);
    });
    let (left, right) = (queue.enqueue("/a"), queue.enqueue("/b"));
    let above = queue.enqueue("/");
    let below = queue.enqueue("/a/c");
    let ahead = |position: &QueuePosition<&str>| {
        position.read(|_, ahead| ahead.iter().map(|item| **item).collect::<Vec<_>>().join(" ")).unwrap()
    };
    assert_eq!((ahead(&left).as_str(), ahead(&above).as_str(), ahead(&below).as_str()), ("", "/a /b", "/a /"));
    drop(left);
    assert!(!above.is_admitted() && !below.is_admitted());
    drop(above);
    assert!(below.is_admitted());
    let mut changed = Box::pin(queue.changed());
    assert!(changed.as_mut().now_or_never().is_none());
    queue.update(|item| *item == "/b");
    assert!(changed.now_or_never().is_some());
    drop((right, below));
    assert_eq!((admissions.load(Ordering::SeqCst), queue.is_empty()), (3, true));
}
