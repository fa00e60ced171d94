//! What is left of a child, for those who must not go on before nothing is.

use tokio::sync::watch;

use super::signal::ExitStatus;
use super::spawner::ended;

/// Knows whether anything of a child is left: itself, or what it has started. Keeps nothing alive.
#[derive(Clone)]
pub struct TreeExit(watch::Receiver<Option<ExitStatus>>);

impl TreeExit {
    pub(super) fn new(done: watch::Receiver<Option<ExitStatus>>) -> Self {
        Self(done)
    }

    /// Whether nothing is left.
    #[must_use]
    pub fn has_exited(&self) -> bool {
        // Without an reaper nobody will ever say more.
        self.0.borrow().is_some() || self.0.has_changed().is_err()
    }

    /// Waits until nothing is left.
    pub async fn wait(mut self) {
        ended(&mut self.0).await;
    }

    /// Those of no child, and what makes them go.
    #[cfg(test)]
    pub(crate) fn detached() -> (impl FnOnce(), Self) {
        let (sender, receiver) = watch::channel(None);
        let end = move || {
            sender.send_replace(Some(ExitStatus::default()));
        };
        (end, Self(receiver))
    }
}
