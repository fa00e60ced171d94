//! Which of the times that have come are run for. All of it follows from the schedule, the clock and the policy, so two nodes
//! and a process that begins anew decide alike.

use std::time::Duration;

use switchboard_a2a::Timestamp;
use switchboard_engine::clock::{earlier, later};
use switchboard_engine::sha256;
use switchboard_host::config::ceremonies::MissedRuns;

use super::schedule::Schedule;

/// What decides besides the times.
pub(super) struct Policy<'a> {
    pub(super) id: &'a str,
    pub(super) schedule: &'a Schedule,
    pub(super) jitter: Duration,
    pub(super) missed: MissedRuns,
    /// How late a run may be before its time counts as missed.
    pub(super) grace: Duration,
    /// Missed times that are caught up on.
    pub(super) most: usize,
}

/// Times that no run is made for, with all in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Passed {
    pub(super) first: Timestamp,
    pub(super) last: Timestamp,
}

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// A run for a time, after those that are passed.
    Run { passed: Option<Passed>, at: Timestamp, is_caught_up: bool },
    /// None; the next time is another one.
    Pass { passed: Passed, next: Option<Timestamp> },
}

impl Policy<'_> {
    /// When the run of a time is due: put off by a part of the jitter that the time itself decides.
    pub(super) fn due(&self, at: Timestamp) -> Timestamp {
        let most = u64::try_from(self.jitter.as_millis()).unwrap_or(u64::MAX);
        if most == 0 {
            return at;
        }
        let digest = sha256([self.id.as_bytes(), &at.0.to_be_bytes()]);
        let mut number = [0; 8];
        number.copy_from_slice(&digest[..8]);
        later(at, Duration::from_millis(u64::from_be_bytes(number) % most))
    }

    /// What is to be done about a time that has come.
    pub(super) fn plan(&self, at: Timestamp, now: Timestamp) -> Plan {
        if later(self.due(at), self.grace) >= now {
            return Plan::Run { passed: None, at, is_caught_up: false };
        }
        // Later times may still be put off.
        let horizon = at.max(earlier(now, self.jitter));
        match self.missed {
            MissedRuns::RunOnce => match self.newest(at, horizon, 2).as_slice() {
                [.., before, newest] => {
                    let passed = Some(Passed { first: at, last: *before });
                    Plan::Run { passed, at: *newest, is_caught_up: false }
                }
                _ => Plan::Run { passed: None, at, is_caught_up: false },
            },
            MissedRuns::CatchUp => {
                let times = self.newest(at, horizon, self.most.saturating_add(1));
                match times.as_slice() {
                    [before, first, ..] if times.len() > self.most => {
                        let passed = Some(Passed { first: at, last: *before });
                        Plan::Run { passed, at: *first, is_caught_up: true }
                    }
                    _ => Plan::Run { passed: None, at, is_caught_up: true },
                }
            }
            MissedRuns::Skip => {
                let since = earlier(now, self.grace);
                let begin = Timestamp(earlier(since, self.jitter).0.saturating_sub(1));
                let mut next = self.schedule.next_after(at.max(begin));
                while let Some(time) = next
                    && self.due(time) < since
                {
                    next = self.schedule.next_after(time);
                }
                let until = next.map_or(horizon, |next| Timestamp(next.0 - 1).min(horizon).max(at));
                let last = self.newest(at, until, 1).pop().unwrap_or(at);
                Plan::Pass { passed: Passed { first: at, last }, next }
            }
        }
    }

    /// The times that have come since a run was ordered for one, and the next one.
    pub(super) fn passed_since(&self, at: Timestamp, now: Timestamp) -> (Option<Passed>, Option<Timestamp>) {
        let next = self.schedule.next_after(at);
        let Some(first) = next.filter(|first| *first <= now) else { return (None, next) };
        let last = self.newest(first, now, 1).pop().unwrap_or(first);
        (Some(Passed { first, last }), self.schedule.next_after(now))
    }

    /// The newest times from one on until another one, oldest first. As there may be millions, they are counted only as far as
    /// is wanted, from a beginning that is found by bisection.
    fn newest(&self, first: Timestamp, until: Timestamp, most: usize) -> Vec<Timestamp> {
        let after = |begin: Timestamp| {
            let times = std::iter::successors(self.schedule.next_after(begin), |at| self.schedule.next_after(*at));
            times.take_while(move |at| *at <= until).take(most)
        };
        let (mut begin, mut end) = (Timestamp(first.0.saturating_sub(1)), until);
        let mut found: Vec<Timestamp> = after(begin).collect();
        if found.len() < most {
            return found;
        }
        while end.0.saturating_sub(begin.0) > 1 {
            let middle = Timestamp(begin.0 + (end.0 - begin.0) / 2);
            let times: Vec<Timestamp> = after(middle).collect();
            match times.len() >= most {
                true => (begin, found) = (middle, times),
                false => end = middle,
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000;

    fn policy(schedule: &Schedule, missed: MissedRuns) -> Policy<'_> {
        let grace = Duration::from_secs(60);
        Policy { id: "daily", schedule, jitter: Duration::ZERO, missed, grace, most: 3 }
    }

    fn minutes(text: &str) -> Schedule {
        Schedule::cron(text, "UTC").unwrap_or_else(|error| panic!("{error}"))
    }

    fn at(minutes: i64) -> Timestamp {
        Timestamp(1_800_000_000_000 + minutes * MINUTE)
    }

    fn run(passed: Option<(i64, i64)>, time: i64, is_caught_up: bool) -> Plan {
        let passed = passed.map(|(first, last)| Passed { first: at(first), last: at(last) });
        Plan::Run { passed, at: at(time), is_caught_up }
    }

    #[test]
    fn missed_times_are_run_once_skipped_or_caught_up_on() {
        let schedule = minutes("*/10 * * * *");
        let once = policy(&schedule, MissedRuns::RunOnce);
        assert_eq!(once.plan(at(0), at(1)), run(None, 0, false), "within the grace");
        assert_eq!(once.plan(at(0), at(2)), run(None, 0, false));
        assert_eq!(once.plan(at(0), at(35)), run(Some((0, 20)), 30, false));
        let caught = policy(&schedule, MissedRuns::CatchUp);
        assert_eq!(caught.plan(at(0), at(25)), run(None, 0, true));
        assert_eq!(caught.plan(at(0), at(55)), run(Some((0, 20)), 30, true));
        let skipped = policy(&schedule, MissedRuns::Skip);
        let pass = |last, next| Plan::Pass { passed: Passed { first: at(0), last: at(last) }, next: Some(at(next)) };
        assert_eq!(skipped.plan(at(0), at(1)), run(None, 0, false));
        assert_eq!(skipped.plan(at(0), at(5)), pass(0, 10));
        assert_eq!(skipped.plan(at(0), at(31)), pass(20, 30), "the newest is not too late");
        assert_eq!(skipped.plan(at(0), at(32)), pass(30, 40));
        assert_eq!(once.passed_since(at(0), at(9)), (None, Some(at(10))));
        let passed = Passed { first: at(10), last: at(30) };
        assert_eq!(once.passed_since(at(0), at(35)), (Some(passed), Some(at(40))));
    }

    #[test]
    fn four_hundred_days_of_seconds_are_not_counted_one_by_one() {
        let schedule = minutes("* * * * * *");
        let days = 400 * 24 * 60;
        let once = policy(&schedule, MissedRuns::RunOnce);
        let newest = at(days);
        let before = Timestamp(newest.0 - 1_000);
        let passed = Some(Passed { first: at(0), last: before });
        assert_eq!(once.plan(at(0), newest), Plan::Run { passed, at: newest, is_caught_up: false });
        let single = Schedule::Once(at(0));
        assert_eq!(policy(&single, MissedRuns::RunOnce).plan(at(0), at(days)), run(None, 0, false));
        let gone = Plan::Pass { passed: Passed { first: at(0), last: at(0) }, next: None };
        assert_eq!(policy(&single, MissedRuns::Skip).plan(at(0), at(days)), gone);
    }

    #[test]
    fn jitter_puts_each_time_off_by_its_own_part() {
        let schedule = minutes("*/10 * * * *");
        let jitter = Duration::from_secs(300);
        let policy = Policy { jitter, ..policy(&schedule, MissedRuns::RunOnce) };
        let offsets: Vec<i64> = (0..20).map(|time| policy.due(at(time * 10)).0 - at(time * 10).0).collect();
        assert!(offsets.iter().all(|offset| (0..300_000).contains(offset)), "{offsets:?}");
        assert!(offsets.windows(2).any(|pair| pair[0] != pair[1]), "{offsets:?}");
        // One that is put off is not late.
        assert_eq!(policy.plan(at(0), policy.due(at(0))), run(None, 0, false));
    }
}
