//! What a skill is expected to change outside of its tasks.

use schemars::JsonSchema;
use serde::Serialize;
use switchboard_host::config::problem::Mismatch;
use switchboard_host::config::section::Section;
use switchboard_host::config::value::Scalar;
use switchboard_host::json_schema_of;

/// A change that a skill is expected to make.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct SkillEffect {
    /// Part of the world, such as `board`.
    pub domain: String,
    /// Where in it, such as `data.open`.
    pub path: String,
    /// By how much; below zero if it shrinks.
    pub delta: Delta,
    /// How sure that is, from 0 to 1.
    #[schemars(default)]
    pub confidence: Confidence,
}

/// A difference.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Delta(pub f64);

/// A number from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Confidence(pub f64);

impl Default for Confidence {
    fn default() -> Self {
        Self(1.0)
    }
}

impl SkillEffect {
    pub(super) fn read_all(section: &mut Section<'_, '_>) -> Vec<Self> {
        let mut effects = Vec::new();
        section.each("effects", |section, _| {
            let domain = section.require::<String>("domain");
            let path = section.require::<String>("path");
            let delta = section.require::<Delta>("delta");
            let mut confidence = Confidence::default();
            section.read("confidence", &mut confidence);
            for key in ["domain", "path", "delta"] {
                if !section.is_set(key) {
                    section.refuse_all(
                        format!("has no {key}"),
                        "write { domain: board, path: data.open, delta: -1, confidence: 0.8 }",
                    );
                }
            }
            if let (Some(domain), Some(path), Some(delta)) = (domain, path, delta) {
                effects.push(Self { domain, path, delta, confidence });
            }
        });
        effects
    }
}

impl Scalar for Delta {
    const WRITE: &'static str = "a number other than zero, such as -1";

    fn from_text(text: &str) -> Result<Self, Mismatch> {
        let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number != 0.0);
        number.map(Self).ok_or_else(|| Self::mismatch(text, "is no difference"))
    }
}

impl Scalar for Confidence {
    const WRITE: &'static str = "a number from 0 to 1, such as 0.8";

    fn from_text(text: &str) -> Result<Self, Mismatch> {
        let number = text.parse().ok().filter(|number: &f64| (0.0..=1.0).contains(number));
        number.map(Self).ok_or_else(|| Self::mismatch(text, "is not between 0 and 1"))
    }
}

json_schema_of!(Delta, { "type": "number", "not": { "const": 0 } });

json_schema_of!(Confidence, { "type": "number", "minimum": 0, "maximum": 1 });
