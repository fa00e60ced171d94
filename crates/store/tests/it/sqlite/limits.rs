//! Full disks, damaged rows, and more work than the store can take.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use switchboard_a2a::Timestamp;
use switchboard_engine::ids::Seq;
use switchboard_engine::store::hub::HubStore;
use switchboard_engine::store::{Append, COOLDOWNS, Retention, Store, StoreError};
use switchboard_store::{Durability, Options, check, database_path};

use super::SqliteFixture;
use crate::build::{EVENT, Writes, create, done, event, make, new_task, owner, query, row, with_cooldown, working};
use crate::suite::Fixture;

/// A hang guard: what has not happened after so long never will. It says nothing about speed.
const HANG_GUARD: Duration = Duration::from_secs(300);

const EVICT_ALL: Retention = Retention {
    ended_before: Timestamp(i64::MAX),
    max_tasks: u64::MAX,
    max_bytes: u64::MAX,
    hold_since: Timestamp(i64::MAX),
};

fn large() -> Append {
    create(&new_task("ann", "echo", "c"), &[event(&"x".repeat(60_000)).as_str()], done(1, 1))
}

#[tokio::test]
async fn a_full_disk_refuses_writes_and_recovers() {
    let fixture = SqliteFixture::new();
    let store = fixture.open_with(Options { max_file_bytes: Some(1 << 20), ..Options::default() });
    let mut written = 0;
    let error = loop {
        match store.write(large()).await {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 100, "the limit was never reached");
    };
    assert!(matches!(&error, StoreError::Failed(words) if words.contains("full")), "{error}");
    assert!(matches!(store.ready(), Err(StoreError::Failed(_))));
    assert_eq!(store.list(query("ann")).await.unwrap().total, written, "reading goes on, and nothing was half written");

    assert!(store.evict(EVICT_ALL, 5).await.unwrap() == 5);
    assert!(store.ready().is_ok());
    store.write(large()).await.unwrap();
    store.close().await.unwrap();
    assert_eq!(check(fixture.directory.path()).unwrap().problems, Vec::<String>::new());
}

