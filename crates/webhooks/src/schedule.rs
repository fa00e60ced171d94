//! When a delivery is tried again: by the list of waits, a little later each so that many that failed together do not
//! come back together, and never before the receiver said it wanted to be asked again.

use std::time::{Duration, SystemTime};

use http::HeaderMap;
use http::header::RETRY_AFTER;
use switchboard_a2a::Timestamp;
use switchboard_engine::clock::later;

/// A receiver cannot put a delivery off for longer than this.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// When the attempt after `attempts` of them is due; none if that was the last.
pub(crate) fn next_attempt(
    retries: &[Duration],
    attempts: u32,
    retry_after: Option<Duration>,
    now: Timestamp,
    jitter: f64,
) -> Option<Timestamp> {
    let wait = *retries.get(usize::try_from(attempts.checked_sub(1)?).ok()?)?;
    let spread = wait.mul_f64(1.0 + 0.1 * jitter.clamp(0.0, 1.0));
    Some(later(now, spread.max(retry_after.unwrap_or_default())))
}

/// What a receiver asks for: seconds, or a date.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = match value.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => httpdate::parse_http_date(value).ok()?.duration_since(now).unwrap_or_default(),
    };
    Some(wait.min(LONGEST_RETRY_AFTER))
}

/// Between 0 and 1, different each time.
pub(crate) fn jitter() -> f64 {
    let mut bytes = [0; 4];
    // Without randomness everything is still delivered, only more at once.
    if getrandom::fill(&mut bytes).is_err() {
        return 0.0;
    }
    f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn the_waits_are_followed_in_order_and_then_it_is_over() {
        let retries = crate::Options::default().retries;
        let wait =
            |attempts, jitter| next_attempt(&retries, attempts, None, Timestamp(1_000), jitter).map(|at| at.0 - 1_000);
        let minutes = 60_000;
        let expected = [1_000, 3_000, 9_000, 30_000, 5 * minutes, 30 * minutes, 120 * minutes, 300 * minutes];
        for (attempts, milliseconds) in (1..).zip(expected) {
            assert_eq!(wait(attempts, 0.0), Some(milliseconds));
            assert_eq!(wait(attempts, 1.0), Some(milliseconds + milliseconds / 10));
        }
        assert_eq!(wait(12, 0.0), Some(24 * 60 * minutes));
        assert_eq!(wait(13, 0.0), None);
        assert_eq!(wait(0, 0.0), None);
    }

    #[test]
    fn a_receiver_can_ask_for_more_time_but_not_for_ever() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let asked = |value: &str| {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_str(value).unwrap())]);
            retry_after(&headers, now).map(|wait| wait.as_secs())
        };
        assert_eq!(asked("7"), Some(7));
        assert_eq!(asked(&httpdate::fmt_http_date(now + Duration::from_secs(90))), Some(90));
        assert_eq!(asked(&httpdate::fmt_http_date(now - Duration::from_secs(90))), Some(0));
        assert_eq!(asked("99999999"), Some(24 * 60 * 60));
        for nonsense in ["-1", "soon", "", "1.5"] {
            assert_eq!(asked(nonsense), None, "{nonsense}");
        }
        let next = |after| next_attempt(&[Duration::from_secs(1)], 1, after, Timestamp(0), 0.0);
        assert_eq!(next(Some(Duration::from_secs(60))), Some(Timestamp(60_000)));
        assert_eq!(next(Some(Duration::ZERO)), Some(Timestamp(1_000)));
    }
}
