//! The sums of the newest day in memory, as the projector has committed them. Readers of health look here and nowhere else.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use switchboard_a2a::Timestamp;
use switchboard_engine::clock::earlier;
use switchboard_engine::store::hub::{HealthBy, HealthStep, HealthSum};
use switchboard_engine::{AgentName, CallerId};

use super::sum::Sum;
use crate::routing::Track;

pub(super) const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
/// What is kept in memory: the longest window, and the hour that it begins in.
pub(crate) const KEPT: Duration = Duration::from_secs(25 * 60 * 60);
/// The name of callers beyond those that have sums of their own.
const OTHER: &str = "other";

/// What a sum is over. Time first, so that a window is a range.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SumKey {
    at: i64,
    is_hour: bool,
    pub(crate) agent: String,
    by: u8,
    pub(crate) name: String,
}

/// Outcomes of a minute that count in the same sums.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcomes<'a> {
    pub(super) at: Timestamp,
    pub(super) agent: &'a AgentName,
    pub(super) skill: &'a str,
    pub(super) caller: &'a CallerId,
    pub(super) sum: &'a Sum,
}

/// How long a window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Window {
    Hour,
    Day,
}

impl Window {
    pub(crate) fn duration(self) -> Duration {
        match self {
            Self::Hour => Duration::from_secs(60 * 60),
            Self::Day => Duration::from_secs(24 * 60 * 60),
        }
    }
}

/// Sums by what they are over.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sums(BTreeMap<SumKey, Sum>);

impl Sums {
    pub(crate) fn insert(&mut self, sums: Sums) {
        self.0.extend(sums.0);
    }

    /// Takes a stored sum. One that cannot be read counts as nothing.
    pub(crate) fn load(&mut self, stored: &HealthSum) {
        let sum = serde_json::from_slice(&stored.sum).unwrap_or_default();
        self.0.insert(key(stored.step, stored.at, &stored.agent, stored.by, &stored.name), sum);
    }

    /// Adds outcomes of a minute to the sums they belong to, which begin with what `known` has of them.
    pub(super) fn add(&mut self, outcomes: &Outcomes<'_>, known: &Sums, callers: usize) {
        let Outcomes { at, agent, skill, caller, sum } = *outcomes;
        let caller = self.caller_name(at, caller, known, callers);
        let parts = [
            (HealthStep::Minute, HealthBy::All, ""),
            (HealthStep::Minute, HealthBy::Skill, skill),
            (HealthStep::Hour, HealthBy::All, ""),
            (HealthStep::Hour, HealthBy::Skill, skill),
            (HealthStep::Hour, HealthBy::Caller, &caller),
        ];
        for (step, by, name) in parts {
            let key = key(step, at, agent, by, name);
            let known = self.0.entry(key).or_insert_with_key(|key| known.0.get(key).cloned().unwrap_or_default());
            known.merge(sum);
        }
    }

    /// A caller's own name, unless there are too many of them in this hour.
    fn caller_name(&self, at: Timestamp, caller: &CallerId, known: &Sums, callers: usize) -> String {
        let at = hour(at);
        let in_hour = |sums: &Sums| -> BTreeSet<String> {
            let of_hour = sums.0.range(from(at)..from(at + 1)).map(|(key, _)| key);
            let found = of_hour.filter(|key| key.is_hour && key.by == by_number(HealthBy::Caller));
            found.map(|key| key.name.clone()).collect()
        };
        let mut names = in_hour(self);
        names.extend(in_hour(known));
        if names.contains(caller.as_str()) || names.len() < callers { caller.to_string() } else { OTHER.to_owned() }
    }

    /// As they are stored.
    pub(crate) fn stored(&self) -> Vec<HealthSum> {
        let stored = |(key, sum): (&SumKey, &Sum)| {
            Some(HealthSum {
                step: if key.is_hour { HealthStep::Hour } else { HealthStep::Minute },
                at: Timestamp(key.at),
                agent: key.agent.as_str().into(),
                by: by_from(key.by),
                name: key.name.clone(),
                sum: serde_json::to_vec(sum).ok()?.into(),
            })
        };
        self.0.iter().filter_map(stored).collect()
    }

    /// Forgets what no window reaches any more.
    pub(crate) fn prune(&mut self, now: Timestamp) {
        self.0 = self.0.split_off(&from(earlier(now, KEPT).0));
    }

    /// The sums of a window by agent and name. Those of callers are by the hour.
    pub(crate) fn window(&self, now: Timestamp, window: Window, by: HealthBy) -> BTreeMap<(String, String), Sum> {
        let is_hour = by == HealthBy::Caller;
        let since = earlier(now, window.duration()).0 + 1;
        let begin = if is_hour { hour(Timestamp(since)) } else { since.div_euclid(MINUTE_MS) * MINUTE_MS };
        let mut found: BTreeMap<(String, String), Sum> = BTreeMap::new();
        for (key, sum) in self.0.range(from(begin)..) {
            if key.is_hour == is_hour && key.by == by_number(by) {
                found.entry((key.agent.clone(), key.name.clone())).or_default().merge(sum);
            }
        }
        found
    }

    /// The sums of one hour: agent, name and sum.
    pub(crate) fn of_hour(&self, at: Timestamp, by: HealthBy) -> impl Iterator<Item = (&str, &str, &Sum)> {
        let at = hour(at);
        let of_hour = self.0.range(from(at)..from(at + 1));
        let found = of_hour.filter(move |(key, _)| key.is_hour && key.by == by_number(by));
        found.map(|(key, sum)| (key.agent.as_str(), key.name.as_str(), sum))
    }

    /// How well each agent has done in the last 24 hours.
    pub(crate) fn tracks(&self, now: Timestamp) -> BTreeMap<String, Track> {
        let track = |sum: &Sum| Track {
            outcomes: sum.decided(),
            success_rate: sum.success_rate().unwrap_or_default(),
            cost_per_success: sum.cost_per_success().unwrap_or_default(),
        };
        let by_agent = self.window(now, Window::Day, HealthBy::All);
        by_agent.into_iter().map(|((agent, _), sum)| (agent, track(&sum))).collect()
    }
}

fn key(step: HealthStep, at: Timestamp, agent: &AgentName, by: HealthBy, name: &str) -> SumKey {
    let (at, is_hour) = match step {
        HealthStep::Minute => (at.0.div_euclid(MINUTE_MS) * MINUTE_MS, false),
        HealthStep::Hour => (hour(at), true),
    };
    SumKey { at, is_hour, agent: agent.to_string(), by: by_number(by), name: name.to_owned() }
}

/// Before every key of a time.
fn from(at: i64) -> SumKey {
    SumKey { at, is_hour: false, agent: String::new(), by: 0, name: String::new() }
}

fn hour(at: Timestamp) -> i64 {
    at.0.div_euclid(HOUR_MS) * HOUR_MS
}

fn by_number(by: HealthBy) -> u8 {
    match by {
        HealthBy::All => 0,
        HealthBy::Skill => 1,
        HealthBy::Caller => 2,
    }
}

fn by_from(number: u8) -> HealthBy {
    match number {
        1 => HealthBy::Skill,
        2 => HealthBy::Caller,
        _ => HealthBy::All,
    }
}
