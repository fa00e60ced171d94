//! The retry policy for overloaded agents (429 and 503): `Retry-After` is honoured, and overload is no failed check.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::HeaderMap;
use http::header::RETRY_AFTER;

/// How often one request is sent.
const MAX_ATTEMPTS: u32 = 5;
/// The wait without `Retry-After`, and the shortest one.
const DEFAULT_WAIT: Duration = Duration::from_millis(500);
const MIN_WAIT: Duration = Duration::from_millis(20);

pub(crate) fn is_overloaded(status: u16) -> bool {
    matches!(status, 429 | 503)
}

#[derive(Debug, Default)]
pub(crate) struct RetryPolicy {
    is_exhausted: AtomicBool,
}

impl RetryPolicy {
    /// The wait before the next attempt; none if there is none. After a request that used up its attempts, others get
    /// one attempt each until the agent answers again.
    pub(crate) fn wait(&self, status: u16, headers: &HeaderMap, attempt: u32, patience: Duration) -> Option<Duration> {
        if !is_overloaded(status) {
            self.is_exhausted.store(false, Ordering::Relaxed);
            return None;
        }
        let retry_after = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
        let wait = retry_after.map_or(DEFAULT_WAIT, Duration::from_secs).max(MIN_WAIT);
        if attempt >= MAX_ATTEMPTS || wait > patience {
            self.is_exhausted.store(true, Ordering::Relaxed);
        }
        if self.is_exhausted.load(Ordering::Relaxed) { None } else { Some(wait) }
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
        assert_eq!(retry.wait(503, &after("Fri, 31 Dec 1999 23:59:59 GMT"), 1, patience), Some(DEFAULT_WAIT));
        assert_eq!(retry.wait(503, &HeaderMap::new(), MAX_ATTEMPTS, patience), None);
        assert_eq!(retry.wait(503, &HeaderMap::new(), 1, patience), None, "it has been asked often enough");
        assert_eq!(retry.wait(200, &HeaderMap::new(), 1, patience), None);
        assert_eq!(retry.wait(503, &HeaderMap::new(), 1, patience), Some(DEFAULT_WAIT));
        assert_eq!(retry.wait(429, &after("3600"), 1, patience), None, "a client does not wait for an hour");
    }
}
