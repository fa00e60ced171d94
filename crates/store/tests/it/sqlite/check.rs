//! `check` says nothing about a sound file and names every damage that is planted.

use switchboard_a2a::TaskId;
use switchboard_engine::store::Store;
use switchboard_store::check;

use super::SqliteFixture;
use crate::build::{create, done, hidden, make, new_task, owner, parked, row, with_send, with_snapshot, working};
use crate::suite::Fixture;

/// A store with one of everything, closed.
async fn sound() -> (SqliteFixture, TaskId) {
    let fixture = SqliteFixture::new();
    let store = fixture.open();
    let task = new_task("ann", "echo", "c");
    let first = with_send(create(&task, &["1", "2"], working(1, 1)), "ann", "echo", "k");
    let key = store.append(first).await.unwrap().key;
    store.append(owner(key, 1, &["3"], working(2, 1))).await.unwrap();
    store.append(with_snapshot(owner(key, 1, &["4"], done(3, 1)), "as of 4")).await.unwrap();
    make(&store, "ann", "echo", "c", row(1)).await;
    make(&store, "bob", "guide", "c", parked(1, 9)).await;
    make(&store, "bob", "guide", "c", hidden(done(1, 1))).await;
    store.append(create(&new_task("bob", "guide", "c"), &[], row(1))).await.unwrap();
    store.close().await.unwrap();
    (fixture, task.id)
}

#[tokio::test]
async fn a_sound_file_has_no_problems() {
    let (fixture, _) = sound().await;
    let report = check(fixture.directory.path()).unwrap();
    assert_eq!((report.tasks, report.event_rows, report.problems), (5, 6, vec![]));
    let _server = fixture.open();
    assert_eq!(check(fixture.directory.path()).unwrap().problems, Vec::<String>::new());
}

#[tokio::test]
async fn every_planted_damage_is_named() {
    let cases = [
        ("DELETE FROM event WHERE first_seq = 3", "event 3 should follow, but 4 does"),
        ("DELETE FROM event WHERE first_seq = 1 AND task_key = 1", "event 1 should follow, but 3 does"),
        ("UPDATE event SET blob = x'310a32' WHERE first_seq = 3", "says 1 events and holds 2"),
        ("UPDATE task SET last_seq = 9 WHERE key = 1", "its row ends at event 9, its log at 4"),
        ("UPDATE task SET bytes = 1 WHERE key = 1", "its row counts 1 bytes of events, its log has 5"),
        ("UPDATE task SET phase = 3 WHERE key = 1", "it is in a terminal state but not done"),
        ("UPDATE task SET state = 2 WHERE key = 1", "it is done but not in a terminal state"),
        ("UPDATE task SET lease = 1 WHERE key = 1", "it holds a lease although no turn runs"),
        ("UPDATE task SET phase = 1, state = 2, lease = 77 WHERE key = 1", "a start that has not happened"),
        ("UPDATE task SET fence = -1 WHERE key = 1", "its fence or recoveries are negative"),
        ("UPDATE event SET snapshot = NULL", "its snapshot is missing"),
        ("UPDATE task SET snapshot_row = 99 WHERE key = 1", "its snapshot is missing"),
    ];
    for (damage, words) in cases {
        let (fixture, id) = sound().await;
        fixture.tamper(damage);
        let problems = check(fixture.directory.path()).unwrap().problems;
        let expected = format!("task {id}: ");
        assert!(
            problems.iter().any(|line| line.starts_with(&expected) && line.contains(words)),
            "{damage}: {problems:?}"
        );
    }
}

#[tokio::test]
async fn damage_that_belongs_to_no_task_is_named() {
    let cases = [
        ("INSERT INTO event VALUES (99, 404, 1, 1, 1, x'31', NULL)", "event row 99: its task is gone"),
        ("INSERT INTO event VALUES (99, 1, 1, 1, 1, x'31', NULL)", "event row 99: its task is gone"),
        ("INSERT INTO send VALUES (1, 'echo', 'k9', x'00', 404, 1)", "idempotency key echo k9: its task is gone"),
        ("UPDATE tally SET n = n + 1 WHERE state = 3 AND hidden = 0", "says 2 tasks, there are 1"),
        ("DELETE FROM tally WHERE state = 3 AND hidden = 0", "says 0 tasks, there are 1"),
    ];
    for (damage, words) in cases {
        let (fixture, _) = sound().await;
        fixture.tamper(damage);
        let problems = check(fixture.directory.path()).unwrap().problems;
        assert!(problems.iter().any(|line| line.contains(words)), "{damage}: {problems:?}");
    }
}

#[tokio::test]
async fn a_damaged_page_is_named() {
    let (fixture, _) = sound().await;
    let path = switchboard_store::database_path(fixture.directory.path());
    let mut bytes = std::fs::read(&path).unwrap();
    // The counts of an index no longer agree with its table.
    fixture.tamper("PRAGMA writable_schema = ON; UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'send_task') WHERE name = 'task_listing'");
    let report = check(fixture.directory.path()).unwrap();
    assert!(report.problems.iter().any(|line| line.starts_with("database: ")), "{:?}", report.problems);
    bytes[..100].fill(0);
    std::fs::write(&path, bytes).unwrap();
    assert!(check(fixture.directory.path()).is_err());
    assert!(check(tempfile::tempdir().unwrap().path()).unwrap_err().to_string().contains("no database"));
}
