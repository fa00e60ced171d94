//! Loads tasks: the row, the newest snapshot and the events after it, by public id or by key.

use bytes::Bytes;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, Row};
use switchboard_a2a::{TaskId, Timestamp};
use switchboard_engine::ids::{Epoch, Fence, Seq, TaskKey};
use switchboard_engine::store::lineage::{Ancestors, Lineage};
use switchboard_engine::store::{EventRow, LoadedTask, LoadedTaskWithin, RowState, TaskIdentity, TaskRow};

use super::Reader;
use super::names::Names;
use crate::sqlite::columns::{Identifier, IdentifierText, phase_from, state_from, via_from};
use crate::sqlite::event_lines::Fragments;
use crate::sqlite::node::Node;
use crate::sqlite::query::{optional_row, rows};

/// The columns that [`stored_task`] reads, in its order.
pub(crate) const TASK_COLUMNS: &str = "key, id, owner, agent, context, state, status_at, phase, fence, expires_at, \
     hidden, recoveries, last_seq, bytes, first_row, snapshot_row, webhooks, lease, parent, root, payer, via";
/// The columns that [`event`] reads, in its order.
pub(crate) const EVENT_COLUMNS: &str = "id, first_seq, count, epoch, blob";

/// Tasks that together have at most so many bytes are loaded with the page that they are on.
const LOADED_WITH_PAGE: u64 = 64 << 10;

/// A row with the keys of its first event row and of its snapshot.
struct StoredTask {
    row: TaskRow,
    first_row: Option<i64>,
    snapshot_row: Option<i64>,
}

impl Reader {
    pub(crate) fn row(&mut self, node: &Node, id: &TaskId) -> rusqlite::Result<Option<TaskRow>> {
        Ok(self.stored(node, id)?.map(|task| task.row))
    }

    pub(crate) fn load(&mut self, node: &Node, id: &TaskId) -> rusqlite::Result<Option<LoadedTask>> {
        match self.stored(node, id)? {
            Some(task) => self.loaded(task).map(Some),
            None => Ok(None),
        }
    }

    /// The same, unless it is larger: then nothing but its row is read.
    pub(crate) fn load_within(
        &mut self,
        node: &Node,
        id: &TaskId,
        max_bytes: u64,
    ) -> rusqlite::Result<Option<LoadedTaskWithin>> {
        match self.stored(node, id)? {
            Some(task) if task.row.bytes > max_bytes => Ok(Some(LoadedTaskWithin::Larger(Box::new(task.row)))),
            Some(task) => self.loaded(task).map(|loaded| Some(LoadedTaskWithin::Whole(Box::new(loaded)))),
            None => Ok(None),
        }
    }

    /// Those that are still there, until `max_bytes` are passed.
    pub(crate) fn load_some(
        &mut self,
        node: &Node,
        keys: &[TaskKey],
        max_bytes: usize,
    ) -> rusqlite::Result<Vec<LoadedTask>> {
        let sql = format!("SELECT {TASK_COLUMNS} FROM task WHERE key = ?1");
        let mut found = Vec::new();
        let mut bytes = 0;
        for key in keys {
            let Some(task) = self.task(node, &sql, [key.0])? else { continue };
            let loaded = self.loaded(task)?;
            bytes += loaded.size();
            found.push(loaded);
            if bytes > max_bytes {
                break;
            }
        }
        Ok(found)
    }

    /// The sizes of tasks that are there, and the tasks themselves if they are small.
    pub(super) fn load_page(
        &mut self,
        node: &Node,
        keys: impl Iterator<Item = i64>,
    ) -> rusqlite::Result<(Vec<u64>, Vec<LoadedTask>)> {
        let Self { connection, names } = self;
        let mut statement = connection.prepare_cached(&format!("SELECT {TASK_COLUMNS} FROM task WHERE key = ?1"))?;
        let tasks: Vec<StoredTask> = keys
            .map(|key| statement.query_row([key], |row| stored_task(connection, names, node, row)))
            .collect::<rusqlite::Result<_>>()?;
        drop(statement);
        let sizes: Vec<u64> = tasks.iter().map(|task| task.row.bytes).collect();
        if sizes.iter().sum::<u64>() > LOADED_WITH_PAGE {
            return Ok((sizes, Vec::new()));
        }
        let mut by_id = self.event_by_id()?;
        let loaded = tasks.into_iter().map(|task| self.loaded_by(&mut by_id, task)).collect::<rusqlite::Result<_>>()?;
        Ok((sizes, loaded))
    }

    fn stored(&mut self, node: &Node, id: &TaskId) -> rusqlite::Result<Option<StoredTask>> {
        let sql = format!("SELECT {TASK_COLUMNS} FROM task WHERE id = ?1");
        self.task(node, &sql, [Identifier::new(id.as_str())])
    }

    /// All rows that a query over [`TASK_COLUMNS`] finds.
    pub(crate) fn task_rows(&mut self, node: &Node, sql: &str, params: impl Params) -> rusqlite::Result<Vec<TaskRow>> {
        let Self { connection, names } = self;
        rows(connection, sql, params, |row| Ok(stored_task(connection, names, node, row)?.row))
    }

    /// The one row that a query over [`TASK_COLUMNS`] finds.
    fn task(&mut self, node: &Node, sql: &str, params: impl Params) -> rusqlite::Result<Option<StoredTask>> {
        let Self { connection, names } = self;
        optional_row(connection, sql, params, |row| stored_task(connection, names, node, row))
    }

    /// The newest snapshot and what came after it.
    fn loaded(&self, task: StoredTask) -> rusqlite::Result<LoadedTask> {
        self.loaded_by(&mut self.event_by_id()?, task)
    }

