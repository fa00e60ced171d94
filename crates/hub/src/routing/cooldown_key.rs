//! What the same work is: the same skill for the same thing.

use switchboard_engine::{CooldownRule, RoutingHints};

use super::RoutingRules;

/// The cooldown of a skill for what the caller says the work is about; all work that says nothing is the same.
pub(super) fn cooldown(rules: &RoutingRules, skill: Option<&str>, hints: &RoutingHints) -> Option<CooldownRule> {
    let skill = skill?;
    let window = rules.cooldowns.get(skill).copied().filter(|window| !window.is_zero())?;
    let about = hints.cooldown_key.as_deref().unwrap_or("-");
    Some(CooldownRule { key: format!("{skill}:{about}"), window })
}
