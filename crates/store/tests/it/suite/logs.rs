//! Reading what was written: one task, and all of them.

use switchboard_engine::ids::{Position, Seq};
use switchboard_engine::store::Store;

use super::Fixture;
use crate::build::{create, done, inbox, make, new_task, owner, row, with_snapshot, working};

pub(crate) async fn a_task_is_read_from_its_newest_snapshot(fixture: impl Fixture) {
    let store = fixture.open();
    let task = new_task("ann", "echo", "c");
    let key = store.append(with_snapshot(create(&task, &["1", "2"], working(1, 1)), "as of 2")).await.unwrap().key;
    let loaded = store.load(&task.id).await.unwrap().unwrap();
    assert_eq!(loaded.snapshot, Some((Seq(2), store.epoch(), "as of 2".into())));
    assert!(loaded.events.is_empty());

    store.append(owner(key, 1, &["3"], working(1, 1))).await.unwrap();
    store.append(with_snapshot(owner(key, 1, &["4", "5"], working(1, 1)), "as of 5")).await.unwrap();
    store.append(owner(key, 1, &["6"], working(1, 1))).await.unwrap();
    store.append(owner(key, 1, &["7"], working(2, 1))).await.unwrap();
    let loaded = store.load(&task.id).await.unwrap().unwrap();
    assert_eq!(loaded.snapshot, Some((Seq(5), store.epoch(), "as of 5".into())));
    assert_eq!(loaded.events.iter().map(|row| row.first_seq.0).collect::<Vec<_>>(), [6, 7]);

    store.append(with_snapshot(inbox(key, 7, &[], working(2, 2)), "as of 7")).await.unwrap();
    let loaded = store.load(&task.id).await.unwrap().unwrap();
    assert_eq!(loaded.snapshot, Some((Seq(7), store.epoch(), "as of 7".into())));
    assert!(loaded.events.is_empty());
    assert_eq!(store.read(key, Seq(0), 1000).await.unwrap().len(), 5);
}

pub(crate) async fn a_log_is_read_from_any_number(fixture: impl Fixture) {
    let store = fixture.open();
    let task = new_task("ann", "echo", "c");
    let key = store.append(create(&task, &["1", "2", "3"], working(1, 1))).await.unwrap().key;
    store.append(owner(key, 1, &["4"], working(1, 1))).await.unwrap();
    store.append(owner(key, 1, &["5", "6"], working(1, 1))).await.unwrap();
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
        store.append(owner(key, 1, &["0123456789"], working(1, 1))).await.unwrap();
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

pub(crate) async fn the_log_of_all_tasks_is_in_commit_order(fixture: impl Fixture) {
    let store = fixture.open();
    let (ann, ann_key) = make(&store, "ann", "echo", "c", working(1, 1)).await;
    let (bob, bob_key) = make(&store, "bob", "echo", "c", working(1, 1)).await;
    store.append(owner(ann_key, 1, &["2", "3"], done(2, 1))).await.unwrap();
    store.append(owner(bob_key, 1, &["2"], done(2, 1))).await.unwrap();

    let all = store.read_all(Position::default(), 100).await.unwrap();
    let seen: Vec<_> = all.iter().map(|(task, row)| (task.clone(), row.first_seq.0)).collect();
    assert_eq!(seen, [(ann.clone(), 1), (bob.clone(), 1), (ann.clone(), 2), (bob, 2)]);
    assert!(all.is_sorted_by(|left, right| left.1.row < right.1.row));

    // In the middle of a row: the row comes again. At its end: it does not.
    let third = &all[2].1;
    let middle = store.read_all(Position { row: third.row, seq: Seq(2) }, 1).await.unwrap();
    assert_eq!((middle[0].0.clone(), middle[0].1.row), (ann, third.row));
    let end = store.read_all(Position { row: third.row, seq: Seq(3) }, 100).await.unwrap();
    assert_eq!(end.iter().map(|(_, row)| row.row).collect::<Vec<_>>(), [all[3].1.row]);
}
