//! Numbers of bytes as people write them, `64KiB`, `10MiB`, `10GiB`, and plain counts of at least one.

use std::fmt;

use serde::Serialize;

use crate::config::problem::Mismatch;
use crate::config::value::{Scalar, quantity, serialize_as_text};
use crate::json_schema_of;

/// The units, largest first, in bytes. Only binary ones: what `MB` means depends on who reads it.
const UNITS: [(&str, u64); 5] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

/// A number of bytes, at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size {
    bytes: u64,
}

impl Size {
    /// So many kibibytes.
    pub const fn from_kibibytes(count: u64) -> Self {
        Self { bytes: count.saturating_mul(1 << 10) }
    }

    /// So many mebibytes.
    pub const fn from_mebibytes(count: u64) -> Self {
        Self { bytes: count.saturating_mul(1 << 20) }
    }

    /// So many gibibytes.
    pub const fn from_gibibytes(count: u64) -> Self {
        Self { bytes: count.saturating_mul(1 << 30) }
    }

    /// The number of bytes.
    pub const fn bytes(self) -> u64 {
        self.bytes
    }

    /// The number of bytes as a length in memory.
    pub fn length(self) -> usize {
        usize::try_from(self.bytes).unwrap_or(usize::MAX)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match UNITS.iter().find(|(_, unit)| self.bytes.is_multiple_of(*unit)) {
            Some((name, unit)) => write!(formatter, "{}{name}", self.bytes / unit),
            None => write!(formatter, "{}B", self.bytes),
        }
    }
}

impl Scalar for Size {
    const WRITE: &'static str = "a number with a unit, such as 512B, 64KiB, 10MiB or 10GiB";

    fn from_text(text: &str) -> Result<Self, Mismatch> {
        let wrong = |what: &str| Self::mismatch(text, what);
        let bytes = quantity(text, &UNITS, "is not a size").map_err(wrong)?;
        // The database counts bytes in signed 64-bit numbers.
        match bytes.filter(|bytes| i64::try_from(*bytes).is_ok()) {
            Some(0) => Err(wrong("leaves no room at all")),
            Some(bytes) => Ok(Self { bytes }),
            None => Err(wrong("is larger than any disk")),
        }
    }
}

serialize_as_text!(Size);
json_schema_of!(Size, { "type": "string", "pattern": "^[0-9]+(B|KiB|MiB|GiB|TiB)$", "examples": ["64KiB", "10GiB"] });

/// A number of things, at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Count(usize);

impl Count {
    /// The largest count there is: more things than that fit on no machine, and it fits a signed 32-bit number.
    const LARGEST: usize = 2_147_483_647;

    /// So many; zero becomes one.
    pub const fn new(count: usize) -> Self {
        if count == 0 { Self(1) } else { Self(count) }
    }

    /// The number.
    pub const fn get(self) -> usize {
        self.0
    }
}

impl Scalar for Count {
    const WRITE: &'static str = "a whole number of at least 1, such as 1000";

    fn from_text(text: &str) -> Result<Self, Mismatch> {
        let wrong = |what: String| Mismatch::new(what, format!("write {}", Self::WRITE));
        let only_digits = !text.is_empty() && text.chars().all(|letter| letter.is_ascii_digit());
        match text.parse() {
            Ok(0) => Err(wrong("0 leaves room for nothing".to_owned())),
            Ok(count) if only_digits && count <= Self::LARGEST => Ok(Self(count)),
            _ if only_digits => Err(wrong(format!("{text} is more than {}", Self::LARGEST))),
            _ => Err(wrong(format!("\"{text}\" is not a whole number"))),
        }
    }
}

json_schema_of!(Count, { "type": "integer", "minimum": 1, "maximum": Count::LARGEST });
