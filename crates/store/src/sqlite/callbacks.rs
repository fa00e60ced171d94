//! Callbacks in SQLite. What comes in shares its commits with appends.

use std::sync::Arc;

use bytes::Bytes;
use switchboard_a2a::{TaskId, Timestamp};
use switchboard_engine::ids::TaskKey;
use switchboard_engine::store::callbacks::{Added, CallbackRow, CallbackStore, CallbackUpdate};
use switchboard_engine::store::{StoreError, StoreFuture};

use super::writer::callbacks::Bounds;
use super::{SqliteStore, write_shared};

impl CallbackStore for SqliteStore {
    fn open_callback(&self, task: &TaskId, digest: [u8; 32]) -> StoreFuture<bool> {
        let task = task.clone();
        self.write_shared(move |session| session.open_callback(&task, &digest))
    }

    fn callback(&self, task: &TaskId) -> StoreFuture<Option<CallbackRow>> {
        let task = task.clone();
        self.read(move |reader| reader.callback(&task))
    }

    fn add_update(
        &self,
        task: TaskKey,
        id: &str,
        body: Bytes,
        at: Timestamp,
        max: usize,
        max_bytes: u64,
    ) -> StoreFuture<Added> {
        let (queue, id) = (Arc::clone(&self.queue), id.to_owned());
        let added = write_shared(queue, body.len(), move |session| {
            session.add_update(task, &id, &body, at, Bounds { updates: max, bytes: max_bytes })
        });
        Box::pin(async move { added.await?.ok_or(StoreError::Missing) })
    }

    fn updates(&self, task: TaskKey, after: i64, max: usize) -> StoreFuture<Vec<CallbackUpdate>> {
        self.read(move |reader| reader.updates(task, after, max))
    }

    fn take_updates(&self, task: TaskKey, up_to: i64) -> StoreFuture<()> {
        self.write_shared(move |session| session.take_updates(task, up_to))
    }
}
