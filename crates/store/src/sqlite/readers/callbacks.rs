//! Callbacks and the updates that wait.

use bytes::Bytes;
use rusqlite::OptionalExtension;
use switchboard_a2a::{TaskId, Timestamp};
use switchboard_engine::ids::TaskKey;
use switchboard_engine::store::callbacks::{CallbackRow, CallbackUpdate};

use super::Reader;
use super::unfinished::limit;
use crate::sqlite::columns::Identifier;

impl Reader {
    pub(crate) fn callback(&self, task: &TaskId) -> rusqlite::Result<Option<CallbackRow>> {
        let sql = "SELECT task_key, digest FROM callback JOIN task ON task.key = task_key WHERE task.id = ?1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let found = statement.query_row([Identifier::new(task.as_str())], |row| {
            Ok(CallbackRow { task_key: TaskKey(row.get(0)?), digest: row.get(1)? })
        });
        found.optional()
    }

    pub(crate) fn updates(&self, task: TaskKey, after: i64, max: usize) -> rusqlite::Result<Vec<CallbackUpdate>> {
        let sql = "SELECT number, id, body, at FROM callback_update INDEXED BY callback_update_waiting \
                   WHERE task_key = ?1 AND number > ?2 AND body IS NOT NULL ORDER BY number LIMIT ?3";
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map((task.0, after, limit(max)), |row| {
            let body: Vec<u8> = row.get(2)?;
            let (number, id, at) = (row.get(0)?, row.get(1)?, Timestamp(row.get(3)?));
            Ok(CallbackUpdate { number, id, body: Bytes::from(body), at })
        })?;
        rows.collect()
    }
}
