//! A value that several checks share and that is determined once. An attempt that timed out is not repeated, because
//! every attempt costs the agent a message.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::OnceCell;

/// Why the value of an abandoned attempt is not known.
pub(crate) const TOO_LONG: &str = "it took too long to find out";

#[derive(Debug)]
pub(crate) struct RunOnce<T> {
    cell: OnceCell<T>,
    has_begun: AtomicBool,
    /// The value after an attempt that was abandoned.
    abandoned: fn() -> T,
}

impl<T> RunOnce<T> {
    pub(crate) fn new(abandoned: fn() -> T) -> Self {
        Self { cell: OnceCell::new(), has_begun: AtomicBool::new(false), abandoned }
    }

    pub(crate) async fn get<F: Future<Output = T>>(&self, find: impl FnOnce() -> F) -> &T {
        let find = || async {
            match self.has_begun.swap(true, Ordering::Relaxed) {
                true => (self.abandoned)(),
                // Boxed: one value needs others that are determined the same way, too much for a stack together.
                false => Box::pin(find()).await,
            }
        };
        self.cell.get_or_init(find).await
    }

    /// The value if it is determined already.
    pub(crate) fn known(&self) -> Option<&T> {
        self.cell.get()
    }
}
