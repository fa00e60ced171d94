//! What a caller tells an agent in request metadata because the agent's card declares an extension, and only then.

use super::payload::Payload;
use super::{blast, card_params, confidence, cost, effect_domain, hitl_mode};
use crate::card::AgentCard;
use crate::{Json, Metadata};

/// Adds what the extensions of a card expect in a request for a skill.
pub fn stamp_request(card: &AgentCard, skill: &str, metadata: &mut Metadata) {
    let by_skill = [
        (cost::Cost::URI, "x-cost-skill"),
        (confidence::Confidence::URI, "x-confidence-skill"),
        (effect_domain::URI, "x-effect-domain-skill"),
    ];
    for (uri, key) in by_skill {
        if card_params::declared(card, uri).is_some() {
            insert(metadata, key, skill);
        }
    }
    if let Some(radius) = blast::declared_radii(card).get(skill) {
        insert(metadata, "x-blast-radius", radius.name());
    }
    if let Some(policy) = hitl_mode::declared_policies(card).get(skill) {
        insert(metadata, "x-hitl-mode", policy.mode.name());
        if let Some(veto_ttl_ms) = policy.veto_ttl_ms {
            insert(metadata, "x-hitl-veto-ttl-ms", &veto_ttl_ms.to_string());
        }
    }
}

fn insert(metadata: &mut Metadata, key: &str, value: &str) {
    // A text cannot fail to be JSON.
    if let Ok(value) = Json::from_serialize(value) {
        metadata.insert(key, value);
    }
}
