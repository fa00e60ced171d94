//! The data directory: who has it, what is in it, and copies of it.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use switchboard_engine::store::{RowState, Store};
use switchboard_store::{Options, SqliteStore, backup, check, database_path, lock_holder};

use super::SqliteFixture;
use crate::build::{EVENT, Writes, bury, create, delivery, done, make, make_watched, new_task, query, working};
use crate::suite::Fixture;

#[tokio::test]
async fn a_second_opener_is_told_who_has_the_directory() {
    let fixture = SqliteFixture::new();
    let directory = fixture.directory.path();
    assert_eq!(lock_holder(directory).unwrap(), None);
    // A longer one was there before.
    std::fs::write(directory.join("switchboard.lock"), "1\n".repeat(1_000)).unwrap();
    let note = "serving on\n127.0.0.1:41242".to_owned();
    let store = fixture.open_with(Options { note, ..Options::default() });
    let error = SqliteStore::open(directory, Options::default()).err().unwrap().to_string();
    let expected = format!("is in use by process {} (serving on 127.0.0.1:41242)", std::process::id());
    assert!(error.contains(&expected), "{error}");
    assert_eq!(lock_holder(directory).unwrap().unwrap().pid, Some(std::process::id()));

    store.close().await.unwrap();
    assert_eq!(lock_holder(directory).unwrap(), None);
    drop(fixture.open());
    assert_eq!(lock_holder(directory).unwrap(), None);
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_left_alone() {
    let fixture = SqliteFixture::new();
    fixture.open().close().await.unwrap();
    fixture.tamper("UPDATE meta SET value = value + 1000 WHERE name = 'schema'");
    let error = SqliteStore::open(fixture.directory.path(), Options::default()).err().unwrap().to_string();
    assert!(error.contains("schema 100"), "{error}");
    assert_eq!(check(fixture.directory.path()).unwrap_err().to_string(), error, "in the same words");
    fixture.tamper("UPDATE meta SET value = value - 1000 WHERE name = 'schema'");
    fixture.open();
}

#[test]
fn a_database_of_another_program_is_refused() {
    let fixture = SqliteFixture::new();
    fixture.tamper("CREATE TABLE photos (id INTEGER)");
    let error = SqliteStore::open(fixture.directory.path(), Options::default()).err().unwrap().to_string();
    assert!(error.contains("another program"), "{error}");
    std::fs::write(database_path(fixture.directory.path()), "not a database at all, but long enough to have a header")
        .unwrap();
    assert!(SqliteStore::open(fixture.directory.path(), Options::default()).is_err());
}

#[tokio::test]
async fn a_clean_end_leaves_one_database_file() {
    let fixture = SqliteFixture::new();
    let store = fixture.open();
    make(&store, "ann", "echo", "c", done(1, 1)).await;
    store.close().await.unwrap();
    let mut names: Vec<_> = std::fs::read_dir(fixture.directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["switchboard.db", "switchboard.lock"]);
}

#[tokio::test]
async fn only_the_owner_may_read_the_files() {
    let fixture = SqliteFixture::new();
    // What the usual umask leaves to others must not matter.
    std::fs::set_permissions(fixture.directory.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let store = fixture.open();
    make(&store, "ann", "echo", "c", done(1, 1)).await;
    for name in ["switchboard.db", "switchboard.db-wal", "switchboard.db-shm"] {
        let mode = std::fs::metadata(fixture.directory.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_under_load_is_whole() {
    let fixture = SqliteFixture::new();
    let store = Arc::new(fixture.open());
    make(&*store, "ann", "echo", "c", done(1, 1)).await;
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let load = tokio::spawn({
        let store = Arc::clone(&store);
        async move {
            let mut written = 0;
            while !*stopped.borrow() {
                let task = new_task("ann", "echo", "c");
                store.write(create(&task, &[EVENT, EVENT], done(2, 1))).await.unwrap();
                written += 1;
            }
            written
        }
    });
    let copy = tempfile::tempdir().unwrap();
    let destination = database_path(copy.path());
    let source = fixture.directory.path().to_owned();
    let target = destination.clone();
    tokio::task::spawn_blocking(move || backup(&source, &target).unwrap()).await.unwrap();
    // The load is still running, so the copy was made beside it.
    let before = store.list(query("ann")).await.unwrap().total;
    stop.send(true).unwrap();
    let written: u64 = load.await.unwrap();
    assert!(written + 1 >= before);

    let report = check(copy.path()).unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
    assert!(report.tasks >= 1 && report.tasks <= written + 1);
    let restored = SqliteStore::open(copy.path(), Options::default()).unwrap();
    assert!(restored.epoch() > store.epoch());
    assert_eq!(restored.list(query("ann")).await.unwrap().total, report.tasks);

    let error = backup(fixture.directory.path(), &destination).unwrap_err().to_string();
    assert!(error.contains("cannot create the backup"), "{error}");
    assert_eq!(check(copy.path()).unwrap().tasks, report.tasks, "the file that was there is untouched");
}

#[tokio::test]
async fn states_keep_their_numbers_on_disk_and_other_numbers_are_an_error() {
    use switchboard_a2a::TaskState::*;
    use switchboard_engine::store::Phase;
    let fixture = SqliteFixture::new();
    let store = fixture.open();
    let states = [Unspecified, Submitted, Working, Completed, Failed, Canceled, InputRequired, Rejected, AuthRequired];
    let phases = [Phase::Requeued, Phase::Queued, Phase::Running, Phase::Interrupted, Phase::Parked, Phase::Done];
    let phases = phases.into_iter().chain(std::iter::repeat(Phase::Done));
    let mut ids = Vec::new();
    for (state, phase) in states.into_iter().zip(phases) {
        let (id, _) = make(&store, "ann", "echo", "c", RowState { state, phase, ..done(1, 1) }).await;
        let read = store.row(&id).await.unwrap().unwrap().state;
        assert_eq!((read.state, read.phase), (state, phase));
        ids.push(id);
    }
    let connection = rusqlite::Connection::open(database_path(fixture.directory.path())).unwrap();
    let mut numbers = connection.prepare("SELECT state, phase FROM task ORDER BY key").unwrap();
    let numbers = numbers.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let numbers: Vec<(i64, i64)> = numbers.collect::<Result<_, _>>().unwrap();
    let expected = (0..).zip([-1, 0, 1, 2, 3, 4, 4, 4, 4]).collect::<Vec<_>>();
    assert_eq!(numbers, expected);
    for unknown in ["state = 9", "state = 1, phase = 5", "phase = -2"] {
        connection.execute_batch(&format!("UPDATE task SET {unknown}")).unwrap();
        assert!(store.row(&ids[0]).await.is_err(), "{unknown}");
    }
}

#[tokio::test]
async fn webhooks_and_deliveries_keep_their_numbers_on_disk_and_other_numbers_are_an_error() {
    use switchboard_engine::store::webhooks::DeliveryState::{Dead, Delivered, Pending};
    use switchboard_engine::store::webhooks::WebhookState::{Active, Disabled, Finished, Paused};
    use switchboard_engine::store::webhooks::WebhookStore;
    let fixture = SqliteFixture::new();
    let store = fixture.open();
    let (task, hook) = make_watched(&store, "a", "https://one", working(1, 1)).await;
    bury(&store, hook, delivery(1, 1, 10), 11).await;
    let connection = rusqlite::Connection::open(database_path(fixture.directory.path())).unwrap();
    let number = |table: &str| -> i64 {
        connection.query_row(&format!("SELECT state FROM {table}"), [], |row| row.get(0)).unwrap()
    };
    assert_eq!((number("webhook"), number("delivery")), (0, 2), "as they are written");
    let set = |table: &str, number: usize| {
        connection.execute_batch(&format!("UPDATE {table} SET state = {number}")).unwrap();
    };
    for (number, state) in [Active, Paused, Disabled, Finished].into_iter().enumerate() {
        set("webhook", number);
        assert_eq!(store.webhook(task, "a").await.unwrap().unwrap().state, state);
    }
    for (number, state) in [Pending, Delivered, Dead].into_iter().enumerate() {
        set("delivery", number);
        assert_eq!(store.deliveries(hook, 9).await.unwrap()[0].state, state);
    }
    set("delivery", 3);
    assert!(store.deliveries(hook, 9).await.is_err());
    set("webhook", 4);
    assert!(store.webhook(task, "a").await.is_err());
}
