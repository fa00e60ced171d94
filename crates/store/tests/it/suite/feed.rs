//! The order of all rows: events and journal, read from any place, with what is missing said.

use bytes::Bytes;
use switchboard_a2a::Timestamp;
use switchboard_engine::ids::{Epoch, Seq};
use switchboard_engine::store::feed::{
    FeedContent, FeedCursor, FeedRow, FeedStart, JOURNAL_LINE_BYTES, JournalLine, JournalRetention, Position,
};
use switchboard_engine::store::hub::{Advance, HubStore};
use switchboard_engine::store::{Retention, Store, StoreError};

use super::Fixture;
use crate::build::{EVENT, Writes, create, done, hidden, make, make_watched, new_task, owner, working};

const KEEP_ALL: Retention = Retention {
    ended_before: Timestamp(i64::MIN),
    max_tasks: u64::MAX,
    max_bytes: u64::MAX,
    hold_since: Timestamp(i64::MIN),
};
const EVICT_ALL: Retention = Retention { max_tasks: 0, ..KEEP_ALL };

pub(crate) fn line(topic: &str, at: i64, payload: &str) -> JournalLine {
    JournalLine {
        at: Timestamp(at),
        owner: None,
        task: None,
        topic: topic.to_owned(),
        payload: Bytes::copy_from_slice(payload.as_bytes()),
    }
}

/// The events of a row or the topic of a line.
fn text(row: &FeedRow) -> String {
    match &row.content {
        FeedContent::Events { events, .. } => String::from_utf8(events.events.to_vec()).unwrap().replace('\n', "+"),
        FeedContent::Journal(line) => line.topic.clone(),
    }
}

async fn all(store: &impl Store, after: Position) -> Vec<String> {
    let page = store.read_all(after, 100, usize::MAX).await.unwrap();
    page.rows.iter().map(text).collect()
}

async fn end(store: &impl Store) -> FeedCursor {
    store.locate(FeedStart::Now).await.unwrap().cursor
}

pub(crate) async fn events_and_journal_lines_are_in_one_order(fixture: impl Fixture) {
    let store = fixture.open();
    assert_eq!(end(&store).await, FeedCursor::BEGINNING);
    let first = new_task("ann", "echo", "c");
    let key = store.append(create(&first, &["a1", "a2"], working(1, 1))).await.unwrap().key;
    let about = JournalLine { owner: Some("ann".into()), task: Some(first.id.clone()), ..line("hub.x", 7, "{}") };
    store.journal(vec![about.clone(), line("audit.y", 8, "[1]")]).await.unwrap();
    make(&store, "bob", "guide", "c", hidden(working(1, 1))).await;
    store.write(owner(key, 1, &["a3"], done(2, 1))).await.unwrap();
    let rows = store.read_all(Position::default(), 100, usize::MAX).await.unwrap().rows;
    assert_eq!(rows.iter().map(text).collect::<Vec<_>>(), ["a1+a2", "hub.x", "audit.y", EVENT, "a3"]);
    assert!(rows.is_sorted_by_key(|row| row.row) && rows.iter().all(|row| row.major == 0));
    let FeedContent::Events { key: found, task, hidden, events, .. } = &rows[0].content else { panic!("{rows:?}") };
    assert_eq!((found, &**task, hidden, events.first_seq, events.count), (&key, &first, &false, Seq(1), 2));
    assert!(matches!(&rows[1].content, FeedContent::Journal(found) if *found == about), "{rows:?}");
    assert!(matches!(&rows[3].content, FeedContent::Events { hidden: true, .. }), "{rows:?}");

    // From any place, also within a row; by number and by size.
    for (index, row) in rows.iter().enumerate() {
        let rest: Vec<_> = rows[index + 1..].iter().map(text).collect();
        assert_eq!(all(&store, row.cursor().position).await, rest);
    }
    let within = Position { row: rows[0].row, seq: Seq(1), major: 0 };
    assert_eq!(all(&store, within).await.len(), 5, "the rest of its row comes with it");
    assert_eq!(store.read_all(Position::default(), 2, usize::MAX).await.unwrap().rows.len(), 2);
    for (max_bytes, expected) in [(0, 1), (4, 1), (5, 2), (8, 3)] {
        let found = store.read_all(Position::default(), 100, max_bytes).await.unwrap().rows.len();
        assert_eq!(found, expected, "{max_bytes} bytes");
    }
    assert_eq!(end(&store).await, rows[4].cursor());
    assert_eq!(*store.committed().borrow(), rows[4].row);
}

