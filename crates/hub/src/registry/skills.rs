//! What a remote agent can do: the skills of its configuration, which win by their id and are never pruned, and those of
//! its card, which go when the card drops them.

use switchboard_a2a::card::{AgentCard, AgentSkill};
use switchboard_a2a::extension::effect_domain::declared_effects;
use switchboard_engine::Skill;
use switchboard_fleet::config::remote_agent::RemoteAgent;

/// Where a skill comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkillSource {
    Yaml,
    Card,
}

/// Reconciles the skills of a configuration with those of a card.
pub fn reconcile(agent: &RemoteAgent, card: Option<&AgentCard>) -> Vec<(Skill, SkillSource)> {
    let configured = agent.serving.skills.iter().map(switchboard_fleet::skill);
    let mut skills: Vec<_> = configured.map(|skill| (skill, SkillSource::Yaml)).collect();
    for skill in card.into_iter().flat_map(|card| &card.skills) {
        if !skill.id.is_empty() && skills.iter().all(|(known, _)| known.id != skill.id) {
            skills.push((of_card(skill), SkillSource::Card));
        }
    }
    let mut declared = card.map(declared_effects).unwrap_or_default();
    for (skill, _) in &mut skills {
        // What the configuration declares replaces what the card does.
        if let (true, Some(effects)) = (skill.effects.is_empty(), declared.remove(&skill.id)) {
            skill.effects = effects;
        }
    }
    skills
}

fn of_card(skill: &AgentSkill) -> Skill {
    let mut shown = Skill::new(&skill.id, &skill.name, &skill.description);
    shown.tags.clone_from(&skill.tags);
    shown.examples.clone_from(&skill.examples);
    shown
}
