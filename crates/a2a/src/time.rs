//! Points in time as the wire carries them: UTC, whole milliseconds, `2026-01-02T03:04:05.678Z`.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Reads RFC 3339 with `Z` or an offset; a missing zone means UTC, as old peers write it.
    pub fn parse(text: &str) -> Option<Self> {
        if let Ok(instant) = text.parse::<jiff::Timestamp>() {
            return Some(Self(instant.as_millisecond()));
        }
        let civil: jiff::civil::DateTime = text.parse().ok()?;
        let zoned = civil.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
        Some(Self(zoned.timestamp().as_millisecond()))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Out of jiff's range only if a peer sent a year beyond 9999: shown as the epoch rather than a panic.
        let instant = jiff::Timestamp::from_millisecond(self.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        write!(formatter, "{instant:.3}")
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Timestamp;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an RFC 3339 timestamp such as 2026-01-02T03:04:05.678Z")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Timestamp, E> {
                Timestamp::parse(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }
            fn visit_i64<E: de::Error>(self, milliseconds: i64) -> Result<Timestamp, E> {
                // Beyond what a calendar can say there is no text to write it as.
                let known = jiff::Timestamp::from_millisecond(milliseconds);
                known.map(|_| Timestamp(milliseconds)).map_err(E::custom)
            }
            fn visit_u64<E: de::Error>(self, milliseconds: u64) -> Result<Timestamp, E> {
                self.visit_i64(i64::try_from(milliseconds).map_err(E::custom)?)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}
