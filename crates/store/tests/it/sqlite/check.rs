//! `check` says nothing about a sound file and names every damage that is planted.

use bytes::Bytes;
use switchboard_a2a::{TaskId, Timestamp};
use switchboard_engine::fold::Fold;
use switchboard_engine::ids::Seq;
use switchboard_engine::store::callbacks::CallbackStore;
use switchboard_engine::store::webhooks::{OutboxWrite, WebhookStore};
use switchboard_engine::store::{Retention, Store};
use switchboard_store::{check, quick_check};

use super::SqliteFixture;
use crate::build::{
    EVENT, Writes, bury, create, delivery, done, hidden, make, make_watched, new_task, owner, parked, prepare, row,
    with_send, with_snapshot, working,
};
use crate::suite::Fixture;

/// A store with one of everything, closed.
async fn sound() -> (SqliteFixture, TaskId) {
    let fixture = SqliteFixture::new();
    let store = fixture.open();
    let task = new_task("ann", "echo", "c");
    let first = with_send(create(&task, &[EVENT, EVENT], working(1, 1)), "ann", "echo", "k");
    let key = store.write(first).await.unwrap().key;
    store.write(owner(key, 1, &[EVENT], working(2, 1))).await.unwrap();
    let snapshot = String::from_utf8(Fold::new(&task).snapshot().to_vec()).unwrap();
    store.write(with_snapshot(owner(key, 1, &[EVENT], done(3, 1)), &snapshot)).await.unwrap();
    make(&store, "ann", "echo", "c", row(1)).await;
    make(&store, "bob", "guide", "c", parked(1, 9)).await;
    make(&store, "bob", "guide", "c", hidden(done(1, 1))).await;
    store.write(create(&new_task("bob", "guide", "c"), &[], row(1))).await.unwrap();
    let (_, hook) = make_watched(&store, "a", "https://one", done(1, 1)).await;
    bury(&store, hook, delivery(1, 1, 10), 11).await;
    prepare(&store, hook, delivery(2, 2, 12)).await;
    // Its task is gone; its dead letter is not.
    let (_, bereft) = make_watched(&store, "a", "https://two", done(0, 1)).await;
    bury(&store, bereft, delivery(1, 3, 10), 11).await;
    store.outbox(OutboxWrite::Finished { webhook: bereft, cursor: Seq(3) }).await.unwrap();
    let oldest = Retention {
        ended_before: Timestamp(1),
        max_tasks: u64::MAX,
        max_bytes: u64::MAX,
        hold_since: Timestamp(i64::MAX),
    };
    assert_eq!(store.evict(oldest, 9).await.unwrap(), 1);
    assert!(store.open_callback(&task.id, [1; 32]).await.unwrap());
    store.add_update(key, "u", Bytes::from_static(b"news"), Timestamp(12), 9, 9).await.unwrap();
    store.close().await.unwrap();
    (fixture, task.id)
}

