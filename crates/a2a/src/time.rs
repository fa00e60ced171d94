//! Points in time as the wire carries them: UTC, whole milliseconds, `2026-01-02T03:04:05.678Z`.

use std::cell::Cell;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Reads RFC 3339 with `Z` or an offset; a missing zone means UTC, as old peers write it.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(known) = Self::of_known_second(text) {
            return Some(known);
        }
        if let Ok(instant) = text.parse::<jiff::Timestamp>() {
            let time = Self(instant.as_millisecond());
            time.remember_second(text);
            return Some(time);
        }
        let civil: jiff::civil::DateTime = text.parse().ok()?;
        let zoned = civil.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
        Some(Self(zoned.timestamp().as_millisecond()))
    }
}

/// The text of a year of four digits.
type Text = [u8; "2026-01-02T03:04:05.678Z".len()];
/// Where its milliseconds stand.
const MILLISECONDS: std::ops::Range<usize> = 20..23;
/// What stands between its digits, and where.
const PUNCTUATION: [(usize, u8); 7] =
    [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'.'), (23, b'Z')];

thread_local! {
    /// The second that was last written or read, and a text of it: every event has a time, those of a task are mostly of
    /// one second, and those that are written of the present one.
    static SECOND: Cell<(i64, Text)> = const { Cell::new((i64::MIN, [0; 24])) };
}

impl Timestamp {
    /// A text of the known second, which differs from the known text in its milliseconds alone.
    fn of_known_second(text: &str) -> Option<Self> {
        let text: &Text = text.as_bytes().try_into().ok()?;
        let (second, known) = SECOND.get();
        if second == i64::MIN || text[..MILLISECONDS.start] != known[..MILLISECONDS.start] || text[23] != b'Z' {
            return None;
        }
        let mut milliseconds = 0;
        for digit in &text[MILLISECONDS] {
            milliseconds = milliseconds * 10 + i64::from(digit.checked_sub(b'0').filter(|digit| *digit < 10)?);
        }
        Some(Self(second * 1_000 + milliseconds))
    }

    /// Remembers the second of a text that was read, if the text is as this writes it: a leap second is not.
    fn remember_second(self, text: &str) {
        if let Ok(text) = Text::try_from(text.as_bytes())
            && PUNCTUATION.iter().all(|(place, byte)| text[*place] == *byte)
            && text[17] < b'6'
        {
            SECOND.set((self.0.div_euclid(1_000), text));
        }
    }

    /// As text, if its year has four digits.
    fn write(self, text: &mut Text) -> Option<&str> {
        let (second, mut milliseconds) = (self.0.div_euclid(1_000), self.0.rem_euclid(1_000));
        let (known, known_text) = SECOND.get();
        *text = known_text;
        if known != second {
            let instant = jiff::Timestamp::from_second(second).ok()?;
            *text = format!("{instant:.3}").into_bytes().try_into().ok()?;
            SECOND.set((second, *text));
        }
        for digit in text[MILLISECONDS].iter_mut().rev() {
            *digit = b'0' + u8::try_from(milliseconds % 10).ok()?;
            milliseconds /= 10;
        }
        std::str::from_utf8(text).ok()
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = self.write(&mut Text::default()) {
            return formatter.write_str(text);
        }
        // Out of jiff's range only if a peer sent a year beyond 9999: shown as the nearest time rather than a panic.
        let nearest = if self.0 < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
        let instant = jiff::Timestamp::from_millisecond(self.0).unwrap_or(nearest);
        write!(formatter, "{instant:.3}")
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.write(&mut Text::default()) {
            Some(text) => serializer.serialize_str(text),
            None => serializer.collect_str(self),
        }
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
