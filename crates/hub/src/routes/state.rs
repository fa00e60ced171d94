//! What is known of a route beside its definition: what it owes, and how its deliveries go. What is owed is in the store;
//! this is counted from it when the process starts.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use switchboard_a2a::Timestamp;

use crate::journal_text::shortened;

/// Failures in a row after which a route counts as failing.
const FAILING_AFTER: u32 = 3;

/// The state of a route.
#[derive(Debug, Default)]
pub(crate) struct RouteState {
    /// Events that are owed.
    owed: AtomicU64,
    /// More were owed than may be, and half of that still are.
    paused: AtomicBool,
    /// Events that were left out since it was paused.
    left_out: AtomicU64,
    /// Held while something is delivered: one at a time keeps the order.
    pub(super) delivering: tokio::sync::Mutex<()>,
    delivery: Mutex<Delivery>,
}

/// How deliveries go.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delivery {
    /// Failures in a row.
    pub(crate) attempts: u32,
    /// When it is tried again.
    pub(crate) not_before: Timestamp,
    /// What was tried last began with this job and ended with that one, and is tried again as it was.
    pub(crate) tried: Option<(String, String)>,
    /// It was tried since the process has started.
    is_known: bool,
    is_failing: bool,
    /// What went wrong last.
    pub(crate) last_error: Option<(Timestamp, String)>,
    pub(crate) delivered_at: Option<Timestamp>,
}

impl RouteState {
    pub(crate) fn owed(&self) -> u64 {
        self.owed.load(Ordering::Acquire)
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Acquire)
    }

    pub(crate) fn left_out(&self) -> u64 {
        self.left_out.load(Ordering::Acquire)
    }

    pub(crate) fn delivery(&self) -> Delivery {
        self.delivery.lock().clone()
    }

    /// Takes what the store says that is owed.
    pub(super) fn set_owed(&self, owed: u64, most: u64) {
        self.owed.store(owed, Ordering::Release);
        self.paused.store(owed >= most, Ordering::Release);
    }

    /// More is owed, or was left out.
    pub(super) fn owes(&self, owed: u64, left_out: u64) {
        self.owed.fetch_add(owed, Ordering::AcqRel);
        if left_out > 0 {
            self.left_out.fetch_add(left_out, Ordering::AcqRel);
            self.paused.store(true, Ordering::Release);
        }
    }

    /// So much is owed no longer. If that ends a pause: how many events were left out.
    pub(super) fn settled(&self, count: u64, most: u64) -> Option<u64> {
        let before = self.owed.load(Ordering::Acquire);
        let owed = before.saturating_sub(count);
        self.owed.fetch_sub(before - owed, Ordering::AcqRel);
        let resumes = owed <= most / 2 && self.paused.swap(false, Ordering::AcqRel);
        resumes.then(|| self.left_out.swap(0, Ordering::AcqRel))
    }

    /// Forgets how deliveries went: its definition is another one.
    pub(super) fn begin_anew(&self) {
        *self.delivery.lock() = Delivery { is_known: true, ..Delivery::default() };
    }

    /// Whether this ends a failure.
    pub(super) fn delivered(&self, now: Timestamp) -> bool {
        let mut delivery = self.delivery.lock();
        let was_failing = delivery.is_failing;
        *delivery = Delivery {
            is_known: true,
            delivered_at: Some(now),
            last_error: delivery.last_error.take(),
            ..Delivery::default()
        };
        was_failing
    }

    /// What is owed was tried and is tried again. Whether it fails from now on.
    pub(super) fn failed(&self, now: Timestamp, problem: &str, not_before: Timestamp, tried: (String, String)) -> bool {
        let mut delivery = self.delivery.lock();
        delivery.is_known = true;
        delivery.attempts += 1;
        delivery.not_before = not_before;
        delivery.tried = Some(tried);
        delivery.last_error = Some((now, shortened(problem).to_owned()));
        let fails = delivery.attempts >= FAILING_AFTER;
        fails && !std::mem::replace(&mut delivery.is_failing, true)
    }

    /// What is owed is given up. Whether it fails from now on.
    pub(super) fn gave_up(&self, now: Timestamp, problem: &str) -> bool {
        let mut delivery = self.delivery.lock();
        let was_failing = delivery.is_failing;
        *delivery = Delivery {
            is_known: true,
            is_failing: true,
            last_error: Some((now, shortened(problem).to_owned())),
            delivered_at: delivery.delivered_at,
            ..Delivery::default()
        };
        !was_failing
    }

    /// Goes on where an earlier process has stopped.
    pub(super) fn recall(&self, attempts: u32, tried: Option<(String, String)>) {
        let mut delivery = self.delivery.lock();
        if !delivery.is_known {
            (delivery.attempts, delivery.tried, delivery.is_known) = (attempts, tried, true);
        }
    }

    pub(crate) fn is_failing(&self) -> bool {
        self.delivery.lock().is_failing
    }

    /// Whether nothing is wrong with it. One that owes something and was not tried yet may fail as before.
    pub(super) fn is_well(&self) -> bool {
        let delivery = self.delivery.lock();
        !delivery.is_failing && !self.is_paused() && (delivery.is_known || self.owed() == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_ends_when_half_is_delivered_and_says_what_was_left_out() {
        let state = RouteState::default();
        state.owes(10, 0);
        assert!(!state.is_paused());
        state.owes(0, 3);
        state.owes(0, 4);
        assert!(state.is_paused() && !state.is_well());
        assert_eq!((state.settled(4, 10), state.settled(1, 10), state.settled(9, 10)), (None, Some(7), None));
        assert_eq!((state.owed(), state.is_paused(), state.left_out()), (0, false, 0));
    }

    #[test]
    fn a_route_fails_after_three_failures_or_one_loss_until_something_is_delivered() {
        let state = RouteState::default();
        let tried = || ("1".to_owned(), "2".to_owned());
        let failed = || state.failed(Timestamp(1), "no answer", Timestamp(2), tried());
        assert_eq!([failed(), failed(), failed(), failed()], [false, false, true, false]);
        assert!(state.delivered(Timestamp(3)) && !state.delivered(Timestamp(3)));
        assert_eq!((state.delivery().attempts, state.is_well()), (0, true));
        assert!(state.gave_up(Timestamp(4), "404") && !state.gave_up(Timestamp(4), "404"));
        assert!(!state.is_well());
        let anew = RouteState::default();
        anew.set_owed(1, 10);
        assert!(!anew.is_well(), "it may fail as before");
        anew.recall(2, Some(tried()));
        assert!(anew.failed(Timestamp(5), "no answer", Timestamp(6), tried()));
    }
}
