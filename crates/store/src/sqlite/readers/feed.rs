//! All rows in one order: the events of every task and the journal.

use std::cmp::Reverse;
use std::sync::Arc;

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, Row};
use switchboard_a2a::Timestamp;
use switchboard_engine::ids::{Epoch, Seq, TaskKey};
use switchboard_engine::store::feed::{
    FeedContent, FeedCursor, FeedPage, FeedRow, FeedStart, JournalLine, Located, LogsQuery, Position, WrittenOnce,
};
use switchboard_engine::store::{EventRow, TaskIdentity};

use super::Reader;
use super::load::lineage;
use super::names::Names;
use crate::sqlite::columns::IdentifierText;
use crate::sqlite::event_lines::Fragments;
use crate::sqlite::open::meta;
use crate::sqlite::query::{Merged, limit, optional_row};

/// Parameters: the row to begin at, the event of it that was read last, the limit. A journal line has only the first columns.
pub(crate) const ALL_ROWS: &str = "SELECT event.id, event.epoch, NULL, NULL, NULL, NULL, NULL, event.blob, event.task_key, \
     event.first_seq, event.count, task.id, task.owner, task.agent, task.context, task.hidden, task.parent, task.root, \
     task.payer, task.via FROM event CROSS JOIN task ON task.key = event.task_key \
     WHERE event.id >= ?1 AND (event.id > ?1 OR event.first_seq + event.count - 1 > ?2) \
     UNION ALL SELECT id, epoch, at, owner, task, topic, 1, payload, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, \
     NULL, NULL, NULL, NULL FROM journal WHERE id > ?1 ORDER BY 1 LIMIT ?3";

/// The same columns of one row of a task.
const EVENT_ROW: &str = "SELECT event.id, event.epoch, NULL, NULL, NULL, NULL, NULL, event.blob, event.task_key, \
     event.first_seq, event.count, task.id, task.owner, task.agent, task.context, task.hidden, task.parent, task.root, \
     task.payer, task.via FROM event CROSS JOIN task ON task.key = event.task_key WHERE event.id = ?1";

/// The rows of a log but its first one, and that one. Parameters: the task, the first and the last row.
const LATER_IDS: &str = "SELECT id FROM event INDEXED BY event_task \
     WHERE task_key = ?1 AND first_seq > 1 AND id BETWEEN ?2 AND ?3 ORDER BY first_seq";
const FIRST_ID: &str = "SELECT first_row FROM task WHERE key = ?1 AND first_row BETWEEN ?2 AND ?3";

impl Reader {
    /// Rows after a position; stops once `max_bytes` are passed, but not before the first row.
    pub(crate) fn feed(&mut self, after: Position, max_rows: usize, max_bytes: usize) -> rusqlite::Result<FeedPage> {
        let Self { connection, names } = self;
        let evicted_to = evicted_to(connection)?.position;
        let mut statement = connection.prepare_cached(ALL_ROWS)?;
        let mut found = statement.query((after.row, after.seq.0.cast_signed(), limit(max_rows)))?;
        let mut rows = Vec::new();
        let mut bytes = 0;
        while (rows.is_empty() || bytes <= max_bytes)
            && let Some(row) = found.next()?
        {
            let row = feed_row(connection, names, row)?;
            bytes += row.size();
            rows.push(row);
        }
        Ok(FeedPage { rows, evicted_to })
    }

    /// Rows of some tasks; stops once `max_bytes` are passed, but not before the first row.
    pub(crate) fn logs(&mut self, query: &LogsQuery) -> rusqlite::Result<Vec<FeedRow>> {
        let Self { connection, names } = self;
        let mut statement = connection.prepare_cached(EVENT_ROW)?;
        let mut rows = Vec::new();
        let mut bytes = 0;
        for id in log_ids(connection, query)? {
            if rows.len() >= query.max_rows || bytes > query.max_bytes {
                break;
            }
            let found = statement.query_row([id], |row| feed_row(connection, names, row)).optional()?;
            // The row of the position itself may have been read to its end.
            let Some(row) = found.filter(|row| row.cursor().position > query.after) else { continue };
            bytes += row.size();
            rows.push(row);
        }
        Ok(rows)
    }

    /// The place where a reader begins, and whether it has missed rows.
    pub(crate) fn locate(&self, start: FeedStart) -> rusqlite::Result<Located> {
        let evicted = evicted_to(&self.connection)?;
        let at = |cursor, is_gap| Located { cursor, is_gap, evicted_to: evicted.position };
        let cursor = match start {
            FeedStart::Oldest => return Ok(at(FeedCursor::BEGINNING, false)),
            FeedStart::Now => {
                // What was deleted may be newer than all that is left.
                let newest = self.newest(i64::MAX, i64::MAX)?.filter(|newest| newest.position > evicted.position);
                return Ok(at(newest.unwrap_or(evicted), false));
            }
            FeedStart::After(cursor) => cursor,
        };
        let FeedCursor { epoch, position } = cursor;
        let is_known = match self.epoch_of(position.row)? {
            Some(found) => found == epoch,
            // Its row is gone, but it was the last to go, so none after it is.
            None => evicted == of_row(cursor) || position == FeedCursor::BEGINNING.position,
        };
        if is_known {
            return Ok(at(cursor, position.row < evicted.position.row));
        }
        // Numbers that were written after the cursor's row was lost may be the same again, so what is read goes on after
        // the last row that the reader can have seen.
        let seen = self.newest(position.row, epoch.0.cast_signed())?;
        Ok(at(seen.unwrap_or(FeedCursor::BEGINNING), true))
    }

