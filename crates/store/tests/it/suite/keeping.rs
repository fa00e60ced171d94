//! What is kept, for how long, and across which ends.

use switchboard_a2a::{TaskId, Timestamp};
use switchboard_engine::ids::{Seq, TaskKey};
use switchboard_engine::store::{Retention, Store, StoreError};

use super::Fixture;
use crate::build::{
    Writes, create, done, hidden, make, new_task, owner, parked, query, refused, row, scope, with_send, working,
};

const KEEP_ALL: Retention = Retention {
    ended_before: Timestamp(i64::MIN),
    max_tasks: u64::MAX,
    max_bytes: u64::MAX,
    hold_since: Timestamp(i64::MAX),
};

async fn is_there(store: &impl Store, id: &TaskId) -> bool {
    store.load(id).await.unwrap().is_some()
}

pub(crate) async fn ended_tasks_go_by_age(fixture: impl Fixture) {
    let store = fixture.open();
    let (old, _) = make(&store, "ann", "echo", "c", done(10, 1)).await;
    let (old_reply, _) = make(&store, "bob", "guide", "d", hidden(done(20, 1))).await;
    let (new, _) = make(&store, "ann", "echo", "c", done(30, 1)).await;
    assert_eq!(store.evict(KEEP_ALL, 100).await.unwrap(), 0);
    let by_age = Retention { ended_before: Timestamp(30), ..KEEP_ALL };
    assert_eq!(store.evict(by_age, 100).await.unwrap(), 2);
    assert_eq!(store.evict(by_age, 100).await.unwrap(), 0);
    assert!(!is_there(&store, &old).await && !is_there(&store, &old_reply).await && is_there(&store, &new).await);
    assert_eq!(store.list(query("ann")).await.unwrap().total, 1);
}

pub(crate) async fn the_oldest_go_beyond_a_cap(fixture: impl Fixture) {
    let store = fixture.open();
    let mut tasks = Vec::new();
    for at in [50, 10, 40, 20, 30] {
        let owner = if at % 20 == 0 { "ann" } else { "bob" };
        tasks.push((at, make(&store, owner, "echo", "c", done(at, 1)).await.0));
    }
    let three = Retention { max_tasks: 3, ..KEEP_ALL };
    assert_eq!(store.evict(three, 1).await.unwrap(), 1);
    assert_eq!(store.evict(three, 100).await.unwrap(), 1);
    assert_eq!(store.evict(three, 100).await.unwrap(), 0);
    for (at, id) in &tasks {
        assert_eq!(is_there(&store, id).await, *at >= 30, "the task that ended at {at}");
    }
    assert!(store.evict(Retention { max_bytes: 0, ..KEEP_ALL }, 100).await.unwrap() > 0);
}

pub(crate) async fn live_tasks_stay_whatever_the_caps(fixture: impl Fixture) {
    let store = fixture.open();
    make(&store, "ann", "echo", "c", row(1)).await;
    make(&store, "ann", "echo", "c", working(1, 1)).await;
    make(&store, "ann", "echo", "c", hidden(working(1, 1))).await;
    make(&store, "ann", "echo", "c", parked(1, 2)).await;
    let nothing =
        Retention { ended_before: Timestamp(i64::MAX), max_tasks: 0, max_bytes: 0, hold_since: Timestamp(i64::MAX) };
    assert_eq!(store.evict(nothing, 100).await.unwrap(), 0);
    assert_eq!(store.list(query("ann")).await.unwrap().total, 3);
}

pub(crate) async fn an_evicted_task_leaves_nothing_behind(fixture: impl Fixture) {
    let store = fixture.open();
    let task = new_task("ann", "echo", "c");
    let made = store.write(with_send(create(&task, &["1"], working(1, 1)), "ann", "echo", "k")).await.unwrap();
    let last = store.write(owner(made.key, 1, &["2"], done(2, 1))).await.unwrap();
    assert_eq!(store.evict(Retention { max_tasks: 0, ..KEEP_ALL }, 100).await.unwrap(), 1);
    assert!(!is_there(&store, &task.id).await);
    assert!(store.read(made.key, Seq(0), 100).await.unwrap().is_empty());
    assert!(store.find_send(scope("ann", "echo", "k")).await.unwrap().is_none());
    assert_eq!(store.census().await.unwrap().by_state, []);
    refused(store.write(owner(made.key, 1, &["3"], done(3, 1))).await, &StoreError::Missing);

    // Neither its key nor its row ids are given again, not even after a restart.
    let (_, next) = make(&store, "ann", "echo", "c", done(3, 1)).await;
    assert!(next > made.key);
    assert_eq!(store.evict(Retention { max_tasks: 0, ..KEEP_ALL }, 100).await.unwrap(), 1);
    drop(store);
    let store = fixture.open();
    let again = new_task("ann", "echo", "c");
    let again = store.write(with_send(create(&again, &["1"], row(1)), "ann", "echo", "k")).await.unwrap();
    assert!(again.key > next && again.row > last.row + 1);
}

pub(crate) async fn a_clean_end_keeps_the_epoch(fixture: impl Fixture) {
    let store = fixture.open();
    let epoch = store.epoch_now().await;
    let (id, _) = make(&store, "ann", "echo", "c", done(1, 1)).await;
    store.close().await.unwrap();
    drop(store);
    let store = fixture.open();
    assert_eq!(store.epoch_now().await, epoch);
    assert_eq!(store.load(&id).await.unwrap().unwrap().events[0].epoch, epoch);
    store.close().await.unwrap();
}

pub(crate) async fn a_crash_raises_the_epoch_and_loses_nothing(fixture: impl Fixture) {
    let store = fixture.open();
    let before = store.epoch_now().await;
    let (id, key) = make(&store, "ann", "echo", "c", working(1, 1)).await;
    drop(store);
    let store = fixture.open();
    assert!(store.epoch_now().await > before);
    store.write(owner(key, 1, &["after"], done(2, 1))).await.unwrap();
    let epochs: Vec<_> = store.load(&id).await.unwrap().unwrap().events.iter().map(|row| row.epoch).collect();
    assert_eq!(epochs, [before, store.epoch_now().await]);
}

pub(crate) async fn a_closed_store_says_so(fixture: impl Fixture) {
    let store = fixture.open();
    assert!(store.ready().is_ok());
    let (id, _) = make(&store, "ann", "echo", "c", done(1, 1)).await;
    store.close().await.unwrap();
    store.close().await.unwrap();
    refused(store.write(create(&new_task("ann", "echo", "c"), &["x"], row(1))).await, &StoreError::Closed);
    refused(store.load(&id).await, &StoreError::Closed);
    refused(store.unfinished(TaskKey(0), 1).await, &StoreError::Closed);
    refused(store.evict(KEEP_ALL, 1).await, &StoreError::Closed);
    refused(store.ready(), &StoreError::Closed);
}

pub(crate) async fn a_store_has_a_secret_of_its_own_and_keeps_it<F: Fixture>(fixture: F) {
    let store = fixture.open();
    let secret = store.secret();
    let other = F::new();
    assert_ne!(other.open().secret(), secret);
    store.close().await.unwrap();
    drop(store);
    assert_eq!(fixture.open().secret(), secret, "after a clean end");
    assert_eq!(fixture.open().secret(), secret, "after a crash");
}
