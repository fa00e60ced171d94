//! `hub.health.pricing`: what tokens cost, where an agent does not say what its work has cost.

use serde::{Serialize, Serializer};

use crate::config::decimal::Decimal;
use crate::config::document::{Content, Entry};
use crate::config::problem::Mismatch;
use crate::config::value::Value;
use crate::{json_schema_of, section_keys};

/// What tokens cost, where an agent does not say what its work has cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(default, deny_unknown_fields))]
#[serde(rename_all = "camelCase")]
pub struct Pricing {
    /// US dollars for one token of a model without a price in `models`: `{ input: 0.000003, output: 0.000015 }`, or `none`.
    ///
    /// With `none` the cost of work stays unknown where no agent says it.
    pub default: DefaultPrice,
}

/// What a token costs, unless that is to stay unknown.
#[derive(Debug, Clone, PartialEq)]
pub struct DefaultPrice(pub Option<Price>);

/// US dollars for one token.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Price {
    /// That a model reads.
    pub input: Decimal,
    /// That a model writes.
    pub output: Decimal,
}

impl Default for Price {
    fn default() -> Self {
        Self { input: Decimal::new(0.000_003), output: Decimal::new(0.000_015) }
    }
}

/// What a price looks like.
const WRITE: &str = "write none, or { input: 0.000003, output: 0.000015 }";

impl Value for DefaultPrice {
    fn from_content(content: &Content) -> Result<Self, Mismatch> {
        let entries = match content {
            Content::Mapping(entries) => entries,
            Content::Text(text) if text == "none" => return Ok(Self(None)),
            Content::Text(text) => return Err(Mismatch::new(format!("\"{text}\" is no price"), WRITE)),
            other => return Err(Mismatch::new(other.kind(), WRITE)),
        };
        let mut price = Price::default();
        for Entry { key, value, .. } in entries {
            match key.as_str() {
                "input" => price.input = Decimal::from_content(&value.content)?,
                "output" => price.output = Decimal::from_content(&value.content)?,
                other => return Err(Mismatch::new(format!("\"{other}\" is an unknown key"), WRITE)),
            }
        }
        Ok(Self(Some(price)))
    }
}

impl Serialize for DefaultPrice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Some(price) => price.serialize(serializer),
            None => serializer.serialize_str("none"),
        }
    }
}

json_schema_of!(DefaultPrice, {
    "anyOf": [
        { "const": "none" },
        {
            "type": "object",
            "propertyNames": { "enum": ["input", "output"] },
            "additionalProperties": { "type": "number", "minimum": 0 }
        }
    ]
});

section_keys!(Pricing, {
    default: DefaultPrice(Some(Price::default())),
});