    /// The end of the last row up to an id and an epoch.
    fn newest(&self, row: i64, epoch: i64) -> rusqlite::Result<Option<FeedCursor>> {
        let sql = "SELECT id, epoch, last FROM (SELECT id, epoch, first_seq + count - 1 AS last FROM event \
                   WHERE id <= ?1 AND epoch <= ?2 ORDER BY id DESC LIMIT 1) \
                   UNION ALL SELECT id, epoch, 0 FROM (SELECT id, epoch FROM journal WHERE id <= ?1 AND epoch <= ?2 \
                   ORDER BY id DESC LIMIT 1) ORDER BY 1 DESC LIMIT 1";
        optional_row(&self.connection, sql, (row, epoch), |row| {
            let seq = Seq(row.get::<_, i64>(2)?.cast_unsigned());
            let epoch = Epoch(row.get::<_, i64>(1)?.cast_unsigned());
            Ok(FeedCursor { epoch, position: Position { major: 0, row: row.get(0)?, seq } })
        })
    }

    fn epoch_of(&self, row: i64) -> rusqlite::Result<Option<Epoch>> {
        let sql = "SELECT epoch FROM event WHERE id = ?1 UNION ALL SELECT epoch FROM journal WHERE id = ?1";
        optional_row(&self.connection, sql, [row], |row| Ok(Epoch(row.get::<_, i64>(0)?.cast_unsigned())))
    }
}

/// The ids of the rows that a query asks for, in its order: one more than it wants, because the first may be read already.
/// They are in the index, so that no event is read for them.
fn log_ids(connection: &Connection, query: &LogsQuery) -> rusqlite::Result<Vec<i64>> {
    let wanted = query.max_rows.saturating_add(1);
    let (mut oldest, mut newest) = (Merged::<i64>::new(wanted), Merged::<Reverse<i64>>::new(wanted));
    let newest_sql = format!("{LATER_IDS} DESC");
    for task in &query.tasks {
        let bounds = (task.0, query.after.row, query.upto);
        if query.newest_first {
            newest.merge(connection, &newest_sql, bounds, |row| Ok(Reverse(row.get(0)?)))?;
            newest.merge(connection, FIRST_ID, bounds, |row| Ok(Reverse(row.get(0)?)))?;
        } else {
            oldest.merge(connection, FIRST_ID, bounds, |row| row.get(0))?;
            oldest.merge(connection, LATER_IDS, bounds, |row| row.get(0))?;
        }
    }
    Ok(if query.newest_first { newest.first.into_iter().map(|Reverse(id)| id).collect() } else { oldest.first })
}

/// A cursor without how much of its row was read.
fn of_row(cursor: FeedCursor) -> FeedCursor {
    FeedCursor { position: Position { seq: Seq(0), ..cursor.position }, ..cursor }
}

/// The greatest row that was deleted, with its epoch.
pub(crate) fn evicted_to(connection: &Connection) -> rusqlite::Result<FeedCursor> {
    let row = meta(connection, "evicted_to")?.unwrap_or(0);
    let epoch = Epoch(meta(connection, "evicted_epoch")?.unwrap_or(0).cast_unsigned());
    Ok(FeedCursor { epoch, position: Position { major: 0, row, seq: Seq(0) } })
}

fn feed_row(connection: &Connection, names: &mut Names, row: &Row<'_>) -> rusqlite::Result<FeedRow> {
    let (id, epoch) = (row.get(0)?, Epoch(row.get::<_, i64>(1)?.cast_unsigned()));
    let body: Vec<u8> = row.get(7)?;
    let content = match row.get::<_, Option<i64>>(8)? {
        None => FeedContent::Journal(journal_line(connection, names, row, body.into())?),
        Some(key) => {
            let IdentifierText(task) = row.get(11)?;
            let IdentifierText(context) = row.get(14)?;
            let task = TaskIdentity {
                id: task.into(),
                owner: names.text(connection, row.get(12)?)?.into(),
                agent: names.text(connection, row.get(13)?)?.into(),
                context: context.into(),
                lineage: lineage(connection, names, row, 16)?,
            };
            let first_seq = Seq(row.get::<_, i64>(9)?.cast_unsigned());
            let lines = Fragments::new(task.id.as_str(), task.context.as_str()).splice_in(body);
            let events = EventRow { row: id, first_seq, count: row.get(10)?, epoch, events: lines.into() };
            let task = Arc::new(task);
            FeedContent::Events {
                key: TaskKey(key),
                task,
                hidden: row.get(15)?,
                events,
                written: WrittenOnce::default(),
            }
        }
    };
    Ok(FeedRow { major: 0, row: id, epoch, content })
}

fn journal_line(
    connection: &Connection,
    names: &mut Names,
    row: &Row<'_>,
    payload: Bytes,
) -> rusqlite::Result<JournalLine> {
    let owner = match row.get(3)? {
        Some(owner) => Some(names.text(connection, owner)?.into()),
        None => None,
    };
    let task = row.get::<_, Option<IdentifierText>>(4)?.map(|IdentifierText(id)| id.into());
    Ok(JournalLine { at: Timestamp(row.get(2)?), owner, task, topic: row.get(5)?, payload })
}