#[tokio::test]
async fn a_full_disk_is_noticed_to_be_free_again_without_a_write() {
    let fixture = SqliteFixture::new();
    let store = fixture.open_with(Options { max_file_bytes: Some(1 << 20), ..Options::default() });
    while store.write(large()).await.is_ok() {}
    assert!(store.ready().is_err());
    // Another program makes room.
    fixture.tamper("DELETE FROM event; DELETE FROM task; DELETE FROM tally");
    let recovered = async {
        while store.ready().is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(HANG_GUARD, recovered).await.unwrap();
}

#[tokio::test]
async fn a_file_that_could_not_be_opened_again_is_tried_although_callers_keep_asking() {
    let fixture = SqliteFixture::new();
    let store = fixture.open();
    make(&store, "ann", "echo", "c", done(1, 1)).await;
    // The schema names a page that the file does not have; no connection can be opened on that.
    let damage = |pages: &str| {
        fixture.tamper(&format!(
            "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET rootpage = rootpage {pages} WHERE name = 'event'; \
             PRAGMA schema_version = {}",
            if pages.starts_with('+') { 1_000 } else { 1_001 },
        ));
    };
    damage("+ 1000000");
    for _ in 0..3 {
        let error = store.write(large()).await.unwrap_err();
        assert!(matches!(&error, StoreError::Failed(words) if words.contains("damaged")), "{error}");
    }
    // Not even a file that is away for a while is replaced by an empty one.
    let (path, away) = (database_path(fixture.directory.path()), fixture.directory.path().join("away.db"));
    std::fs::rename(&path, &away).unwrap();
    let missed = async { while !store.write(large()).await.unwrap_err().to_string().contains("cannot be opened") {} };
    tokio::time::timeout(HANG_GUARD, missed).await.unwrap();
    assert!(!path.exists());
    std::fs::rename(&away, &path).unwrap();
    damage("- 1000000");
    let recovered = async { while store.write(large()).await.is_err() {} };
    tokio::time::timeout(HANG_GUARD, recovered).await.unwrap();
    assert!(store.ready().is_ok());
    store.close().await.unwrap();
    assert_eq!(check(fixture.directory.path()).unwrap().problems, Vec::<String>::new());
}

#[tokio::test]
async fn the_write_ahead_log_is_emptied_while_a_full_disk_is_tried_again_and_again() {
    let fixture = SqliteFixture::new();
    let store = fixture.open_with(Options { max_file_bytes: Some(1 << 20), ..Options::default() });
    while store.write(large()).await.is_ok() {}
    let log = fixture.directory.path().join("switchboard.db-wal");
    assert!(std::fs::metadata(&log).unwrap().len() > 0);
    let emptied = async {
        while std::fs::metadata(&log).unwrap().len() > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(HANG_GUARD, emptied).await.unwrap();
    assert!(store.ready().is_err(), "nothing could be written meanwhile");
}

#[tokio::test]
async fn the_write_ahead_log_is_emptied_while_jobs_are_claimed_of_which_there_are_none() {
    let fixture = SqliteFixture::new();
    let store = fixture.open();
    let log = fixture.directory.path().join("switchboard.db-wal");
    // Some hundred pages, as after a burst of work.
    for _ in 0..100 {
        store.write(large()).await.unwrap();
    }
    assert!(std::fs::metadata(&log).unwrap().len() > 0);
    let emptied = async {
        while std::fs::metadata(&log).unwrap().len() > 0 {
            assert!(store.claim_jobs(Timestamp(1), 8).await.unwrap().is_empty());
        }
    };
    tokio::time::timeout(HANG_GUARD, emptied).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_write_ahead_log_stays_short_while_writes_never_pause_whatever_is_read_before() {
    /// 16,384 pages with their headers, and a few transactions of four megabytes.
    const LOG_BYTES: u64 = (16_384 + 4_096) * (8192 + 24);
    const WRITTEN_BYTES: usize = 128 << 20;
    let fixture = SqliteFixture::new();
    let store = Arc::new(fixture.open());
    let log = fixture.directory.path().join("switchboard.db-wal");
    let log_bytes = || std::fs::metadata(&log).unwrap().len();
    let event = "x".repeat(1 << 20);
    let write = |most: u64| {
        let (store, log_bytes, event) = (&store, &log_bytes, event.as_str());
        async move {
            for _ in 0..WRITTEN_BYTES / 4 / event.len() {
                store.write(create(&new_task("ann", "echo", "c"), &[event], done(1, 1))).await.unwrap();
                let bytes = log_bytes();
                assert!(bytes <= most, "the log has {bytes} bytes");
            }
        }
    };
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let reads = tokio::spawn({
        let store = Arc::clone(&store);
        let mut stopped = stopped;
        async move {
            let mut reads = 0;
            while stopped.try_recv().is_err() {
                store.list(query("ann")).await.unwrap();
                reads += 1;
            }
            reads
        }
    });
    // How long the log grows beside reads that overlap depends on how long they take.
    join_all((0..4).map(|_| write(u64::MAX))).await;
    stop.send(()).unwrap();
    assert!(reads.await.unwrap() > 0);
    // Without them it is begun anew, however long it was: what a read was in the way of is tried again 4,096 pages later.
    let most = log_bytes().max(LOG_BYTES) + 2 * 4_096 * (8192 + 24);
    join_all((0..4).map(|_| write(most))).await;
    join_all((0..4).map(|_| write(most))).await;
    store.close().await.unwrap();
}

#[tokio::test]
async fn eviction_gives_the_space_back() {
    let fixture = SqliteFixture::new();
    let store = fixture.open();
    join_all((0..200).map(|_| store.write(large()))).await;
    let retention = Retention { max_bytes: 6 << 20, ..EVICT_ALL };
    let retention = Retention { ended_before: Timestamp(i64::MIN), ..retention };
    let mut evicted = 0;
    loop {
        match store.evict(retention, 30).await.unwrap() {
            0 => break,
            some => evicted += some,
        }
    }
    assert!((80..200).contains(&evicted), "{evicted} of 200 for half of the bytes");
    store.close().await.unwrap();
    let bytes = std::fs::metadata(database_path(fixture.directory.path())).unwrap().len();
    assert!(bytes < 10 << 20, "{bytes}");
    assert_eq!(check(fixture.directory.path()).unwrap().problems, Vec::<String>::new());
}

#[tokio::test]
async fn a_damaged_task_fails_alone_in_its_batch() {
    let fixture = SqliteFixture::new();
    let store = fixture.open();
    let (id, key) = make(&store, "ann", "echo", "c", working(1, 1)).await;
    // Its next event is there already, so the append breaks in the middle.
    fixture.tamper(&format!("INSERT INTO event VALUES (1000, {}, 2, 1, 1, x'31', NULL)", key.0));
    let good = |_| store.write(create(&new_task("bob", "echo", "c"), &["x"], row(1)));
    let broken = store.write(owner(key, 1, &["2"], done(2, 1)));
    let (before, broken, after) =
        futures_util::future::join3(join_all((0..20).map(good)), broken, join_all((0..20).map(good))).await;
    assert!(matches!(broken, Err(StoreError::Failed(_))), "{broken:?}");
    assert!(before.iter().chain(&after).all(Result::is_ok));
    assert_eq!(store.list(query("bob")).await.unwrap().total, 40);
    let untouched = store.load(&id).await.unwrap().unwrap().row;
    assert_eq!((untouched.last_seq, untouched.state), (Seq(1), working(1, 1)));
    assert!(store.ready().is_ok());
}

#[tokio::test]
async fn new_work_is_refused_when_the_store_is_behind_and_endings_are_not() {
    let fixture = SqliteFixture::new();
    let store = Arc::new(fixture.open_with(Options { max_queue_delay: Duration::ZERO, ..Options::default() }));
    let (_, key) = make(&*store, "ann", "echo", "c", working(1, 1)).await;
    // Another program holds the file, so the writer cannot go on.
    let blocker = rusqlite::Connection::open(database_path(fixture.directory.path())).unwrap();
    blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
    let ending = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.write(owner(key, 1, &["end"], done(2, 1))).await }
    });
    while store.ready().is_ok() {
        tokio::task::yield_now().await;
    }
    assert!(matches!(store.ready(), Err(StoreError::Overloaded { .. })));
    let new = Append { refusable: true, ..create(&new_task("ann", "echo", "c"), &["x"], row(1)) };
    let refused = store.write(new.clone()).await;
    assert!(matches!(refused, Err(StoreError::Overloaded { .. })), "{refused:?}");
    blocker.execute_batch("ROLLBACK").unwrap();
    assert_eq!(ending.await.unwrap().unwrap().first_seq, Seq(2));
    assert!(store.ready().is_ok());
    store.write(new).await.unwrap();
}

