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
