//! The event log of one task.

use switchboard_engine::ids::{Seq, TaskKey};
use switchboard_engine::store::EventRow;

use super::Reader;
use super::load::{EVENT_COLUMNS, event};
use crate::sqlite::columns::IdentifierText;
use crate::sqlite::event_lines::Fragments;
use crate::sqlite::query::optional_row;

impl Reader {
    /// Rows with events after `after`; stops once `max_bytes` are passed, but not before the first row.
    pub(crate) fn log(&self, key: TaskKey, after: Seq, max_bytes: usize) -> rusqlite::Result<Vec<EventRow>> {
        let after = i64::try_from(after.0).unwrap_or(i64::MAX - 1);
        let mut found = Vec::new();
        let mut bytes = 0;
        let Some((first_row, fragments)) = self.log_start(key)? else { return Ok(found) };
        if let Some(first) = first_row.map_or(Ok(None), |row| self.event(row, &fragments))?
            && i64::from(first.count) > after
        {
            bytes += first.events.len();
            found.push(first);
        }
        // The row to begin with may begin at or before `after` and still hold events after it.
        let sql = format!(
            "SELECT {EVENT_COLUMNS} FROM event WHERE task_key = ?1 AND first_seq > 1 AND first_seq >= coalesce((SELECT \
             max(first_seq) FROM event WHERE task_key = ?1 AND first_seq > 1 AND first_seq <= ?2 + 1), 0) ORDER BY first_seq"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut rows = statement.query((key.0, after))?;
        while (found.is_empty() || bytes <= max_bytes)
            && let Some(row) = rows.next()?
        {
            let row = event(row, &fragments)?;
            let last = row.first_seq.0.cast_signed() + i64::from(row.count) - 1;
            if last > after {
                bytes += row.events.len();
                found.push(row);
            }
        }
        Ok(found)
    }

    /// The key of a task's first event row, and what the lines of its events leave out.
    fn log_start(&self, key: TaskKey) -> rusqlite::Result<Option<(Option<i64>, Fragments)>> {
        let sql = "SELECT first_row, id, context FROM task WHERE key = ?1";
        optional_row(&self.connection, sql, [key.0], |row| {
            let (IdentifierText(id), IdentifierText(context)) = (row.get(1)?, row.get(2)?);
            Ok((row.get(0)?, Fragments::new(&id, &context)))
        })
    }
}