pub(crate) async fn readers_of_all_rows_hear_of_each_commit(fixture: impl Fixture) {
    let store = fixture.open();
    let mut committed = store.committed();
    let (_, key) = make(&store, "ann", "echo", "c", working(1, 1)).await;
    committed.changed().await.unwrap();
    let first = *committed.borrow_and_update();
    store.journal(vec![line("hub.x", 7, "{}")]).await.unwrap();
    committed.changed().await.unwrap();
    assert_eq!(*committed.borrow_and_update(), first + 1);
    let appended = store.write(owner(key, 1, &["end"], done(2, 1))).await.unwrap();
    committed.changed().await.unwrap();
    assert_eq!((*committed.borrow_and_update(), appended.row), (first + 2, first + 2));
    drop(store);
    assert_eq!(*fixture.open().committed().borrow(), first + 2, "also what was committed before it was opened");
}

pub(crate) async fn a_cursor_before_a_deleted_row_has_a_gap(fixture: impl Fixture) {
    let store = fixture.open();
    let mut cursors = vec![FeedCursor::BEGINNING];
    for at in 1..=3 {
        make(&store, "ann", "echo", "c", done(at, 1)).await;
        cursors.push(end(&store).await);
    }
    let gaps = async || {
        let mut gaps = Vec::new();
        for cursor in &cursors {
            let located = store.locate(FeedStart::After(*cursor)).await.unwrap();
            let (found, expected) = (located.cursor.position, cursor.position);
            assert_eq!(all(&store, found).await, all(&store, expected).await, "it goes on where it was");
            gaps.push(located.is_gap);
        }
        gaps
    };
    assert_eq!(gaps().await, [false; 4]);
    let two_oldest = Retention { ended_before: Timestamp(3), ..KEEP_ALL };
    assert_eq!(store.evict(two_oldest, 100).await.unwrap(), 2);
    let page = store.read_all(Position::default(), 100, usize::MAX).await.unwrap();
    assert_eq!((page.rows.len(), page.evicted_to.row), (1, cursors[2].position.row));
    assert_eq!(gaps().await, [true, true, false, false], "the second row was the last to go");
    assert!(!store.locate(FeedStart::Oldest).await.unwrap().is_gap);

    // Journal lines that age out count too, and those of the audit stay longer.
    store.journal(vec![line("hub.x", 10, "{}"), line("audit.x", 10, "{}"), line("hub.x", 30, "{}")]).await.unwrap();
    let retention = JournalRetention { before: Timestamp(20), audit_before: Timestamp(10) };
    assert_eq!(store.evict_journal(retention, 100).await.unwrap(), 1);
    assert_eq!(store.evict_journal(retention, 100).await.unwrap(), 0);
    assert_eq!(gaps().await, [true; 4]);
    assert_eq!(all(&store, Position::default()).await, [EVENT, "audit.x", "hub.x"]);
    let retention = JournalRetention { before: Timestamp(99), audit_before: Timestamp(99) };
    assert_eq!(store.evict_journal(retention, 1).await.unwrap(), 1);
    assert_eq!(store.evict_journal(retention, 100).await.unwrap(), 1);

    // Row ids are not given again, though nothing is left that has them.
    let last = end(&store).await;
    assert_eq!(store.evict(EVICT_ALL, 100).await.unwrap(), 1);
    drop(store);
    let store = fixture.open();
    assert_eq!(end(&store).await, last);
    assert!(!store.locate(FeedStart::After(last)).await.unwrap().is_gap, "nothing after it is missing");
    store.journal(vec![line("hub.x", 99, "{}")]).await.unwrap();
    assert!(end(&store).await.position.row > last.position.row);
}

