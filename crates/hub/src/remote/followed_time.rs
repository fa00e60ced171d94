//! How long a remote task was followed. It counts against the deadline of a task over all processes that follow it.

use std::sync::Arc;
use std::time::Duration;

use switchboard_engine::ShutdownSave;

use super::saved::{Attached, Saved};
use super::turn::RemoteTurn;

/// How long a remote task was followed before, and since.
#[derive(Clone, Copy)]
pub(super) struct FollowedTime {
    pub(super) before: Duration,
    pub(super) since: Duration,
}

impl FollowedTime {
    /// In all up to now, in milliseconds.
    pub(super) fn millis(self, now: Duration) -> u64 {
        let followed = self.before + now.saturating_sub(self.since);
        u64::try_from(followed.as_millis()).unwrap_or(u64::MAX)
    }
}

impl RemoteTurn<'_> {
    /// A server that is stopped in order waits for no remote task, and saves up to when it was followed.
    pub(super) fn save_time_at_shutdown(&self, attached: &Attached, followed: FollowedTime) -> ShutdownSave {
        let (attached, clock) = (attached.clone(), Arc::clone(&self.parts.clock));
        self.task.save_at_shutdown(move || {
            let spent_ms = followed.millis(clock.monotonic());
            Saved::Attached(Attached { spent_ms, ..attached.clone() })
        })
    }
}
