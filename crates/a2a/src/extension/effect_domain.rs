//! `effect-domain-v1`: on a card, what each skill is expected to change outside of its task. A planner picks by it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::card_params;
use super::members::{Members, integral};
use crate::Json;
use crate::card::{AgentCard, AgentExtension};

/// The extension's URI.
pub const URI: &str = "https://proto-labs.ai/a2a/ext/effect-domain-v1";

/// What a skill is expected to change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Effect {
    /// The part of the world, such as `board`.
    pub domain: String,
    /// Where in it, such as `data.open`.
    pub path: String,
    /// By how much.
    #[serde(serialize_with = "integral")]
    pub delta: f64,
    /// How sure that is, from 0 to 1.
    #[serde(serialize_with = "integral")]
    pub confidence: f64,
}

#[derive(Serialize)]
struct SkillEffects<'a> {
    effects: &'a [Effect],
}

/// The effects that a card declares, by skill. Skills without any are left out.
pub fn declared_effects(card: &AgentCard) -> BTreeMap<String, Vec<Effect>> {
    card_params::of_skills(card, URI, |_, said| {
        #[derive(Deserialize)]
        struct Wire {
            effects: Vec<Json>,
        }
        let wire: Wire = said.read().ok()?;
        let effects: Vec<Effect> = wire.effects.iter().filter_map(read).collect();
        (!effects.is_empty()).then_some(effects)
    })
}

/// The extension for a card.
pub fn extension(effects: &BTreeMap<String, Vec<Effect>>) -> AgentExtension {
    let skills = effects.iter().map(|(skill, effects)| (skill.clone(), SkillEffects { effects })).collect();
    card_params::extension(URI, &skills)
}

/// An effect that does not say how sure it is counts as sure.
fn read(effect: &Json) -> Option<Effect> {
    let members = Members::of(effect)?;
    Some(Effect {
        domain: members.text(&["domain"])?,
        path: members.text(&["path"])?,
        delta: members.number(&["delta"])?,
        confidence: members.number(&["confidence"]).unwrap_or(1.0).clamp(0.0, 1.0),
    })
}
