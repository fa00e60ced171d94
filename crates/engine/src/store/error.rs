//! Why a store refuses or fails a call. Most refusals are the optimistic lock's: the writer catches up with the log and
//! decides again.

use switchboard_a2a::Timestamp;

/// Why the store did not do it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// A turn of the task was claimed since the writer looked.
    #[error("another turn owns the task")]
    Fenced,
    /// Nothing follows the terminal event.
    #[error("the task has already ended")]
    Ended,
    /// A claim of a turn that another live node holds.
    #[error("another node holds the task's turn")]
    Held,
    /// The log has grown since the writer looked.
    #[error("the task has changed since it was read")]
    Stale,
    /// The task is not there (any more).
    #[error("no such task")]
    Missing,
    /// The idempotency key was taken by another send in the meantime.
    #[error("the idempotency key is already used")]
    KeyTaken,
    /// The task has as many webhooks as it may have.
    #[error("a task has at most {max} webhooks")]
    TooManyWebhooks {
        /// How many that is.
        max: usize,
    },
    /// As many tasks were started as may be.
    #[error("{counted} at most {max} tasks ({setting})")]
    TreeFull {
        /// What has so many.
        counted: &'static str,
        /// How many that is.
        max: usize,
        /// The setting that says so.
        setting: &'static str,
    },
    /// An earlier append has taken the cooldown.
    #[error("{key} cools down until {until}, try again then")]
    CoolingDown {
        /// Of what.
        key: String,
        /// When it is over.
        until: Timestamp,
    },
    /// Another process has taken the consumer, or it is not there.
    #[error("another process reads as the consumer {0:?}")]
    ConsumerTaken(String),
    /// The registration has another version than the writer knows.
    #[error("the registration has version {current} now")]
    VersionConflict {
        /// 0 if there is none.
        current: u64,
    },
    /// It is larger than it may be.
    #[error("{what} has {bytes} bytes, which is more than {max}")]
    TooLarge {
        /// What is.
        what: String,
        /// How large it is.
        bytes: usize,
        /// How large it may be.
        max: usize,
    },
    /// The store is too far behind to take new work.
    #[error("the store is {delay_ms} ms behind, try again")]
    Overloaded {
        /// How far behind it is.
        delay_ms: u64,
    },
    /// The disk or file said no; nothing of the append was written.
    #[error("the store cannot write: {0}")]
    Failed(String),
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    /// Whether the writer did not know the task as it is: it catches up with the log and decides again.
    pub(crate) fn is_behind(&self) -> bool {
        matches!(self, Self::Fenced | Self::Ended | Self::Stale | Self::Held)
    }
}
