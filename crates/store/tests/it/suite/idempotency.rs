//! Idempotency keys live with the task that answered them.

use switchboard_engine::ids::Seq;
use switchboard_engine::store::{Store, StoreError};

use super::Fixture;
use crate::build::{Writes, create, inbox, new_task, owner, refused, row, scope, with_send, working};

pub(crate) async fn a_key_finds_its_send(fixture: impl Fixture) {
    let store = fixture.open();
    let task = new_task("ann", "echo", "c");
    let key = store.write(with_send(create(&task, &["1", "2"], row(1)), "ann", "echo", "k1")).await.unwrap().key;
    store.write(with_send(inbox(key, 2, &["3"], row(1)), "ann", "", "k2")).await.unwrap();
    for (scope, seq) in [(scope("ann", "echo", "k1"), Seq(1)), (scope("ann", "", "k2"), Seq(3))] {
        let found = store.find_send(scope.clone()).await.unwrap().unwrap();
        assert_eq!((found.scope, found.task, found.seq, found.digest), (scope, Some(task.id.clone()), seq, [7; 32]));
    }
    for scope in
        [scope("ann", "echo", "k2"), scope("ann", "", "k1"), scope("bob", "echo", "k1"), scope("ann", "echo", "K1")]
    {
        assert!(store.find_send(scope).await.unwrap().is_none());
    }
}

pub(crate) async fn a_key_is_taken_once_per_scope(fixture: impl Fixture) {
    let store = fixture.open();
    let send =
        |owner: &str, address| with_send(create(&new_task(owner, "echo", "c"), &["1"], row(1)), owner, address, "k");
    store.write(send("ann", "echo")).await.unwrap();
    refused(store.write(send("ann", "echo")).await, &StoreError::KeyTaken);
    store.write(send("ann", "")).await.unwrap();
    store.write(send("bob", "echo")).await.unwrap();
    // Two of them at the same time: one wins, the other is told, and no second task is left behind.
    let (left, right) =
        futures_util::future::join(store.write(send("eve", "echo")), store.write(send("eve", "echo"))).await;
    assert_ne!(left.is_ok(), right.is_ok());
    refused(left.and(right), &StoreError::KeyTaken);
    assert_eq!(store.list(crate::build::query("eve")).await.unwrap().total, 1);
}

pub(crate) async fn a_refused_append_takes_no_key(fixture: impl Fixture) {
    let store = fixture.open();
    let (_, key) = crate::build::make(&store, "ann", "echo", "c", working(1, 1)).await;
    refused(
        store.write(with_send(owner(key, 9, &["x"], working(1, 9)), "ann", "echo", "k")).await,
        &StoreError::Fenced,
    );
    assert!(store.find_send(scope("ann", "echo", "k")).await.unwrap().is_none());
    store.write(with_send(inbox(key, 1, &["x"], working(1, 1)), "ann", "echo", "k")).await.unwrap();
    assert!(store.find_send(scope("ann", "echo", "k")).await.unwrap().is_some());
}

/// More keys than a store learns of its predecessor's with one look-up.
pub(crate) async fn keys_of_an_earlier_process_are_found_and_taken(fixture: impl Fixture) {
    const KEYS: usize = 600;
    let names = |at: usize| (if at.is_multiple_of(3) { "bob" } else { "ann" }, format!("k{at}"));
    let store = fixture.open();
    let writes = (0..KEYS).map(|at| {
        let (owner, key) = names(at);
        store.write(with_send(create(&new_task(owner, "echo", "c"), &["1"], row(1)), owner, "echo", &key))
    });
    assert!(futures_util::future::join_all(writes).await.iter().all(Result::is_ok));
    store.close().await.unwrap();
    drop(store);
    let store = fixture.open();
    for round in 0..2 {
        for at in (0..KEYS).rev() {
            let (owner, key) = names(at);
            assert!(store.find_send(scope(owner, "echo", &key)).await.unwrap().is_some(), "{key}, round {round}");
            assert!(store.find_send(scope("eve", "echo", &key)).await.unwrap().is_none(), "{key}, round {round}");
        }
    }
    let (owner, key) = names(KEYS - 1);
    let again = with_send(create(&new_task(owner, "echo", "c"), &["1"], row(1)), owner, "echo", &key);
    refused(store.write(again).await, &StoreError::KeyTaken);
    let other = with_send(create(&new_task(owner, "echo", "c"), &["1"], row(1)), owner, "echo", "new");
    store.write(other).await.unwrap();
    assert!(store.find_send(scope(owner, "echo", "new")).await.unwrap().is_some());
}
