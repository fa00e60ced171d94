//! What a remote agent tells of a task is kept once, and the newest of it.

use bytes::Bytes;
use switchboard_a2a::{TaskId, Timestamp};
use switchboard_engine::ids::TaskKey;
use switchboard_engine::store::callbacks::{CallbackRow, CallbackStore, CallbackUpdate, UpdateAdded};
use switchboard_engine::store::{Retention, Store, StoreError};

use super::Fixture;
use crate::build::{done, make, refused, working};

async fn add(store: &impl CallbackStore, task: TaskKey, id: &str, max: usize) -> UpdateAdded {
    store.add_update(task, id, Bytes::from(format!("body of {id}")), Timestamp(7), max, u64::MAX).await.unwrap()
}

async fn kept(store: &impl CallbackStore, task: TaskKey) -> Vec<i64> {
    store.newest_updates(task, 100).await.unwrap().into_iter().map(|update| update.number).collect()
}

pub(crate) async fn a_callback_belongs_to_its_task(fixture: impl Fixture) {
    let store = fixture.open();
    let (id, key) = make(&store, "ann", "echo", "c", working(1, 1)).await;
    assert_eq!(store.callback(&id).await.unwrap(), None);
    refused(store.add_update(key, "a", Bytes::new(), Timestamp(1), 9, 0).await, &StoreError::Missing);
    assert!(!store.open_callback(&TaskId::generate(), [1; 32]).await.unwrap());
    assert!(store.open_callback(&id, [1; 32]).await.unwrap());
    assert_eq!(add(&store, key, "a", 9).await, UpdateAdded::New(1));
    assert!(store.open_callback(&id, [2; 32]).await.unwrap());
    drop(store);
    let store = fixture.open();
    assert_eq!(store.callback(&id).await.unwrap(), Some(CallbackRow { task_key: key, digest: [2; 32] }));
    // Another digest changes nothing about what came in.
    assert_eq!(add(&store, key, "a", 9).await, UpdateAdded::Known);
    assert_eq!(add(&store, key, "b", 9).await, UpdateAdded::New(2));
}

pub(crate) async fn the_newest_updates_are_kept(fixture: impl Fixture) {
    let store = fixture.open();
    let (id, key) = make(&store, "ann", "echo", "c", working(1, 1)).await;
    let (other_id, other) = make(&store, "ann", "echo", "c", working(1, 1)).await;
    assert!(store.open_callback(&id, [1; 32]).await.unwrap() && store.open_callback(&other_id, [1; 32]).await.unwrap());
    for (name, number) in [("a", 1), ("b", 2), ("c", 3)] {
        assert_eq!(add(&store, key, name, 3).await, UpdateAdded::New(number));
    }
    assert_eq!(add(&store, other, "a", 3).await, UpdateAdded::New(1));
    let newest = store.newest_updates(key, 1).await.unwrap();
    let body = Bytes::from_static(b"body of c");
    assert_eq!(newest, [CallbackUpdate { number: 3, id: "c".to_owned(), body, at: Timestamp(7) }]);
    assert_eq!(add(&store, key, "d", 3).await, UpdateAdded::New(4));
    assert_eq!((kept(&store, key).await, kept(&store, other).await), (vec![4, 3, 2], vec![1]));
    assert_eq!(add(&store, key, "a", 3).await, UpdateAdded::Known, "its name is kept longer");
    assert_eq!(add(&store, key, "e", 0).await, UpdateAdded::New(5));
    assert_eq!(kept(&store, key).await, [5], "the newest one always");
    updates_are_kept_up_to_a_size(&store).await;
}

/// The same by size.
async fn updates_are_kept_up_to_a_size(store: &(impl Store + CallbackStore)) {
    let (id, key) = make(store, "ann", "echo", "c", working(1, 1)).await;
    let (other_id, other) = make(store, "ann", "echo", "c", working(1, 1)).await;
    assert!(store.open_callback(&id, [1; 32]).await.unwrap() && store.open_callback(&other_id, [1; 32]).await.unwrap());
    let sized = async |task, name: &str, bytes: usize| {
        // Not text, so that bytes are counted and not characters.
        let body = Bytes::from(vec![0xc3; bytes]);
        store.add_update(task, name, body, Timestamp(7), 9, 10).await.unwrap();
    };
    sized(key, "a", 11).await;
    assert_eq!(kept(store, key).await, [1], "one alone may have any size");
    sized(key, "b", 4).await;
    assert_eq!(kept(store, key).await, [2]);
    sized(key, "c", 6).await;
    sized(other, "a", 10).await;
    assert_eq!((kept(store, key).await, kept(store, other).await), (vec![3, 2], vec![1]), "each task has its own room");
    sized(key, "d", 1).await;
    assert_eq!(kept(store, key).await, [4, 3]);
    sized(key, "e", 0).await;
    assert_eq!(kept(store, key).await, [5, 4, 3]);
}

pub(crate) async fn an_update_is_known_by_its_name(fixture: impl Fixture) {
    let store = fixture.open();
    let (id, key) = make(&store, "ann", "echo", "c", working(1, 1)).await;
    assert!(store.open_callback(&id, [1; 32]).await.unwrap());
    let names: Vec<String> = (1..=1_001).map(|number| format!("update {number}")).collect();
    for name in &names {
        assert!(matches!(add(&store, key, name, 9_999).await, UpdateAdded::New(_)));
    }
    // Those that are kept are known however many there are.
    assert_eq!(add(&store, key, &names[0], 9_999).await, UpdateAdded::Known);
    assert_eq!(add(&store, key, "one more", 2).await, UpdateAdded::New(1_002));
    assert_eq!(add(&store, key, &names[2], 2).await, UpdateAdded::Known, "it is among the newest thousand");
    assert_eq!(add(&store, key, &names[1], 2).await, UpdateAdded::New(1_003));
    assert_eq!(kept(&store, key).await, [1_003, 1_002]);
}

pub(crate) async fn callbacks_go_with_their_task(fixture: impl Fixture) {
    let store = fixture.open();
    let (id, key) = make(&store, "ann", "echo", "c", done(1, 1)).await;
    assert!(store.open_callback(&id, [1; 32]).await.unwrap());
    assert_eq!(add(&store, key, "a", 9).await, UpdateAdded::New(1));
    let all = Retention {
        ended_before: Timestamp(i64::MAX),
        max_tasks: 0,
        max_bytes: u64::MAX,
        hold_since: Timestamp(i64::MAX),
    };
    assert_eq!(store.evict(all, 9).await.unwrap(), 1);
    assert_eq!(store.callback(&id).await.unwrap(), None);
    assert!(kept(&store, key).await.is_empty());
    refused(store.add_update(key, "b", Bytes::new(), Timestamp(1), 9, 0).await, &StoreError::Missing);
}
