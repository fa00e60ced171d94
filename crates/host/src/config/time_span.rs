//! Lengths of time as people write them: `250ms`, `30s`, `10m`, `12h`, `7d`, and `none` where a limit may be absent.
//! A bare number is refused, because it does not show whether seconds or milliseconds are meant.

use std::fmt;
use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::config::problem::Mismatch;
use crate::config::value::{Scalar, quantity, serialize_as_text};
use crate::json_schema_of;

/// The units, largest first, in milliseconds.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// A length of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeSpan {
    milliseconds: u64,
}

impl TimeSpan {
    /// No time at all.
    pub const ZERO: Self = Self { milliseconds: 0 };

    /// So many seconds.
    pub const fn from_seconds(seconds: u64) -> Self {
        Self { milliseconds: seconds.saturating_mul(1_000) }
    }

    /// So many minutes.
    pub const fn from_minutes(minutes: u64) -> Self {
        Self { milliseconds: minutes.saturating_mul(60_000) }
    }

    /// So many hours.
    pub const fn from_hours(hours: u64) -> Self {
        Self { milliseconds: hours.saturating_mul(3_600_000) }
    }

    /// So many days.
    pub const fn from_days(days: u64) -> Self {
        Self { milliseconds: days.saturating_mul(86_400_000) }
    }

    /// The same time for the standard library.
    pub const fn duration(self) -> Duration {
        Duration::from_millis(self.milliseconds)
    }
}

impl fmt::Display for TimeSpan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = UNITS.iter().find(|(_, unit)| self.milliseconds != 0 && self.milliseconds.is_multiple_of(*unit));
        match exact {
            Some((name, unit)) => write!(formatter, "{}{name}", self.milliseconds / unit),
            None => formatter.write_str("0s"),
        }
    }
}

impl Scalar for TimeSpan {
    const WRITE: &'static str = "a number with a unit, such as 250ms, 30s, 10m, 12h or 7d";

    fn from_text(text: &str) -> Result<Self, Mismatch> {
        let wrong = |what: &str| Self::mismatch(text, what);
        let milliseconds = quantity(text, &UNITS, "is not a length of time").map_err(wrong)?;
        // A century is more than any of these settings can mean, and keeps every later sum in range.
        let longest = 36_500 * 86_400_000;
        match milliseconds.filter(|milliseconds| *milliseconds <= longest) {
            Some(milliseconds) => Ok(Self { milliseconds }),
            None => Err(wrong("is longer than a hundred years")),
        }
    }
}

serialize_as_text!(TimeSpan);
json_schema_of!(TimeSpan, {
    "type": "string", "pattern": "^[0-9]+(ms|s|m|h|d)$",
    "examples": ["250ms", "30s", "10m", "7d"]
});

/// A length of time that may be absent: `none`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeLimit(pub Option<TimeSpan>);

impl TimeLimit {
    /// No limit.
    pub const NONE: Self = Self(None);

    /// The limit for the standard library, if there is one.
    pub fn duration(self) -> Option<Duration> {
        self.0.map(TimeSpan::duration)
    }
}

impl Scalar for TimeLimit {
    const WRITE: &'static str = "none, or a number with a unit, such as 250ms, 30s, 10m, 12h or 7d";

    fn from_text(text: &str) -> Result<Self, Mismatch> {
        if text == "none" {
            return Ok(Self::NONE);
        }
        match TimeSpan::from_text(text) {
            Ok(TimeSpan::ZERO) => {
                Err(Mismatch::new(format!("\"{text}\" leaves no time at all"), "write none for no limit"))
            }
            Ok(span) => Ok(Self(Some(span))),
            Err(mismatch) => Err(Mismatch::new(mismatch.wrong, format!("write {}", Self::WRITE))),
        }
    }
}

impl Serialize for TimeLimit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Some(span) => span.serialize(serializer),
            None => serializer.serialize_str("none"),
        }
    }
}

json_schema_of!(TimeLimit, { "type": "string", "pattern": "^(none|[0-9]+(ms|s|m|h|d))$", "examples": ["none", "30m"] });
