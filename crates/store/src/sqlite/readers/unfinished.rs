//! Tasks for recovery and for deadlines: unfinished ones without a running turn, live ones, expired ones.

use switchboard_a2a::Timestamp;
use switchboard_engine::ids::TaskKey;
use switchboard_engine::store::TaskRow;

use super::Reader;
use super::load::TASK_COLUMNS;
use crate::sqlite::query::limit;

impl Reader {
    /// Queued and interrupted tasks, and running ones whose lease is of an earlier start. The lock on the data directory
    /// proves that no process of an earlier start is alive.
    pub(crate) fn unfinished(&mut self, start: i64, after: TaskKey, max: usize) -> rusqlite::Result<Vec<TaskRow>> {
        let sql = format!(
            "SELECT {TASK_COLUMNS} FROM task INDEXED BY task_live \
             WHERE phase < 4 AND phase < 3 AND key > ?1 AND (phase <> 1 OR lease IS NOT ?2) ORDER BY key LIMIT ?3"
        );
        self.task_rows(&sql, (after.0, start, limit(max)))
    }

    /// Tasks in no terminal state.
    pub(crate) fn live(&mut self, after: TaskKey, max: usize) -> rusqlite::Result<Vec<TaskRow>> {
        let sql = format!(
            "SELECT {TASK_COLUMNS} FROM task INDEXED BY task_live WHERE phase < 4 AND key > ?1 ORDER BY key LIMIT ?2"
        );
        self.task_rows(&sql, (after.0, limit(max)))
    }

    pub(crate) fn expired(&mut self, now: Timestamp, max: usize) -> rusqlite::Result<Vec<TaskRow>> {
        let sql = format!(
            "SELECT {TASK_COLUMNS} FROM task INDEXED BY task_expiring \
             WHERE expires_at IS NOT NULL AND phase < 4 AND expires_at <= ?1 ORDER BY expires_at, key LIMIT ?2"
        );
        self.task_rows(&sql, (now.0, limit(max)))
    }
}
