//! Callbacks in SQLite: the updates of a callback receiver, stored in a group commit with appends.

use bytes::Bytes;
use switchboard_a2a::{TaskId, Timestamp};
use switchboard_engine::ids::TaskKey;
use switchboard_engine::store::callbacks::{CallbackRow, CallbackStore, CallbackUpdate, UpdateAdded};
use switchboard_engine::store::{StoreError, StoreFuture};

use super::SqliteStore;
use super::columns::Identifier;
use super::query::{limit, optional_row, rows};
use super::writer::callbacks::Bounds;

impl CallbackStore for SqliteStore {
    fn open_callback(&self, task: &TaskId, digest: [u8; 32]) -> StoreFuture<bool> {
        let task = task.clone();
        let sql = "INSERT INTO callback (task_key, digest, next_number) SELECT key, ?2, 1 FROM task WHERE id = ?1 \
                   ON CONFLICT (task_key) DO UPDATE SET digest = excluded.digest";
        self.queue.write_shared(0, move |session| {
            Ok(session.execute(sql, (Identifier::new(task.as_str()), &digest[..]))? > 0)
        })
    }

    fn callback(&self, task: &TaskId) -> StoreFuture<Option<CallbackRow>> {
        let task = task.clone();
        self.read(move |reader| {
            let sql = "SELECT task_key, digest FROM callback JOIN task ON task.key = task_key WHERE task.id = ?1";
            optional_row(&reader.connection, sql, [Identifier::new(task.as_str())], |row| {
                Ok(CallbackRow { task_key: TaskKey(row.get(0)?), digest: row.get(1)? })
            })
        })
    }

    fn add_update(
        &self,
        task: TaskKey,
        id: &str,
        body: Bytes,
        at: Timestamp,
        max: usize,
        max_bytes: u64,
    ) -> StoreFuture<UpdateAdded> {
        let id = id.to_owned();
        let added = self.queue.write_shared(body.len(), move |session| {
            session.add_update(task, &id, &body, at, Bounds { updates: max, bytes: max_bytes })
        });
        Box::pin(async move { added.await?.ok_or(StoreError::Missing) })
    }

    fn newest_updates(&self, task: TaskKey, max: usize) -> StoreFuture<Vec<CallbackUpdate>> {
        self.read(move |reader| {
            let sql = "SELECT number, id, body, at FROM callback_update INDEXED BY callback_update_waiting \
                       WHERE task_key = ?1 AND body IS NOT NULL ORDER BY number DESC LIMIT ?2";
            rows(&reader.connection, sql, (task.0, limit(max)), |row| {
                let body = Bytes::from(row.get::<_, Vec<u8>>(2)?);
                Ok(CallbackUpdate { number: row.get(0)?, id: row.get(1)?, body, at: Timestamp(row.get(3)?) })
            })
        })
    }
}
