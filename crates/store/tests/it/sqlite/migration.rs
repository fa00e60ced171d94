//! A file of an earlier version is brought to this one and keeps what is in it.

use std::collections::BTreeMap;

use rusqlite::types::Value;
use switchboard_engine::ids::{Seq, TaskKey};
use switchboard_engine::store::callbacks::CallbackStore;
use switchboard_engine::store::keys::KeyStore;
use switchboard_engine::store::lineage::Lineage;
use switchboard_engine::store::webhooks::WebhookStore;
use switchboard_engine::store::{Append, Phase, Store};
use switchboard_store::{Options, SqliteStore, check};

use super::SqliteFixture;
use crate::build::{Writes, conversation, delivery, inbox, prepare, query, webhook, with_webhook};
use crate::suite::Fixture;

/// A parked task with three events in two rows, as the first version left it after a clean end.
const FIRST_VERSION: &str = "
    INSERT INTO meta (name, value) VALUES ('schema', 1), ('epoch', 4), ('start', 9), ('clean', 1), ('secret', zeroblob(32)),
        ('highest_task', 7), ('highest_event', 20);
    INSERT INTO name (id, text) VALUES (1, 'ann'), (2, 'echo');
    INSERT INTO task (key, id, owner, agent, context, state, status_at, phase, fence, lease, expires_at, hidden, recoveries,
        last_seq, first_row, snapshot_row, bytes, created_at)
        VALUES (5, 'task 1', 1, 2, 'c', 6, 30, 3, 1, NULL, 99, 0, 0, 3, 11, NULL, 40, 10);
    INSERT INTO event (id, task_key, first_seq, count, epoch, blob) VALUES
        (11, 5, 1, 2, 3, CAST('\"interrupted\"' || char(10) || '\"interrupted\"' AS BLOB)),
        (12, 5, 3, 1, 4, CAST('\"interrupted\"' AS BLOB));
    INSERT INTO tally (owner, agent, state, hidden, parked, n) VALUES (1, 2, 6, 0, 1, 1);
";

#[tokio::test]
async fn a_file_of_the_first_version_keeps_its_tasks() {
    let fixture = SqliteFixture::new();
    fixture.tamper("PRAGMA auto_vacuum = INCREMENTAL; CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID");
    fixture.tamper(include_str!("../../../src/sqlite/migrations/0001_tasks.sql"));
    fixture.tamper(FIRST_VERSION);
    assert!(check(fixture.directory.path()).unwrap_err().to_string().contains("schema 1"));

    let store = fixture.open();
    assert_eq!(store.epoch().0, 4);
    let loaded = store.load(&"task 1".into()).await.unwrap().unwrap();
    assert_eq!((loaded.row.last_seq, loaded.row.watched, loaded.events.len()), (Seq(3), false, 2));
    assert_eq!(store.list(query("ann")).await.unwrap().total, 1);
    assert_eq!(store.secret(), [0; 32]);
    // And can have what is new.
    let key = loaded.row.key;
    let set = with_webhook(inbox(key, 3, &[], loaded.row.state), webhook("a", "https://one", 2));
    store.write(Append { note: Some("1".to_owned()), ..set }).await.unwrap();
    assert_eq!(store.noted(conversation("ann")).await.unwrap().as_deref(), Some("1"));
    let hook = store.webhook(key, "a").await.unwrap().unwrap();
    prepare(&store, hook.key, delivery(3, 3, 40)).await;
    assert!(store.open_callback(&"task 1".into(), [1; 32]).await.unwrap());
    assert!(store.row(&"task 1".into()).await.unwrap().unwrap().watched);
    store.close().await.unwrap();
    assert_eq!(check(fixture.directory.path()).unwrap().problems, Vec::<String>::new());
}

/// Two queued turns, the first of which had begun and was recovered twice, as the third version told them apart.
const THIRD_VERSION: &str = "
    INSERT INTO meta (name, value) VALUES ('schema', 3), ('epoch', 4), ('start', 9), ('clean', 1), ('secret', zeroblob(32)),
        ('highest_task', 7), ('highest_event', 20);
    INSERT INTO name (id, text) VALUES (1, 'ann'), (2, 'echo');
    INSERT INTO task (key, id, owner, agent, context, state, status_at, phase, fence, lease, expires_at, hidden, recoveries,
        last_seq, first_row, snapshot_row, bytes, created_at)
        VALUES (5, 'begun', 1, 2, 'c', 1, 30, 0, 1, NULL, NULL, 0, 2, 1, 11, NULL, 13, 10),
               (6, 'new', 1, 2, 'c', 1, 31, 0, 1, NULL, NULL, 0, 0, 1, 12, NULL, 13, 10);
    INSERT INTO event (id, task_key, first_seq, count, epoch, blob) VALUES
        (11, 5, 1, 1, 3, CAST('\"interrupted\"' AS BLOB)), (12, 6, 1, 1, 3, CAST('\"interrupted\"' AS BLOB));
    INSERT INTO tally (owner, agent, state, hidden, parked, n) VALUES (1, 2, 1, 0, 0, 2);
";

#[tokio::test]
async fn a_turn_that_had_begun_and_waits_is_still_told_from_one_that_had_not() {
    let fixture = SqliteFixture::new();
    fixture.tamper("PRAGMA auto_vacuum = INCREMENTAL; CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID");
    fixture.tamper(include_str!("../../../src/sqlite/migrations/0001_tasks.sql"));
    fixture.tamper(include_str!("../../../src/sqlite/migrations/0002_webhooks.sql"));
    fixture.tamper(include_str!("../../../src/sqlite/migrations/0003_notes.sql"));
    fixture.tamper(THIRD_VERSION);
    let store = fixture.open();
    for (id, phase) in [("begun", Phase::Requeued), ("new", Phase::Queued)] {
        assert_eq!(store.row(&id.into()).await.unwrap().unwrap().state.phase, phase);
    }
    store.close().await.unwrap();
    assert_eq!(check(fixture.directory.path()).unwrap().problems, Vec::<String>::new());
}

