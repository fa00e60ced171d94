//! How many messages routes have sent because of one task and what it causes: a last guard against events that multiply, where
//! no chain is long enough to be refused.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use parking_lot::Mutex;
use switchboard_a2a::Timestamp;
use switchboard_engine::clock::{earlier, later};

/// Causes that are told apart; of more the oldest are forgotten.
const CAUSES: usize = 10_000;

/// Counts sends by their cause, within a time.
pub(super) struct SendRate {
    most: usize,
    within: Duration,
    sent: Mutex<HashMap<String, VecDeque<Timestamp>>>,
}

impl SendRate {
    pub(super) fn new(most: usize, within: Duration) -> Self {
        Self { most, within, sent: Mutex::default() }
    }

    /// Whether one more may be sent now.
    pub(super) fn allows(&self, cause: &str, now: Timestamp) -> bool {
        let mut sent = self.sent.lock();
        if sent.len() >= CAUSES && !sent.contains_key(cause) {
            let since = earlier(now, self.within);
            sent.retain(|_, times| times.back().is_some_and(|last| *last > since));
            let oldest = sent.iter().min_by_key(|(_, times)| times.back().copied()).map(|(cause, _)| cause.clone());
            if let Some(oldest) = oldest.filter(|_| sent.len() >= CAUSES) {
                sent.remove(&oldest);
            }
        }
        let times = sent.entry(cause.to_owned()).or_default();
        // A clock that was set back must not refuse for longer.
        while times.front().is_some_and(|first| later(*first, self.within) <= now || *first > now) {
            times.pop_front();
        }
        let allows = times.len() < self.most;
        if allows {
            times.push_back(now);
        }
        allows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_has_so_many_sends_within_the_time_and_others_have_their_own() {
        let rate = SendRate::new(2, Duration::from_secs(30));
        let allows = |cause: &str, seconds: i64| rate.allows(cause, Timestamp(seconds * 1_000));
        assert_eq!([0, 1, 29, 30, 30, 31].map(|at| allows("one", at)), [true, true, false, true, false, true]);
        assert!(allows("two", 31));
        assert_eq!([10, 10, 10].map(|at| allows("one", at)), [true, true, false], "the clock was set back");
        for number in 0..CAUSES + 10 {
            assert!(allows(&number.to_string(), 40));
        }
        assert!(rate.sent.lock().len() <= CAUSES);
    }
}
