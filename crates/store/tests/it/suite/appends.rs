//! Who may write, and under which numbers.

use std::collections::BTreeSet;
use std::sync::Arc;

use switchboard_a2a::{TaskState, Timestamp};
use switchboard_engine::ids::{Seq, TaskKey};
use switchboard_engine::store::lineage::Lineage;
use switchboard_engine::store::{Append, AppendGuard, Phase, RowPatch, RowState, Store, StoreError, TaskIdentity};

use super::Fixture;
use crate::build::{
    Writes, append, claim, create, done, hidden, inbox, knowing, make, new_task, owner, refused, row, working,
};

pub(crate) async fn events_are_numbered_without_gaps(fixture: impl Fixture) {
    let store = fixture.open();
    let task = new_task("ann", "echo", "c");
    let first = store.write(create(&task, &["a", "b"], row(1))).await.unwrap();
    let second = store.write(inbox(first.key, 2, &["c"], working(2, 1))).await.unwrap();
    let third = store.write(owner(first.key, 1, &["d", "e", "f"], done(3, 1))).await.unwrap();
    assert_eq!([first.first_seq, second.first_seq, third.first_seq], [Seq(1), Seq(3), Seq(4)]);
    assert!(first.row < second.row && second.row < third.row && first.row > 0);

    let loaded = store.load(&task.id).await.unwrap().unwrap();
    assert_eq!((loaded.row.last_seq, loaded.row.bytes), (Seq(6), 3 + 1 + 5));
    assert_eq!(loaded.row.state, done(3, 1));
    assert_eq!(loaded.row.key, first.key);
    let events: Vec<_> = loaded.events.iter().map(|row| (row.first_seq.0, row.count, &row.events[..])).collect();
    assert_eq!(events, [(1, 2, &b"a\nb"[..]), (3, 1, b"c"), (4, 3, b"d\ne\nf")]);
    assert!(loaded.events.iter().all(|row| row.epoch == first.epoch));
}

pub(crate) async fn an_append_needs_the_version_and_the_fence_and_a_task_that_goes_on(fixture: impl Fixture) {
    let store = fixture.open();
    let (id, key) = make(&store, "ann", "echo", "c", working(1, 5)).await;
    for by in [owner, inbox, claim] {
        let write = |version, fence| knowing(by(key, 0, &["x"], working(2, 6)), version, fence);
        refused(store.append(write(1, 4)).await, &StoreError::Fenced);
        refused(store.append(write(1, 6)).await, &StoreError::Fenced);
        refused(store.append(write(0, 5)).await, &StoreError::Stale);
        refused(store.append(write(2, 5)).await, &StoreError::Stale);
    }
    store.append(knowing(inbox(key, 0, &["two"], working(2, 5)), 1, 5)).await.unwrap();
    store.append(knowing(claim(key, 0, &["three"], working(3, 6)), 2, 5)).await.unwrap();
    store.append(knowing(owner(key, 0, &["four"], done(4, 6)), 3, 6)).await.unwrap();
    for by in [owner, inbox, claim] {
        for (version, fence) in [(4, 6), (3, 6), (4, 5)] {
            refused(store.append(knowing(by(key, 0, &["late"], done(5, 7)), version, fence)).await, &StoreError::Ended);
        }
    }
    let loaded = store.load(&id).await.unwrap().unwrap();
    assert_eq!((loaded.row.last_seq, loaded.row.state), (Seq(4), done(4, 6)));
    // A webhook may still be set, which is no event.
    let unchanged = Append { row: RowPatch::default(), ..knowing(inbox(key, 0, &[], done(4, 6)), 4, 6) };
    store.append(unchanged).await.unwrap();
}

pub(crate) async fn what_an_append_does_not_name_stays_as_it_is(fixture: impl Fixture) {
    let store = fixture.open();
    let before = RowState { recoveries: 3, expires_at: Some(Timestamp(9)), ..hidden(working(1, 5)) };
    let (id, key) = make(&store, "ann", "echo", "c", before.clone()).await;
    let patch = |row: RowPatch, version| Append { row, ..knowing(inbox(key, 0, &["x"], done(0, 0)), version, 5) };
    let mut expected = before;
    let patches = [
        RowPatch::default(),
        RowPatch { hidden: Some(false), ..RowPatch::default() },
        RowPatch { recoveries: Some(0), ..RowPatch::default() },
        RowPatch { expires_at: Some(None), ..RowPatch::default() },
        RowPatch { status: Some((TaskState::InputRequired, Timestamp(7))), ..RowPatch::default() },
        RowPatch { phase: Some(Phase::Parked), ..RowPatch::default() },
    ];
    for (version, change) in (1..).zip(patches) {
        expected = change.onto(&expected);
        store.append(patch(change, version)).await.unwrap();
        assert_eq!(store.row(&id).await.unwrap().unwrap().state, expected);
    }
    assert_eq!(expected, RowState { state: TaskState::InputRequired, phase: Phase::Parked, ..working(7, 5) });
}

pub(crate) async fn a_task_that_was_never_created_is_missing(fixture: impl Fixture) {
    let store = fixture.open();
    refused(store.write(owner(TaskKey(404), 0, &["x"], row(1))).await, &StoreError::Missing);
    refused(store.write(inbox(TaskKey(404), 0, &["x"], row(1))).await, &StoreError::Missing);
    assert!(store.load(&new_task("ann", "echo", "c").id).await.unwrap().is_none());
    assert!(store.read(TaskKey(404), Seq(0), 1000).await.unwrap().is_empty());

    let task = new_task("ann", "echo", "c");
    store.write(create(&task, &["a"], row(1))).await.unwrap();
    refused(store.write(create(&task, &["again"], row(2))).await, &StoreError::Stale);
    assert_eq!(store.load(&task.id).await.unwrap().unwrap().row.last_seq, Seq(1));
}

pub(crate) async fn an_append_may_change_only_the_row(fixture: impl Fixture) {
    let store = fixture.open();
    let task = new_task("ann", "echo", "c");
    let made = store.write(create(&task, &[], row(1))).await.unwrap();
    assert_eq!((made.first_seq, made.row), (Seq(1), 0));
    let changed = store.write(inbox(made.key, 0, &[], working(1, 1))).await.unwrap();
    assert_eq!((changed.first_seq, changed.row), (Seq(1), 0));
    store.write(owner(made.key, 1, &["first"], working(1, 1))).await.unwrap();
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
                loop {
                    match store.write(owner(key, 1, &[&left, &right], working(1, 1))).await {
                        Ok(appended) => return appended.first_seq,
                        Err(error) => assert_eq!(error.to_string(), StoreError::Stale.to_string()),
                    }
                }
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
        let task = TaskIdentity {
            id: format!("task {name}").into(),
            owner: format!("owner {name}").into(),
            agent: format!("agent {name}").into(),
            context: name.into(),
            lineage: Lineage { payer: Some(format!("payer {name}").into()), ..Lineage::default() },
        };
        store.write(append(AppendGuard::Create(Arc::new(task.clone())), &["x"], done(1, 1))).await.unwrap();
        let back = store.load(&task.id).await.unwrap().unwrap().row.task;
        assert_eq!(back, task);
    }
}