    /// The same with a statement of [`Self::event_by_id`]: to find it again for each task of a page costs as much as to
    /// run it.
    fn loaded_by(&self, by_id: &mut CachedStatement<'_>, task: StoredTask) -> rusqlite::Result<LoadedTask> {
        let snapshot = match task.snapshot_row {
            Some(row) => self.snapshot(row)?,
            None => None,
        };
        let as_of = snapshot.as_ref().map_or(Seq(0), |(seq, _, _)| *seq);
        let fragments = Fragments::new(task.row.task.id.as_str(), task.row.task.context.as_str());
        let mut events = Vec::new();
        if as_of == Seq(0)
            && let Some(first_row) = task.first_row
        {
            events.extend(by_id.query_row([first_row], |row| event(row, &fragments)).optional()?);
        }
        let read = events.last().map_or(as_of, |first: &EventRow| Seq(u64::from(first.count)));
        if read != task.row.last_seq {
            self.later_events(task.row.key, as_of, &fragments, &mut events)?;
        }
        Ok(LoadedTask { row: task.row, snapshot, events })
    }

    fn snapshot(&self, row: i64) -> rusqlite::Result<Option<(Seq, Epoch, Bytes)>> {
        let sql = "SELECT first_seq, count, epoch, snapshot FROM event WHERE id = ?1 AND snapshot IS NOT NULL";
        optional_row(&self.connection, sql, [row], |row| {
            let last = row.get::<_, i64>(0)? + row.get::<_, i64>(1)? - 1;
            let bytes: Vec<u8> = row.get(3)?;
            Ok((Seq(last.cast_unsigned()), Epoch(row.get::<_, i64>(2)?.cast_unsigned()), Bytes::from(bytes)))
        })
    }

    /// One event row.
    pub(crate) fn event(&self, row: i64, fragments: &Fragments) -> rusqlite::Result<Option<EventRow>> {
        self.event_by_id()?.query_row([row], |row| event(row, fragments)).optional()
    }

    fn event_by_id(&self) -> rusqlite::Result<CachedStatement<'_>> {
        self.connection.prepare_cached(&format!("SELECT {EVENT_COLUMNS} FROM event WHERE id = ?1"))
    }

    fn later_events(
        &self,
        key: TaskKey,
        after: Seq,
        fragments: &Fragments,
        events: &mut Vec<EventRow>,
    ) -> rusqlite::Result<()> {
        // A snapshot is as of the last event of its row, so no row lies across it.
        let sql = format!(
            "SELECT {EVENT_COLUMNS} FROM event WHERE task_key = ?1 AND first_seq > 1 AND first_seq > ?2 ORDER BY first_seq"
        );
        events.extend(rows(&self.connection, &sql, (key.0, after.0.cast_signed()), |row| event(row, fragments))?);
        Ok(())
    }
}

/// An event row out of [`EVENT_COLUMNS`], with the lines of its events whole. The only reader of their stored form.
pub(crate) fn event(row: &Row<'_>, fragments: &Fragments) -> rusqlite::Result<EventRow> {
    let events = fragments.splice_in(row.get(4)?);
    Ok(EventRow {
        row: row.get(0)?,
        first_seq: Seq(row.get::<_, i64>(1)?.cast_unsigned()),
        count: row.get(2)?,
        epoch: Epoch(row.get::<_, i64>(3)?.cast_unsigned()),
        events: Bytes::from(events),
    })
}

fn stored_task(connection: &Connection, names: &mut Names, node: &Node, row: &Row<'_>) -> rusqlite::Result<StoredTask> {
    let IdentifierText(id) = row.get(1)?;
    let IdentifierText(context) = row.get(4)?;
    let task = TaskIdentity {
        id: id.into(),
        owner: names.text(connection, row.get(2)?)?.into(),
        agent: names.text(connection, row.get(3)?)?.into(),
        context: context.into(),
        lineage: lineage(connection, names, row, 18)?,
    };
    let state = RowState {
        state: state_from(5, row.get(5)?)?,
        status_at: Timestamp(row.get(6)?),
        phase: phase_from(7, row.get(7)?)?,
        fence: Fence(row.get::<_, i64>(8)?.cast_unsigned()),
        expires_at: row.get::<_, Option<i64>>(9)?.map(Timestamp),
        hidden: row.get(10)?,
        recoveries: row.get(11)?,
    };
    let row_of_task = TaskRow {
        key: TaskKey(row.get(0)?),
        task,
        state,
        holder: node.holder(row.get(17)?),
        last_seq: Seq(row.get::<_, i64>(12)?.cast_unsigned()),
        bytes: row.get::<_, i64>(13)?.cast_unsigned(),
        watched: row.get::<_, i64>(16)? > 0,
    };
    Ok(StoredTask { row: row_of_task, first_row: row.get(14)?, snapshot_row: row.get(15)? })
}

/// The lineage out of the columns parent, root, payer and via, beginning at a column.
pub(crate) fn lineage(
    connection: &Connection,
    names: &mut Names,
    row: &Row<'_>,
    column: usize,
) -> rusqlite::Result<Lineage> {
    let parent = row.get::<_, Option<i64>>(column)?.map(TaskKey);
    let root = row.get::<_, Option<i64>>(column + 1)?.map(TaskKey);
    let payer = match row.get(column + 2)? {
        Some(payer) => Some(names.text(connection, payer)?.into()),
        None => None,
    };
    let via = via_from(column + 3, row.get(column + 3)?)?;
    let ancestors = parent.zip(root).map(|(parent, root)| Ancestors { parent, root });
    Ok(Lineage { ancestors, payer, via })
}
