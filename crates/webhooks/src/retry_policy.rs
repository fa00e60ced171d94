//! The retry policy of deliveries: a configured list of backoff intervals, each with jitter so that deliveries that failed
//! together do not come back together, and never before the receiver's `Retry-After`.

use std::time::{Duration, SystemTime};

use http::HeaderMap;
use http::header::RETRY_AFTER;
use switchboard_a2a::Timestamp;
use switchboard_engine::clock::later;
use switchboard_engine::store::webhooks::DeliveryRow;

const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(24 * 60 * 60);
/// A backoff is longer by up to this part of it.
const JITTER: f64 = 0.1;

/// When the attempt after `attempts` failed ones is due; none if that was the last.
pub(crate) fn next_attempt(
    retries: &[Duration],
    attempts: u32,
    retry_after: Option<Duration>,
    now: Timestamp,
    jitter: f64,
) -> Option<Timestamp> {
    let backoff = *retries.get(usize::try_from(attempts.checked_sub(1)?).ok()?)?;
    let backoff = backoff.mul_f64(1.0 + JITTER * jitter.clamp(0.0, 1.0));
    Some(later(now, backoff.max(retry_after.unwrap_or_default())))
}

/// Whether a pending delivery is due. A clock can be set back, so one is also due if its last attempt lies in the future,
/// or if its time is later than any backoff explains.
pub(crate) fn is_due(delivery: &DeliveryRow, retries: &[Duration], now: Timestamp) -> bool {
    // One without an attempt is due since it was created.
    let clock_was_set_back = delivery.last_attempt.as_ref().is_none_or(|last| last.at > now);
    delivery.due_at <= now || clock_was_set_back || delivery.due_at > latest_due(retries, now)
}

/// The latest time that a backoff from now can reach.
pub(crate) fn latest_due(retries: &[Duration], now: Timestamp) -> Timestamp {
    let longest = retries.iter().max().copied().unwrap_or_default().mul_f64(1.0 + JITTER);
    later(now, longest.max(LONGEST_RETRY_AFTER))
}

/// The `Retry-After` header: seconds or a date.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = match value.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => httpdate::parse_http_date(value).ok()?.duration_since(now).unwrap_or_default(),
    };
    Some(wait.min(LONGEST_RETRY_AFTER))
}

/// A random number between 0 and 1.
pub(crate) fn jitter() -> f64 {
    let mut bytes = [0; 4];
    // Without randomness deliveries only come back together.
    if getrandom::fill(&mut bytes).is_err() {
        return 0.0;
    }
    f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use switchboard_engine::ids::{Cursor, Epoch, Seq};
    use switchboard_engine::store::webhooks::{Attempt, DeliveryKey, DeliveryState, WebhookKey};

    use super::*;

    fn pending(attempted_at: Option<i64>, due_at: i64) -> DeliveryRow {
        let attempt = |at| Attempt { at: Timestamp(at), duration_ms: 1, status: Some(503), problem: String::new() };
        DeliveryRow {
            key: DeliveryKey(1),
            webhook: WebhookKey(1),
            first: Seq(2),
            last: Cursor { epoch: Epoch(1), seq: Seq(2) },
            about: "working".to_owned(),
            form: 0,
            body: None,
            state: DeliveryState::Pending,
            replay: false,
            attempts: u32::from(attempted_at.is_some()),
            due_at: Timestamp(due_at),
            created_at: Timestamp(0),
            began_at: Timestamp(0),
            last_attempt: attempted_at.map(attempt),
        }
    }

    #[test]
    fn a_wait_is_kept_unless_the_clock_was_set_back() {
        let retries = [Duration::from_secs(1), Duration::from_secs(100_000)];
        let is_due = |attempted_at, due_at, now| is_due(&pending(attempted_at, due_at), &retries, Timestamp(now));
        assert!(!is_due(Some(5_000), 6_000, 5_000));
        assert!(!is_due(Some(5_000), 6_000, 5_999));
        assert!(is_due(Some(5_000), 6_000, 6_000));
        // It was tried in what is the future now.
        assert!(is_due(Some(5_000), 6_000, 4_999));
        assert!(is_due(None, 6_000, 4_999), "it is due since it was made");
        // The longest wait with all its spread, and one that nobody can have given.
        assert!(!is_due(Some(5_000), 110_005_000, 5_000));
        assert!(is_due(Some(5_000), 110_005_001, 5_000));
        assert_eq!(latest_due(&[], Timestamp(1)), Timestamp(24 * 60 * 60_000 + 1), "as long as a receiver may ask for");
    }

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
