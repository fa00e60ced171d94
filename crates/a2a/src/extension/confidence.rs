//! `confidence-v1`: how sure an agent is of its own result.

use serde::Serialize;

use super::members::{Members, integral};
use super::payload::Payload;
use crate::Json;

/// How sure an agent is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Confidence {
    /// From 0 to 1.
    #[serde(serialize_with = "integral")]
    pub confidence: f64,
    /// Why, in the agent's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<String>,
    /// Whether the agent counts the task as a success.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub success: Option<bool>,
}

impl Payload for Confidence {
    const URI: &'static str = "https://proto-labs.ai/a2a/ext/confidence-v1";
    const MEDIA_TYPES: &'static [&'static str] = &["application/vnd.protolabs.confidence-v1+json"];

    /// Values outside the range become its ends.
    fn read(payload: &Json) -> Option<Self> {
        let members = Members::of(payload)?;
        Some(Self {
            confidence: members.number(&["confidence"])?.clamp(0.0, 1.0),
            explanation: members.text(&["explanation", "confidenceExplanation"]),
            success: members.flag(&["success"]),
        })
    }
}
