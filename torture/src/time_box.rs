//! A time box: how long a test goes on beginning new rounds. A round that has begun is always finished and judged, so a slow
//! machine does fewer of them, and the judgement of each stays the same.

use std::time::{Duration, Instant};

/// When to begin no more rounds; never, if there is no time box.
#[derive(Clone, Copy, Debug)]
pub struct TimeBox {
    begun: Instant,
    length: Option<Duration>,
}

impl TimeBox {
    /// Begins now.
    #[must_use]
    pub fn begin(length: Option<Duration>) -> Self {
        Self { begun: Instant::now(), length }
    }

    /// Whether all of its time is used.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.length.is_some_and(|length| self.begun.elapsed() >= length)
    }
}
