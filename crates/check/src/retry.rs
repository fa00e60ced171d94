//! Patience with agents that have no time at the moment: they are asked again when they say, and what they never find time
//! for is no fault of theirs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::HeaderMap;
use http::header::RETRY_AFTER;

/// How often one question is asked.
const TRIES: u32 = 5;
/// How long is waited where the agent does not say, and at least.
const UNSAID: Duration = Duration::from_millis(500);
const SHORTEST: Duration = Duration::from_millis(20);

/// Whether an answer says no more than that there is no time.
pub(crate) fn is_busy(status: u16) -> bool {
    matches!(status, 429 | 503)
}

/// Whether the agent has ever found time since it was busy.
#[derive(Debug, Default)]
pub(crate) struct RetryPolicy {
    is_hopeless: AtomicBool,
}

impl RetryPolicy {
    /// How long to wait before the same is asked again; none if it is not. Whoever has been asked often enough in vain is
    /// asked everything else just once.
    pub(crate) fn wait(&self, status: u16, headers: &HeaderMap, tries: u32, patience: Duration) -> Option<Duration> {
        if !is_busy(status) {
            self.is_hopeless.store(false, Ordering::Relaxed);
            return None;
        }
        let said = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
        let wait = said.map_or(UNSAID, Duration::from_secs).max(SHORTEST);
        if tries >= TRIES || wait > patience {
            self.is_hopeless.store(true, Ordering::Relaxed);
        }
        if self.is_hopeless.load(Ordering::Relaxed) { None } else { Some(wait) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_says_when_and_is_not_asked_for_ever() {
        let (retry, patience) = (RetryPolicy::default(), Duration::from_secs(2));
        let after = |text: &str| HeaderMap::from_iter([(RETRY_AFTER, text.parse().unwrap())]);
        assert_eq!(retry.wait(200, &HeaderMap::new(), 1, patience), None);
        assert_eq!(retry.wait(429, &after("1"), 1, patience), Some(Duration::from_secs(1)));
        assert_eq!(retry.wait(503, &after("Fri, 31 Dec 1999 23:59:59 GMT"), 1, patience), Some(UNSAID));
        assert_eq!(retry.wait(503, &HeaderMap::new(), TRIES, patience), None);
        assert_eq!(retry.wait(503, &HeaderMap::new(), 1, patience), None, "it has been asked often enough");
        assert_eq!(retry.wait(200, &HeaderMap::new(), 1, patience), None);
        assert_eq!(retry.wait(503, &HeaderMap::new(), 1, patience), Some(UNSAID));
        assert_eq!(retry.wait(429, &after("3600"), 1, patience), None, "nobody waits for an hour");
    }
}
