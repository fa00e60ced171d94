//! The exit of a child's process tree, for queue positions that are held until then.

use tokio::sync::watch;

use super::signal::ExitStatus;
use super::spawner::ended;

/// Whether the process tree of a child has exited: the child and everything it has started. Keeps nothing alive.
#[derive(Clone)]
pub struct TreeExit(pub(super) watch::Receiver<Option<ExitStatus>>);

impl TreeExit {
    /// Whether it has exited.
    #[must_use]
    pub fn has_exited(&self) -> bool {
        // Without a reaper there will be no further report.
        self.0.borrow().is_some() || self.0.has_changed().is_err()
    }

    /// Waits for the exit.
    pub async fn wait(mut self) {
        ended(&mut self.0).await;
    }
}
