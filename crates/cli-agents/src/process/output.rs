//! The output of a child process, and its limits.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

use crate::adapters::Exit;

/// One line or event of a child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A line of standard output, without its end. Bytes that are no UTF-8 have been replaced.
    Line(String),
    /// A line that was too long, and is left out.
    TooLong { bytes: u64 },
    /// The beginning of a line, and silence since. Comes again when the line has grown, and in the line when it ends.
    Pause(String),
    /// The output limit is exceeded. Nothing is read any more: end it.
    Flood,
    /// Its whole process tree has exited.
    Ended(Exit),
}

/// How much of a child's output is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLimits {
    /// The longest line of standard output, in bytes.
    pub line: usize,
    /// How much is kept of the end of standard error, in bytes.
    pub stderr: usize,
    /// How much there may be in all, standard error included, in bytes.
    pub output: u64,
}

/// The output limit, shared by the readers of standard output and standard error.
#[derive(Debug)]
pub(super) struct OutputBudget {
    limit: u64,
    used: AtomicU64,
    over: Notify,
}

impl OutputBudget {
    pub(super) fn new(limit: u64) -> Self {
        Self { limit, used: AtomicU64::new(0), over: Notify::new() }
    }

    pub(super) fn spend(&self, bytes: usize) {
        let bytes = bytes as u64;
        let before = self.used.fetch_add(bytes, Ordering::AcqRel);
        if before <= self.limit && before.saturating_add(bytes) > self.limit {
            self.over.notify_one();
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.used.load(Ordering::Acquire) > self.limit
    }

    /// Waits until there is too much. For one waiter.
    pub(super) async fn over(&self) {
        while !self.is_over() {
            self.over.notified().await;
        }
    }
}