#[tokio::test]
async fn a_sound_file_has_no_problems() {
    let (fixture, _) = sound().await;
    let report = check(fixture.directory.path()).unwrap();
    assert_eq!((report.tasks, report.event_rows, report.problems), (6, 7, vec![]));
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
        ("UPDATE task SET bytes = 1 WHERE key = 1", "its row counts 1 bytes of events, its log has 53"),
        ("UPDATE task SET phase = 3 WHERE key = 1", "it is in a terminal state but not done"),
        ("UPDATE task SET state = 2 WHERE key = 1", "it is done but not in a terminal state"),
        ("UPDATE task SET lease = 1 WHERE key = 1", "it holds a lease although no turn runs"),
        ("UPDATE task SET phase = 1, state = 2, lease = 77 WHERE key = 1", "a start that has not happened"),
        ("UPDATE task SET fence = -1 WHERE key = 1", "its fence or recoveries are negative"),
        ("UPDATE event SET snapshot = NULL", "its snapshot is missing"),
        ("UPDATE task SET webhooks = 1 WHERE key = 1", "its row counts other webhooks than there are"),
        ("UPDATE task SET snapshot_row = 99 WHERE key = 1", "its snapshot is missing"),
        // As long as what was there.
        (
            "UPDATE event SET blob = CAST(replace(blob, 'interrupted', 'interrupter') AS BLOB) WHERE first_seq = 3",
            "event 3 in event row 2 cannot be read: unknown variant `interrupter`",
        ),
        (
            "UPDATE event SET blob = CAST(substr(blob, 1, 14) || 'x' || substr(blob, 16) AS BLOB) WHERE task_key = 1 \
             AND first_seq = 1",
            "event 2 in event row 1 cannot be read: ",
        ),
        (
            "UPDATE event SET snapshot = CAST('[' || substr(snapshot, 2) AS BLOB) WHERE snapshot IS NOT NULL",
            "the snapshot in event row 3 cannot be read: ",
        ),
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
        ("UPDATE tally SET n = n + 1 WHERE state = 3 AND hidden = 0", "says 3 tasks, there are 2"),
        ("DELETE FROM tally WHERE state = 3 AND hidden = 0", "says 0 tasks, there are 2"),
        ("DELETE FROM webhook WHERE key = 1", "delivery 2: its webhook is gone"),
        ("UPDATE webhook SET cursor = 9 WHERE key = 1", "webhook 1: it was told of events that its task does not have"),
        ("UPDATE webhook SET cursor = 2 WHERE key = 1", "delivery 2: it is next although its webhook was told"),
        (
            "UPDATE webhook SET state = 1 WHERE key = 1",
            "delivery 2: it is held although its webhook is active, or not held",
        ),
        (
            "UPDATE delivery SET endpoint = 'x' WHERE key = 2",
            "delivery 2: it goes to another endpoint than its webhook",
        ),
        (
            "UPDATE delivery SET attempted_at = NULL WHERE key = 1",
            "delivery 1: it is dead without the time of its last attempt",
        ),
        (
            "DROP INDEX delivery_head; UPDATE delivery SET state = 0 WHERE key = 1",
            "webhook 1: more than one delivery is next in its order",
        ),
        ("DELETE FROM delivery WHERE key = 3", "webhook 2: its task is gone and it has no dead letters"),
        ("UPDATE webhook SET state = 0 WHERE key = 2", "webhook 2: its task is gone and it waits for more"),
        ("UPDATE callback SET task_key = 404", "callback 404: its task is gone"),
        ("DELETE FROM callback", "callback update u: its task is gone"),
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

fn number(database: &rusqlite::Connection, sql: &str) -> usize {
    usize::from(database.query_row(sql, [], |row| row.get::<_, u16>(0)).unwrap())
}

/// Overwrites pages of the file.
fn spoil(fixture: &SqliteFixture, pages: impl FnOnce(&rusqlite::Connection) -> Vec<usize>) {
    let path = switchboard_store::database_path(fixture.directory.path());
    let database = rusqlite::Connection::open(&path).unwrap();
    let size = number(&database, "PRAGMA page_size");
    let pages = pages(&database);
    drop(database);
    let mut bytes = std::fs::read(&path).unwrap();
    for page in pages {
        bytes[(page - 1) * size..page * size].fill(0xff);
    }
    std::fs::write(&path, bytes).unwrap();
}

#[tokio::test]
async fn a_quick_check_looks_at_the_ends_of_tables_and_not_between() {
    let (fixture, _) = sound().await;
    assert_eq!(quick_check(fixture.directory.path()).unwrap(), Vec::<String>::new());
    let store = fixture.open();
    for number in 0..400 {
        make(&store, "ann", "echo", &format!("{number}-{}", "c".repeat(400)), done(1, 1)).await;
    }
    store.close().await.unwrap();
    let root = "SELECT rootpage FROM sqlite_schema WHERE name = 'task'";
    // Leaves between the first and the last: a check of everything finds them, a quick one does not read them.
    spoil(&fixture, |database| {
        let root = number(database, root);
        let path = switchboard_store::database_path(fixture.directory.path());
        let bytes = std::fs::read(path).unwrap();
        let size = number(database, "PRAGMA page_size");
        let page = &bytes[(root - 1) * size..root * size];
        assert_eq!(page[0], 5, "an interior page of a table");
        let cells = usize::from(u16::from_be_bytes([page[3], page[4]]));
        let cell = 12 + 2 * (cells / 2);
        let place = usize::from(u16::from_be_bytes([page[cell], page[cell + 1]]));
        vec![usize::try_from(u32::from_be_bytes(page[place..place + 4].try_into().unwrap())).unwrap()]
    });
    let found = check(fixture.directory.path());
    assert!(found.is_err() || !found.unwrap().problems.is_empty());
    assert_eq!(quick_check(fixture.directory.path()).unwrap(), Vec::<String>::new());
    spoil(&fixture, |database| vec![number(database, root)]);
    assert!(quick_check(fixture.directory.path()).is_err());
}

#[tokio::test]
async fn a_quick_check_names_a_new_task_without_events() {
    let (fixture, id) = sound().await;
    fixture.tamper("DELETE FROM event WHERE first_seq = 1 AND task_key = 1");
    let found = quick_check(fixture.directory.path()).unwrap();
    assert_eq!(found, [format!("task {id}: its first events are missing")]);
}
