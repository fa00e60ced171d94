//! Who may write, and under which numbers.

use std::collections::BTreeSet;
use std::sync::Arc;

use switchboard_engine::ids::{Seq, TaskKey};
use switchboard_engine::store::{AppendGuard, NewTask, Store, StoreError};

use super::Fixture;
use crate::build::{append, create, done, inbox, make, new_task, owner, refused, row, working};

pub(crate) async fn events_are_numbered_without_gaps(fixture: impl Fixture) {
    let store = fixture.open();
    let task = new_task("ann", "echo", "c");
    let first = store.append(create(&task, &["a", "b"], row(1))).await.unwrap();
    let second = store.append(inbox(first.key, 2, &["c"], working(2, 1))).await.unwrap();
    let third = store.append(owner(first.key, 1, &["d", "e", "f"], done(3, 1))).await.unwrap();
    assert_eq!([first.first_seq, second.first_seq, third.first_seq], [Seq(1), Seq(3), Seq(4)]);
    assert!(first.row < second.row && second.row < third.row && first.row > 0);

    let loaded = store.load(&task.id).await.unwrap().unwrap();
    assert_eq!((loaded.row.last_seq, loaded.row.bytes), (Seq(6), 3 + 1 + 5));
    assert_eq!(loaded.row.state, done(3, 1));
    assert_eq!(loaded.row.key, first.key);
    let events: Vec<_> = loaded.events.iter().map(|row| (row.first_seq.0, row.count, &row.events[..])).collect();
    assert_eq!(events, [(1, 2, &b"a\nb"[..]), (3, 1, b"c"), (4, 3, b"d\ne\nf")]);
    assert!(loaded.events.iter().all(|row| row.epoch == store.epoch()));
}

pub(crate) async fn an_owner_writes_only_under_its_fence_and_before_the_end(fixture: impl Fixture) {
    let store = fixture.open();
    let (id, key) = make(&store, "ann", "echo", "c", working(1, 5)).await;
    refused(store.append(owner(key, 4, &["old"], working(2, 4))).await, &StoreError::Fenced);
    refused(store.append(owner(key, 6, &["early"], working(2, 6))).await, &StoreError::Fenced);
    store.append(owner(key, 5, &["good"], done(2, 5))).await.unwrap();
    refused(store.append(owner(key, 5, &["late"], working(3, 5))).await, &StoreError::Fenced);
    refused(store.append(inbox(key, 2, &["after the end"], done(3, 6))).await, &StoreError::Fenced);
    let loaded = store.load(&id).await.unwrap().unwrap();
    assert_eq!((loaded.row.last_seq, loaded.row.state), (Seq(2), done(2, 5)));
}

pub(crate) async fn an_inbox_append_needs_the_whole_log(fixture: impl Fixture) {
    let store = fixture.open();
    let (id, key) = make(&store, "ann", "echo", "c", working(1, 1)).await;
    store.append(owner(key, 1, &["two"], working(1, 1))).await.unwrap();
    refused(store.append(inbox(key, 1, &["x"], working(1, 2))).await, &StoreError::Stale);
    refused(store.append(inbox(key, 3, &["x"], working(1, 2))).await, &StoreError::Stale);
    store.append(inbox(key, 2, &["three"], working(1, 2))).await.unwrap();
    refused(store.append(owner(key, 1, &["fenced off"], working(1, 1))).await, &StoreError::Fenced);
    assert_eq!(store.load(&id).await.unwrap().unwrap().row.last_seq, Seq(3));
}

pub(crate) async fn a_task_that_nobody_made_is_missing(fixture: impl Fixture) {
    let store = fixture.open();
    refused(store.append(owner(TaskKey(404), 0, &["x"], row(1))).await, &StoreError::Missing);
    refused(store.append(inbox(TaskKey(404), 0, &["x"], row(1))).await, &StoreError::Missing);
    assert!(store.load(&new_task("ann", "echo", "c").id).await.unwrap().is_none());
    assert!(store.read(TaskKey(404), Seq(0), 1000).await.unwrap().is_empty());

    let task = new_task("ann", "echo", "c");
    store.append(create(&task, &["a"], row(1))).await.unwrap();
    refused(store.append(create(&task, &["again"], row(2))).await, &StoreError::Stale);
    assert_eq!(store.load(&task.id).await.unwrap().unwrap().row.last_seq, Seq(1));
}

pub(crate) async fn an_append_may_change_only_the_row(fixture: impl Fixture) {
    let store = fixture.open();
    let task = new_task("ann", "echo", "c");
    let made = store.append(create(&task, &[], row(1))).await.unwrap();
    assert_eq!((made.first_seq, made.row), (Seq(1), 0));
    let changed = store.append(inbox(made.key, 0, &[], working(1, 1))).await.unwrap();
    assert_eq!((changed.first_seq, changed.row), (Seq(1), 0));
    store.append(owner(made.key, 1, &["first"], working(1, 1))).await.unwrap();
    let loaded = store.load(&task.id).await.unwrap().unwrap();
    assert_eq!((loaded.row.state, loaded.row.last_seq), (working(1, 1), Seq(1)));
    assert_eq!(&loaded.events[0].events[..], b"first");
    assert_eq!(store.read(made.key, Seq(0), 100).await.unwrap().len(), 1);
}

pub(crate) async fn concurrent_owners_never_share_a_number(fixture: impl Fixture) {
    let store = Arc::new(fixture.open());
    let (id, key) = make(&*store, "ann", "echo", "c", working(1, 1)).await;
    let writers: Vec<_> = (0..64)
        .map(|number| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let (left, right) = (format!("{number}a"), format!("{number}b"));
                store.append(owner(key, 1, &[&left, &right], working(1, 1))).await.unwrap().first_seq
            })
        })
        .collect();
    let mut numbers = BTreeSet::new();
    for writer in writers {
        numbers.insert(writer.await.unwrap().0);
    }
    assert_eq!(numbers, (0..64).map(|number| 2 + 2 * number).collect());
    let loaded = store.load(&id).await.unwrap().unwrap();
    assert_eq!(loaded.row.last_seq, Seq(129));
    let mut next = 1;
    for row in &loaded.events {
        assert_eq!(row.first_seq.0, next);
        next += u64::from(row.count);
    }
}

pub(crate) async fn names_of_any_spelling_come_back(fixture: impl Fixture) {
    let store = fixture.open();
    for name in [
        "",
        "a b",
        "sixteen bytes !!",
        "019a0000-0000-7000-8000-00000000abcd",
        "019A0000-0000-7000-8000-00000000ABCD",
        "019a00000000700080000000000abcd00000",
        "ключ'\";--",
    ] {
        let task = NewTask {
            id: format!("task {name}").into(),
            owner: format!("owner {name}").into(),
            agent: format!("agent {name}").into(),
            context: name.into(),
        };
        store.append(append(AppendGuard::Create(task.clone()), &["x"], done(1, 1))).await.unwrap();
        let back = store.load(&task.id).await.unwrap().unwrap().row.task;
        assert_eq!((back.id, back.owner, back.agent, back.context), (task.id, task.owner, task.agent, task.context));
    }
}
