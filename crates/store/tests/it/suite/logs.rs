//! Reading what was written: one task, and all of them.

use switchboard_engine::ids::Seq;
use switchboard_engine::store::Store;

use super::Fixture;
use crate::build::{Writes, create, inbox, make, new_task, owner, row, with_snapshot, working};

pub(crate) async fn a_task_is_read_from_its_newest_snapshot(fixture: impl Fixture) {
    let store = fixture.open();
    let task = new_task("ann", "echo", "c");
    let key = store.write(with_snapshot(create(&task, &["1", "2"], working(1, 1)), "as of 2")).await.unwrap().key;
    let loaded = store.load(&task.id).await.unwrap().unwrap();
    assert_eq!(loaded.snapshot, Some((Seq(2), store.epoch_now().await, "as of 2".into())));
    assert!(loaded.events.is_empty());

    store.write(owner(key, 1, &["3"], working(1, 1))).await.unwrap();
    store.write(with_snapshot(owner(key, 1, &["4", "5"], working(1, 1)), "as of 5")).await.unwrap();
    store.write(owner(key, 1, &["6"], working(1, 1))).await.unwrap();
    store.write(owner(key, 1, &["7"], working(2, 1))).await.unwrap();
    let loaded = store.load(&task.id).await.unwrap().unwrap();
    assert_eq!(loaded.snapshot, Some((Seq(5), store.epoch_now().await, "as of 5".into())));
    assert_eq!(loaded.events.iter().map(|row| row.first_seq.0).collect::<Vec<_>>(), [6, 7]);

    store.write(with_snapshot(inbox(key, 7, &[], working(2, 2)), "as of 7")).await.unwrap();
    let loaded = store.load(&task.id).await.unwrap().unwrap();
    assert_eq!(loaded.snapshot, Some((Seq(7), store.epoch_now().await, "as of 7".into())));
    assert!(loaded.events.is_empty());
    assert_eq!(store.read(key, Seq(0), 1000).await.unwrap().len(), 5);
}

pub(crate) async fn a_log_is_read_from_any_number(fixture: impl Fixture) {
    let store = fixture.open();
    let task = new_task("ann", "echo", "c");
    let key = store.write(create(&task, &["1", "2", "3"], working(1, 1))).await.unwrap().key;
    store.write(owner(key, 1, &["4"], working(1, 1))).await.unwrap();
    store.write(owner(key, 1, &["5", "6"], working(1, 1))).await.unwrap();
    make(&store, "bob", "echo", "c", row(1)).await;
    for (after, expected) in
        [(0, &[1, 4, 5][..]), (2, &[1, 4, 5]), (3, &[4, 5]), (4, &[5]), (5, &[5]), (6, &[]), (u64::MAX, &[])]
    {
        let rows = store.read(key, Seq(after), 1000).await.unwrap();
        assert_eq!(rows.iter().map(|row| row.first_seq.0).collect::<Vec<_>>(), expected, "after {after}");
    }
}

pub(crate) async fn a_log_is_read_in_portions(fixture: impl Fixture) {
    let store = fixture.open();
    let (_, key) = make(&store, "ann", "echo", "c", working(1, 1)).await;
    for _ in 0..9 {
        store.write(owner(key, 1, &["0123456789"], working(1, 1))).await.unwrap();
    }
    let (mut after, mut seen, mut portions) = (Seq(0), Vec::new(), 0);
    loop {
        let rows = store.read(key, after, 25).await.unwrap();
        let Some(last) = rows.last() else { break };
        after = last.first_seq.plus(u64::from(last.count) - 1);
        seen.extend(rows.iter().map(|row| row.first_seq.0));
        portions += 1;
    }
    assert_eq!(seen, (1..=10).collect::<Vec<_>>());
    assert!((3..=5).contains(&portions), "{portions}");
    assert_eq!(store.read(key, Seq(0), 0).await.unwrap().len(), 1);
}
