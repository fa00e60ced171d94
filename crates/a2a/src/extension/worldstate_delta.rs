//! `worldstate-delta-v1`: what an agent has changed outside of its task, as it observed it.
//!
//! The effects that a skill declares are in [`effect_domain`](super::effect_domain); these are the ones it had.

use serde::{Deserialize, Serialize};

use super::payload::Payload;
use crate::Json;

/// The changes of one artifact, in order. A change is known by its task, its event and its index here.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorldstateDelta {
    /// The changes.
    pub deltas: Vec<Delta>,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Delta {
    /// The part of the world, such as `board`.
    pub domain: String,
    /// Where in it, such as `data.open`.
    pub path: String,
    /// How it changed.
    pub op: DeltaOp,
    /// The new value, the difference, or what was added.
    pub value: Json,
}

/// How a value changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeltaOp {
    /// It has a new value.
    Set,
    /// A number grew by the value, or shrank.
    Inc,
    /// A list got the value as its last element.
    Push,
}

impl Delta {
    /// By how much a number changed, if that is how.
    pub fn increment(&self) -> Option<f64> {
        (self.op == DeltaOp::Inc).then(|| self.value.read().ok()).flatten()
    }
}

impl Payload for WorldstateDelta {
    const URI: &'static str = "https://proto-labs.ai/a2a/ext/worldstate-delta-v1";
    const MEDIA_TYPES: &'static [&'static str] =
        &["application/vnd.protolabs.worldstate-delta-v1+json", "application/vnd.protolabs.worldstate-delta+json"];

    /// Entries that are no change are left out.
    fn read(payload: &Json) -> Option<Self> {
        #[derive(Deserialize)]
        struct Wire {
            deltas: Vec<Json>,
        }
        let wire: Wire = payload.read().ok()?;
        let deltas: Vec<Delta> = wire.deltas.iter().filter_map(|delta| delta.read().ok()).collect();
        (!deltas.is_empty()).then_some(Self { deltas })
    }
}
