//! A backup in the place of the data: as a crash in the middle leaves it, and with event ids that mean nothing else.

use switchboard_engine::store::Store;
use switchboard_store::{RestoreError, backup, check, database_path, restore};

use super::SqliteFixture;
use crate::build::{done, make};
use crate::suite::Fixture;

#[tokio::test]
async fn a_restored_file_goes_on_in_an_epoch_of_its_own() {
    let fixture = SqliteFixture::new();
    let directory = fixture.directory.path();
    let copy = directory.join("copy.db");
    let store = fixture.open();
    let first = store.epoch();
    make(&store, "ann", "echo", "c", done(1, 1)).await;
    backup(directory, &copy).unwrap();
    assert!(
        matches!(restore(directory, &copy, "x"), Err(RestoreError::Directory(_))),
        "while another process holds it"
    );
    drop(store);
    // Twice without an orderly end: epochs that the backup does not know of.
    drop(fixture.open());
    let store = fixture.open();
    let last = store.epoch();
    make(&store, "ann", "echo", "c", done(1, 1)).await;
    drop(store);
    assert!(last > first);

    // Of a restore that was cut short.
    std::fs::write(directory.join("switchboard.db.restoring"), "half").unwrap();
    let restored = restore(directory, &copy, "x").unwrap();
    assert_eq!(restored.report.tasks, 1);
    let before = restored.before.unwrap();
    assert_eq!(before, directory.join("switchboard.db.before-restore-x"));
    assert_eq!(check(directory).unwrap().tasks, 1);
    assert_eq!(switchboard_store::check_file(&before).unwrap().tasks, 2, "with what was in its write-ahead log");
    assert!(!directory.join("switchboard.db.restoring").exists());
    let store = fixture.open();
    assert!(store.epoch() > last, "{:?} {last:?}", store.epoch());
    store.close().await.unwrap();
    assert!(matches!(restore(directory, &copy, "x"), Err(RestoreError::File { .. })), "that name is taken");
    assert_eq!(check(directory).unwrap().tasks, 1);
}

#[tokio::test]
async fn a_backup_of_an_earlier_schema_is_brought_to_this_one() {
    let fixture = SqliteFixture::new();
    let directory = fixture.directory.path();
    let copy = directory.join("copy.db");
    std::fs::write(&copy, super::migration::FIFTH_VERSION).unwrap();
    let restored = restore(directory, &copy, "x").unwrap();
    assert_eq!((restored.schema, restored.report.tasks), (5, 37));
    fixture.open().close().await.unwrap();
}

#[tokio::test]
async fn data_that_is_damaged_is_kept_as_it_is_when_it_is_replaced() {
    let fixture = SqliteFixture::new();
    let directory = fixture.directory.path();
    let copy = directory.join("copy.db");
    fixture.open().close().await.unwrap();
    backup(directory, &copy).unwrap();
    let garbage = b"nothing that any program could read".as_slice();
    std::fs::write(database_path(directory), garbage).unwrap();
    std::fs::write(directory.join("switchboard.db-wal"), b"log").unwrap();
    let restored = restore(directory, &copy, "x").unwrap();
    let before = restored.before.unwrap();
    assert_eq!(std::fs::read(&before).unwrap(), garbage);
    assert!(!directory.join("switchboard.db-wal").exists(), "beside the new file it would destroy it");
    fixture.open().close().await.unwrap();
}
