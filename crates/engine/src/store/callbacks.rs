//! The `CallbackStore` trait. A callback is an address of a task at which a remote agent reports work done elsewhere.
//!
//! Updates are kept in order until the task's turn has taken them. Their names are kept longer, for deduplication. All of
//! it goes with the task.

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
    /// As many wait as may, by number or by size.
    Full,
}

/// An update that waits.
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

    /// Keeps an update, unless one of its name is among the newest 1,000, `max` of them wait already, or the bodies that
    /// wait would be more than `max_bytes` with this one; one alone may have any size. Refused with
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

    /// Updates after a number that were not taken yet, in order.
    fn updates(&self, task: TaskKey, after: i64, max: usize) -> StoreFuture<Vec<CallbackUpdate>>;

    /// Drops the bodies of updates up to a number.
    fn take_updates(&self, task: TaskKey, up_to: i64) -> StoreFuture<()>;
}