/// A data file that a server of the fifth schema has left after a crash, vacuumed into small pages: tasks of three callers
/// and three agents in every state, running and queued ones too, logs in several rows and two epochs, webhooks with
/// deliveries and dead letters, keys, an idempotency key.
pub(super) const FIFTH_VERSION: &[u8] = include_bytes!("../../fixtures/schema-5.db");

/// The rows of a table, in the columns that the fifth schema had.
fn rows(connection: &rusqlite::Connection, table: &str, columns: &str) -> Vec<Vec<Value>> {
    let mut statement = connection.prepare(&format!("SELECT {columns} FROM {table} ORDER BY {columns}")).unwrap();
    let width = statement.column_count();
    let rows = statement.query_map([], |row| (0..width).map(|column| row.get(column)).collect()).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

/// The columns of each table but `meta`, which every start changes.
fn tables(connection: &rusqlite::Connection) -> BTreeMap<String, String> {
    let sql = "SELECT tables.name, group_concat(columns.name, ', ') FROM pragma_table_list AS tables \
               JOIN pragma_table_info(tables.name) AS columns WHERE tables.name NOT IN ('meta', 'sqlite_schema', \
               'sqlite_temp_schema', 'sqlite_stat1') GROUP BY tables.name";
    let mut statement = connection.prepare(sql).unwrap();
    let tables = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    tables.collect::<Result<_, _>>().unwrap()
}

#[tokio::test]
async fn a_data_file_of_the_fifth_version_reads_the_same() {
    let fixture = SqliteFixture::new();
    let path = switchboard_store::database_path(fixture.directory.path());
    std::fs::write(&path, FIFTH_VERSION).unwrap();
    let contents = |tables: &BTreeMap<String, String>| {
        let connection = rusqlite::Connection::open(&path).unwrap();
        tables.iter().map(|(table, columns)| rows(&connection, table, columns)).collect::<Vec<_>>()
    };
    let tables = tables(&rusqlite::Connection::open(&path).unwrap());
    let before = contents(&tables);
    assert!(tables.len() >= 10 && before.iter().filter(|rows| !rows.is_empty()).count() >= 8, "{tables:?}");

    let store = fixture.open();
    assert_eq!(store.epoch().0, 3, "the second was left by a crash");
    assert_eq!(contents(&tables), before);

    // And through the store: every task with its log, every key, every webhook.
    let connection = rusqlite::Connection::open(&path).unwrap();
    let tasks = rows(&connection, "task", "key, id, last_seq, bytes");
    assert_eq!(tasks.len(), 37);
    let mut states = std::collections::HashSet::new();
    for task in &tasks {
        let [Value::Integer(key), _, Value::Integer(last_seq), Value::Integer(bytes)] = task[..] else {
            panic!("{task:?}")
        };
        let loaded = store.load_some(vec![TaskKey(key)], usize::MAX).await.unwrap().remove(0);
        assert_eq!(loaded.row.task.lineage, Lineage::default());
        assert_eq!(loaded.row.last_seq, Seq(last_seq.cast_unsigned()));
        let log = store.read(TaskKey(key), Seq(0), usize::MAX).await.unwrap();
        let (events, size) = log.iter().fold((0, 0), |sum, row| (sum.0 + row.count, sum.1 + row.events.len()));
        assert_eq!((u64::from(events), size), (last_seq.cast_unsigned(), usize::try_from(bytes).unwrap()));
        states.insert((loaded.row.state.state, loaded.row.state.phase));
    }
    assert!(states.len() >= 8, "{states:?}");
    let keys = store.list_keys().await.unwrap();
    assert_eq!(keys.len(), 4);
    assert_eq!(keys.iter().filter(|key| key.revoked_at.is_some()).count(), 1);
    store.close().await.unwrap();
    assert_eq!(check(fixture.directory.path()).unwrap().problems, Vec::<String>::new());
}

/// What a tool sees of a file's schema: its number and its tables.
fn schema(path: &std::path::Path) -> (Option<i64>, usize) {
    let connection = rusqlite::Connection::open(path).unwrap();
    let number = connection.query_row("SELECT value FROM meta WHERE name = 'schema'", [], |row| row.get(0));
    (number.ok(), rows(&connection, "sqlite_schema", "name").len())
}

#[tokio::test]
async fn a_migration_that_is_cut_off_leaves_the_file_as_it_was() {
    for file in [None, Some(FIFTH_VERSION)] {
        let fixture = SqliteFixture::new();
        let path = switchboard_store::database_path(fixture.directory.path());
        let page_bytes = file.map_or(8192, |_| 512);
        std::fs::write(&path, file.unwrap_or_default()).unwrap();
        let before = schema(&path);
        // At every limit the disk is full at another place of it, until it is large enough.
        let (mut refused, mut max_file_bytes) = (0, file.map_or(0, <[u8]>::len) as u64 + page_bytes);
        let store = loop {
            let options = Options { max_file_bytes: Some(max_file_bytes), ..Options::default() };
            match SqliteStore::open(fixture.directory.path(), options) {
                Ok(store) => break store,
                Err(error) => assert!(error.to_string().contains("full"), "{error}"),
            }
            assert_eq!(schema(&path), before);
            refused += 1;
            max_file_bytes += 4 * page_bytes;
        };
        assert!(refused > 2, "it was cut off {refused} times");
        store.close().await.unwrap();
        assert_eq!(check(fixture.directory.path()).unwrap().problems, Vec::<String>::new());
    }
}
