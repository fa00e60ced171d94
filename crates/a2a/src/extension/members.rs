//! Tolerant access to the members of a payload: by any of their names, numbers as integers, floats or text, and what has
//! the wrong type as good as absent. Values that went through a protobuf `Struct` have become floats.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::Json;

/// The members of a JSON object.
pub(super) struct Members(Map<String, Value>);

impl Members {
    /// Nothing if the payload is not an object.
    pub(super) fn of(payload: &Json) -> Option<Self> {
        payload.read().ok().map(Self)
    }

    fn first<'a>(&'a self, names: &[&str]) -> Option<&'a Value> {
        names.iter().filter_map(|name| self.0.get(*name)).find(|value| !value.is_null())
    }

    pub(super) fn object(&self, names: &[&str]) -> Option<Self> {
        self.first(names)?.as_object().cloned().map(Self)
    }

    pub(super) fn text(&self, names: &[&str]) -> Option<String> {
        self.first(names)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
    }

    pub(super) fn flag(&self, names: &[&str]) -> Option<bool> {
        match self.first(names)? {
            Value::String(text) => text.parse().ok(),
            other => other.as_bool(),
        }
    }

    /// A finite number.
    pub(super) fn number(&self, names: &[&str]) -> Option<f64> {
        let number = match self.first(names)? {
            Value::String(text) => text.parse().ok()?,
            other => other.as_f64()?,
        };
        number.is_finite().then_some(number)
    }

    /// A number of at least zero.
    pub(super) fn amount(&self, names: &[&str]) -> Option<f64> {
        self.number(names).filter(|number| *number >= 0.0)
    }

    /// A whole number of at least zero; fractions are rounded.
    pub(super) fn count(&self, names: &[&str]) -> Option<u64> {
        if let Some(count) = self.first(names)?.as_u64() {
            return Some(count);
        }
        // A float beyond the range becomes its end.
        self.amount(names).map(|number| number.round() as u64)
    }
}

/// Writes whole numbers without a fraction.
pub(super) fn integral<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    /// Up to here every integer is exactly one float.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() < EXACT {
        return (*number as i64).serialize(serializer);
    }
    number.serialize(serializer)
}

/// The same for a number that may be absent.
pub(super) fn optional_integral<S: Serializer>(number: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match number {
        Some(number) => integral(number, serializer),
        None => serializer.serialize_none(),
    }
}
