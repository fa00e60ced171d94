//! Numbers with a fraction, zero or more: shares and prices.

use serde::Serialize;

use crate::config::problem::Mismatch;
use crate::config::value::Scalar;
use crate::json_schema_of;

/// A number of zero or more.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct Decimal(f64);

impl Decimal {
    /// This number; one that is below zero becomes zero.
    pub const fn new(number: f64) -> Self {
        if number > 0.0 { Self(number) } else { Self(0.0) }
    }

    /// The number.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl Scalar for Decimal {
    const WRITE: &'static str = "a number of zero or more, such as 0.5";

    fn from_text(text: &str) -> Result<Self, Mismatch> {
        let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
        number.map(Self).ok_or_else(|| {
            Mismatch::new(format!("\"{text}\" is not a number of zero or more"), format!("write {}", Self::WRITE))
        })
    }
}

json_schema_of!(Decimal, { "type": "number", "minimum": 0 });
