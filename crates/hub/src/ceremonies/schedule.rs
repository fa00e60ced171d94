//! When a scheduled run is due: once, or by a cron expression in a time zone.
//!
//! An expression that names hours means wall-clock times: one that the zone skips comes at once after the gap, and one that
//! it repeats comes the first time only. An expression for every hour runs in real time, so each repeated hour counts.

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use switchboard_a2a::Timestamp;

use super::cron::{Cron, CronError};

/// When runs are due.
#[derive(Clone, Debug)]
pub enum Schedule {
    Once(Timestamp),
    Cron(Box<CronSchedule>),
}

/// A cron expression in a time zone.
#[derive(Clone, Debug)]
pub struct CronSchedule {
    cron: Cron,
    zone: TimeZone,
}

/// Why there is no such schedule.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    #[error(transparent)]
    Cron(#[from] CronError),
    #[error("{0:?} is no time zone that this machine knows")]
    UnknownZone(String),
    #[error("{0:?} is no time")]
    NoTime(String),
}

/// What the clocks of a zone do to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockChange {
    /// Its wall-clock time is skipped, and it comes after the gap.
    Skipped,
    /// Its wall-clock time comes twice.
    Repeated,
}

/// A time at which a run is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occurrence {
    pub at: Timestamp,
    /// The wall-clock time of the zone, with its offset.
    pub local: String,
    pub clock_change: Option<ClockChange>,
}

impl Schedule {
    /// By a cron expression in a zone of the IANA database.
    pub fn cron(expression: &str, zone: &str) -> Result<Self, ScheduleError> {
        let cron = Cron::parse(expression)?;
        Ok(Self::Cron(Box::new(CronSchedule { cron, zone: named(zone)? })))
    }

    /// Once: at a time in RFC 3339, or at a wall-clock time of a zone.
    pub fn once(text: &str, zone: &str) -> Result<Self, ScheduleError> {
        if let Ok(at) = text.parse::<jiff::Timestamp>() {
            return Ok(Self::Once(stored(at)));
        }
        let local: DateTime = text.parse().map_err(|_| ScheduleError::NoTime(text.chars().take(80).collect()))?;
        let at = instant(&named(zone)?, local).ok_or_else(|| ScheduleError::NoTime(text.to_owned()))?;
        Ok(Self::Once(stored(at)))
    }

    /// The first time after another one; none if there is no more.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Once(at) => (*at > after).then_some(*at),
            Self::Cron(schedule) => schedule.next_after(moment(after)?).map(stored),
        }
    }

    /// The next times after another one, at most so many.
    pub fn occurrences(&self, after: Timestamp, count: usize) -> Vec<Occurrence> {
        let times = std::iter::successors(self.next_after(after), |at| self.next_after(*at));
        times.take(count).map(|at| self.occurrence(at)).collect()
    }

    fn occurrence(&self, at: Timestamp) -> Occurrence {
        let zone = match self {
            Self::Once(_) => TimeZone::UTC,
            Self::Cron(schedule) => schedule.zone.clone(),
        };
        let Some(moment) = moment(at) else {
            return Occurrence { at, local: String::new(), clock_change: None };
        };
        let local = zone.to_datetime(moment);
        let is_repeated = || matches!(zone.to_ambiguous_timestamp(local).offset(), AmbiguousOffset::Fold { .. });
        let clock_change = match self {
            Self::Cron(schedule) if !schedule.cron.matches(local) => Some(ClockChange::Skipped),
            Self::Cron(_) if is_repeated() => Some(ClockChange::Repeated),
            _ => None,
        };
        let local = moment.display_with_offset(zone.to_offset(moment)).to_string();
        Occurrence { at, local, clock_change }
    }
}

impl CronSchedule {
    fn next_after(&self, after: jiff::Timestamp) -> Option<jiff::Timestamp> {
        match self.cron.is_every_hour() {
            true => self.next_in_real_time(after),
            false => self.next_by_wall_clock(after),
        }
    }

    /// Times between two changes of the clocks follow each other as in a calendar without any.
    fn next_in_real_time(&self, after: jiff::Timestamp) -> Option<jiff::Timestamp> {
        let (mut begin, mut is_begin_allowed) = (after, false);
        loop {
            let offset = self.zone.to_offset(begin);
            let end = self.zone.following(begin).next().map(|change| change.timestamp());
            let mut local = offset.to_datetime(begin);
            if is_begin_allowed {
                local = local.checked_sub(jiff::SignedDuration::from_secs(1)).ok()?;
            }
            let next = offset.to_timestamp(self.cron.next(local)?).ok();
            match (next, end) {
                (Some(next), Some(end)) if next < end => return Some(next),
                (Some(next), None) => return Some(next),
                (None, None) => return None,
                (_, Some(end)) => (begin, is_begin_allowed) = (end, true),
            }
        }
    }

    /// Wall-clock times in their order, which is also that of their moments.
    fn next_by_wall_clock(&self, after: jiff::Timestamp) -> Option<jiff::Timestamp> {
        let mut local = self.zone.to_datetime(after);
        loop {
            local = self.cron.next(local)?;
            // In an hour that is repeated, those of its first time are over.
            let at = instant(&self.zone, local)?;
            if at > after {
                return Some(at);
            }
        }
    }
}

/// The moment of a wall-clock time: of one that comes twice the first, of one that is skipped the end of the gap.
fn instant(zone: &TimeZone, local: DateTime) -> Option<jiff::Timestamp> {
    let at = |offset: Offset| offset.to_timestamp(local).ok();
    match zone.to_ambiguous_timestamp(local).offset() {
        AmbiguousOffset::Unambiguous { offset } => at(offset),
        AmbiguousOffset::Fold { before, .. } => at(before),
        // By the offset from then on the skipped time lies before the change.
        AmbiguousOffset::Gap { after, .. } => zone.following(at(after)?).next().map(|change| change.timestamp()),
    }
}

fn named(zone: &str) -> Result<TimeZone, ScheduleError> {
    if zone.eq_ignore_ascii_case("UTC") {
        return Ok(TimeZone::UTC);
    }
    TimeZone::get(zone).map_err(|_| ScheduleError::UnknownZone(zone.chars().take(80).collect()))
}

fn moment(at: Timestamp) -> Option<jiff::Timestamp> {
    jiff::Timestamp::from_millisecond(at.0).ok()
}

fn stored(at: jiff::Timestamp) -> Timestamp {
    Timestamp(at.as_millisecond())
}