#[tokio::test]
async fn more_than_the_queue_holds_waits_and_gets_in() {
    let fixture = SqliteFixture::new();
    let store = fixture.open_with(Options { durability: Durability::Process, ..Options::default() });
    let results =
        join_all((0..6_000).map(|_| store.write(create(&new_task("ann", "echo", "c"), &[EVENT], done(1, 1))))).await;
    assert!(results.iter().all(Result::is_ok));
    assert_eq!(store.list(query("ann")).await.unwrap().total, 6_000);
    store.close().await.unwrap();
    let report = check(fixture.directory.path()).unwrap();
    assert_eq!((report.tasks, report.problems), (6_000, vec![]));
}

#[tokio::test]
async fn beyond_the_most_cooldowns_the_one_that_ends_first_is_given_up() {
    let fixture = SqliteFixture::new();
    let store = fixture.open();
    // One less than are kept; the greatest numbers end first.
    fixture.tamper(&format!(
        "WITH RECURSIVE number (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM number WHERE n < {}) \
         INSERT INTO cooldown (key, until) SELECT 'key ' || n, 20000 - n FROM number",
        COOLDOWNS - 1
    ));
    let (first, second) = (format!("key {}", COOLDOWNS - 1), format!("key {}", COOLDOWNS - 2));
    let take = |key: &str| {
        let created = create(&new_task("ann", "echo", "c"), &[EVENT], row(1));
        store.append(with_cooldown(created, key, 1, i64::MAX))
    };
    take("the last one").await.unwrap();
    let refused = take(&first).await;
    assert!(matches!(refused, Err(StoreError::CoolingDown { .. })), "it is kept up to the limit: {refused:?}");
    take("one too many").await.unwrap();
    let refused = take(&second).await;
    assert!(matches!(refused, Err(StoreError::CoolingDown { .. })), "only one is given up: {refused:?}");
    take(&first).await.unwrap();
}
