//! What is left of a child, for those who must not go on before nothing is.

use tokio::sync::watch;

use super::signal::Status;
use super::spawner::ended;

/// Knows whether anything of a child is left: itself, or what it has started. Keeps nothing alive.
#[derive(Clone)]
pub struct Remains(watch::Receiver<Option<Status>>);

impl Remains {
    pub(super) fn new(done: watch::Receiver<Option<Status>>) -> Self {
        Self(done)
    }

    /// Whether nothing is left.
    #[must_use]
    pub fn are_gone(&self) -> bool {
        // Without an undertaker nobody will ever say more.
        self.0.borrow().is_some() || self.0.has_changed().is_err()
    }

    /// Waits until nothing is left.
    pub async fn gone(mut self) {
        ended(&mut self.0).await;
    }

    /// Those of no child, and what makes them go.
    #[cfg(test)]
    pub(crate) fn of_nobody() -> (impl FnOnce(), Self) {
        let (sender, receiver) = watch::channel(None);
        let end = move || {
            sender.send_replace(Some(Status::default()));
        };
        (end, Self(receiver))
    }
}
