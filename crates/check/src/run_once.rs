//! Something that is found out once for all checks that need it. What was given up in the middle is not begun again:
//! every attempt costs the agent a message.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;
use tokio::sync::OnceCell;

/// What is known where finding out was given up.
pub(crate) trait Abandoned {
    fn abandoned() -> Self;
}

impl<T> Abandoned for Option<T> {
    fn abandoned() -> Self {
        None
    }
}

impl Abandoned for Result<Value, &'static str> {
    fn abandoned() -> Self {
        Err(TOO_LONG)
    }
}

/// Why nothing is known.
pub(crate) const TOO_LONG: &str = "it took too long to find out";

/// Something that is found out once.
#[derive(Debug)]
pub(crate) struct RunOnce<T> {
    cell: OnceCell<T>,
    has_begun: AtomicBool,
}

impl<T> Default for RunOnce<T> {
    fn default() -> Self {
        Self { cell: OnceCell::new(), has_begun: AtomicBool::new(false) }
    }
}

impl<T: Abandoned> RunOnce<T> {
    /// What is known, or is found out now.
    pub(crate) async fn get<F: Future<Output = T>>(&self, find: impl FnOnce() -> F) -> &T {
        let find = || async {
            match self.has_begun.swap(true, Ordering::Relaxed) {
                true => T::abandoned(),
                // What is found out this way needs other things that are: all together are too much for a stack.
                false => Box::pin(find()).await,
            }
        };
        self.cell.get_or_init(find).await
    }

    /// What is known.
    pub(crate) fn known(&self) -> Option<&T> {
        self.cell.get()
    }
}