pub(crate) async fn a_cursor_of_a_lost_epoch_has_a_gap(fixture: impl Fixture) {
    let store = fixture.open();
    make(&store, "ann", "echo", "c", done(1, 1)).await;
    let kept = end(&store).await;
    drop(store);
    let store = fixture.open();
    make(&store, "ann", "echo", "c", done(2, 1)).await;
    let now = end(&store).await;
    assert!(now.epoch > kept.epoch && now.position > kept.position);
    // A power cut took these rows away before the last start: their numbers were given again, or not yet.
    for rows in [1, 5] {
        let position = Position { row: kept.position.row + rows, ..now.position };
        let lost = FeedCursor { epoch: kept.epoch, position };
        let located = store.locate(FeedStart::After(lost)).await.unwrap();
        assert!(located.is_gap);
        assert_eq!(located.cursor, kept, "the rows after it were written since");
    }
    assert!(!store.locate(FeedStart::After(kept)).await.unwrap().is_gap, "what a crash has not lost is good");
    let unknown = FeedCursor { epoch: Epoch(99), position: Position { row: 99, ..now.position } };
    let located = store.locate(FeedStart::After(unknown)).await.unwrap();
    assert!(located.is_gap);
    assert_eq!(located.cursor, now);
}

pub(crate) async fn a_task_that_a_consumer_has_not_read_stays(fixture: impl Fixture) {
    let store = fixture.open();
    let consumer = store.take_consumer("projector").await.unwrap();
    make(&store, "ann", "echo", "c", done(10, 1)).await;
    let read = end(&store).await;
    let (_, key) = make(&store, "ann", "echo", "c", working(20, 1)).await;
    let unread = |hold_since| Retention { hold_since: Timestamp(hold_since), ..EVICT_ALL };
    let advance = |cursor| Advance {
        consumer: "projector".to_owned(),
        fence: consumer.fence,
        cursor: Some(cursor),
        state: Bytes::new(),
        health: Vec::new(),
        jobs: Vec::new(),
        journal: Vec::new(),
    };
    store.advance(advance(read)).await.unwrap();
    let between = end(&store).await;
    store.write(owner(key, 1, &["end"], done(21, 1))).await.unwrap();
    assert_eq!(store.evict(unread(0), 100).await.unwrap(), 1, "the one that was read");
    // The first row of the other was read, the last was not.
    store.advance(advance(between)).await.unwrap();
    assert_eq!(store.evict(unread(21), 100).await.unwrap(), 0);
    assert_eq!(store.evict(Retention { ended_before: Timestamp(99), ..unread(21) }, 100).await.unwrap(), 0);
    // It is counted if it would go otherwise, by number or by age; one that a webhook keeps is not.
    make_watched(&store, "a", "https://one", done(22, 1)).await;
    let aged = |before| Retention { ended_before: Timestamp(before), hold_since: Timestamp(21), ..KEEP_ALL };
    for (retention, max, held) in [
        (unread(21), 100, 1),
        (unread(21), 0, 0),
        (unread(22), 100, 0),
        (Retention { max_tasks: 1, ..unread(21) }, 100, 1),
        (Retention { max_tasks: 2, ..unread(21) }, 100, 0),
        (aged(22), 100, 1),
        (aged(21), 100, 0),
    ] {
        assert_eq!(store.held_by_consumers(retention, max).await.unwrap(), held, "{max} of {retention:?}");
    }
    store.advance(advance(end(&store).await)).await.unwrap();
    assert_eq!(store.held_by_consumers(unread(21), 100).await.unwrap(), 0);
    assert_eq!(store.evict(unread(21), 100).await.unwrap(), 1);
    // And no longer than it may be held, nor for a consumer that is gone.
    for (at, removed) in [(30, false), (40, true)] {
        make(&store, "ann", "echo", "c", done(at, 1)).await;
        assert_eq!(store.evict(unread(at), 100).await.unwrap(), 0);
        let retention = if removed { unread(at) } else { unread(at + 1) };
        if removed {
            assert_eq!(store.held_by_consumers(retention, 100).await.unwrap(), 1);
            assert!(store.remove_consumer("projector").await.unwrap());
        }
        assert_eq!(store.held_by_consumers(retention, 100).await.unwrap(), 0);
        assert_eq!(store.evict(retention, 100).await.unwrap(), 1, "ended at {at}");
    }
}

pub(crate) async fn a_journal_line_that_is_too_large_is_refused(fixture: impl Fixture) {
    let store = fixture.open();
    let most = "x".repeat(JOURNAL_LINE_BYTES);
    store.journal(vec![line("hub.x", 1, &most)]).await.unwrap();
    let refused = store.journal(vec![line("hub.y", 1, "{}"), line("hub.z", 1, &format!("{most}x"))]).await;
    assert!(matches!(&refused, Err(StoreError::TooLarge { bytes: 65_537, .. })), "{refused:?}");
    assert_eq!(all(&store, Position::default()).await, ["hub.x"], "none of them was written");
}
