//! The `CallbackStore` trait. A callback is an address of a task at which a remote agent reports work done elsewhere.
//!
//! The newest updates are kept. The names of older ones are kept longer, for deduplication. All of it goes with the task.

use bytes::Bytes;
use switchboard_a2a::{TaskId, Timestamp};

use super::StoreFuture;
use crate::ids::TaskKey;

/// A task's callback as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallbackRow {
    /// The store's name of the task.
    pub task_key: TaskKey,
    /// The digest of what a sender has to know.
    pub digest: [u8; 32],
}

/// What became of an update that came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateAdded {
    /// It is kept, under this number: 1, 2, 3 … per task.
    New(i64),
    /// One of that name came before.
    Known,
}

/// An update that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallbackUpdate {
    pub number: i64,
    /// What its sender called it.
    pub id: String,
    pub body: Bytes,
    pub at: Timestamp,
}

/// Durable callbacks. Implementations are cheap to share and safe to call from any thread.
pub trait CallbackStore: Send + Sync + 'static {
    /// Opens the callback of a task, or gives it another digest; says whether there is such a task.
    fn open_callback(&self, task: &TaskId, digest: [u8; 32]) -> StoreFuture<bool>;

    /// The callback of a task.
    fn callback(&self, task: &TaskId) -> StoreFuture<Option<CallbackRow>>;

    /// Keeps an update, unless one of its name is among the newest 1,000. Only the newest keep their bodies: `max` of them at
    /// most, and not more than `max_bytes` together; this one alone may have any size. Refused with
    /// [`StoreError::Missing`](super::StoreError::Missing) if the task has no callback (any more).
    fn add_update(
        &self,
        task: TaskKey,
        id: &str,
        body: Bytes,
        at: Timestamp,
        max: usize,
        max_bytes: u64,
    ) -> StoreFuture<UpdateAdded>;

    /// The updates that are kept, the newest first.
    fn newest_updates(&self, task: TaskKey, max: usize) -> StoreFuture<Vec<CallbackUpdate>>;
}
