//! Cron expressions: five fields, or six with seconds in front. An expression says which wall-clock times it means; what
//! becomes of those that a zone skips or repeats is for the schedule that it is a part of.

mod field;

use jiff::civil::{Date, DateTime, Time};

use self::field::{FieldKind, FieldSet};

/// After so many years the calendar begins again: a date that has not come by then never does.
const CALENDAR_YEARS: i16 = 400;

/// Names for whole expressions.
const NICKNAMES: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// A cron expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cron {
    seconds: FieldSet,
    minutes: FieldSet,
    hours: FieldSet,
    days: FieldSet,
    months: FieldSet,
    weekdays: FieldSet,
}

/// Why a text is no cron expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    #[error(
        "has {0} fields: write minute, hour, day, month and day of the week, such as 30 9 * * MON-FRI, with seconds in front \
         of them if there are six"
    )]
    FieldCount(usize),
    #[error("{0} is none of @yearly, @monthly, @weekly, @daily and @hourly")]
    UnknownNickname(String),
    #[error("{field}: {problem}")]
    Field { field: &'static str, problem: String },
    #[error("never comes: no year has such a day in such a month")]
    Never,
}

impl Cron {
    /// Reads an expression. One that no date fits, such as the 31st of February, is refused.
    pub fn parse(text: &str) -> Result<Self, CronError> {
        let text = text.trim();
        let text = match text.starts_with('@') {
            true => nickname(text)?,
            false => text,
        };
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        let (seconds, rest) = match fields.as_slice() {
            [_, _, _, _, _] => ("0", fields.as_slice()),
            [seconds, rest @ ..] if rest.len() == 5 => (*seconds, rest),
            _ => return Err(CronError::FieldCount(fields.len())),
        };
        let [minutes, hours, days, months, weekdays] = rest else { return Err(CronError::FieldCount(fields.len())) };
        let cron = Self {
            seconds: FieldKind::Second.parse(seconds)?,
            minutes: FieldKind::Minute.parse(minutes)?,
            hours: FieldKind::Hour.parse(hours)?,
            days: FieldKind::Day.parse(days)?,
            months: FieldKind::Month.parse(months)?,
            weekdays: FieldKind::Weekday.parse(weekdays)?,
        };
        match cron.next(DateTime::constant(1999, 12, 31, 23, 59, 59, 0)) {
            Some(_) => Ok(cron),
            None => Err(CronError::Never),
        }
    }

    /// Whether it names no hours: then it runs in real time, whatever is done to the clocks.
    pub fn is_every_hour(&self) -> bool {
        self.hours.is_full(FieldKind::Hour)
    }

    /// Whether it means a time.
    pub fn matches(&self, at: DateTime) -> bool {
        self.has_day(at.date())
            && self.hours.has(number(at.hour()))
            && self.minutes.has(number(at.minute()))
            && self.seconds.has(number(at.second()))
    }

    /// The first time after another one; none if the calendar ends before.
    pub fn next(&self, after: DateTime) -> Option<DateTime> {
        let mut date = after.date();
        if self.has_day(date)
            && let Some(time) = self.time_after(after.time())
        {
            return Some(date.to_datetime(time));
        }
        let first = self.first_time()?;
        let last_year = date.year().saturating_add(CALENDAR_YEARS);
        while date.year() <= last_year {
            let is_in_month = self.months.has(number(date.month()));
            date = if is_in_month { date.tomorrow().ok()? } else { date.last_of_month().tomorrow().ok()? };
            if self.has_day(date) {
                return Some(date.to_datetime(first));
            }
        }
        None
    }

    /// The first time of the same day after another one.
    fn time_after(&self, after: Time) -> Option<Time> {
        let [hour, minute, second] = [after.hour(), after.minute(), after.second()].map(number);
        if self.hours.has(hour) {
            if self.minutes.has(minute)
                && let Some(second) = self.seconds.at_or_after(second + 1)
            {
                return time(hour, minute, second);
            }
            if let Some(minute) = self.minutes.at_or_after(minute + 1) {
                return time(hour, minute, self.seconds.at_or_after(0)?);
            }
        }
        time(self.hours.at_or_after(hour + 1)?, self.minutes.at_or_after(0)?, self.seconds.at_or_after(0)?)
    }

    fn first_time(&self) -> Option<Time> {
        time(self.hours.at_or_after(0)?, self.minutes.at_or_after(0)?, self.seconds.at_or_after(0)?)
    }

    /// A day has to fit both fields if one of them begins with `*`, else one of them, as in every cron.
    fn has_day(&self, date: Date) -> bool {
        let day = self.days.has(number(date.day()));
        let weekday = self.weekdays.has(number(date.weekday().to_sunday_zero_offset()));
        let fits = match self.days.is_starred() || self.weekdays.is_starred() {
            true => day && weekday,
            false => day || weekday,
        };
        fits && self.months.has(number(date.month()))
    }
}

/// A part of a date or time, of which none is below zero.
fn number(part: i8) -> u8 {
    part.unsigned_abs()
}

fn time(hour: u8, minute: u8, second: u8) -> Option<Time> {
    let part = |part: u8| i8::try_from(part).ok();
    Time::new(part(hour)?, part(minute)?, part(second)?, 0).ok()
}

fn nickname(text: &str) -> Result<&'static str, CronError> {
    let known = NICKNAMES.iter().find(|(name, _)| text.eq_ignore_ascii_case(name));
    known.map(|(_, fields)| *fields).ok_or_else(|| CronError::UnknownNickname(text.chars().take(40).collect()))
}
