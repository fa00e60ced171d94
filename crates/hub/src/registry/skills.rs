//! What a remote agent can do: the skills of its configuration, which win by their id and are never pruned, and those of
//! its card, which go when the card drops them.

use switchboard_a2a::card::{AgentCard, AgentSkill};
use switchboard_a2a::extension::effect_domain::declared_effects;
use switchboard_engine::Skill;
use switchboard_fleet::config::remote_agent::RemoteAgent;

/// The longest id of a skill that is taken from a card, in characters: ids stand in sums, alerts and lines of the journal.
const LONGEST_ID: usize = 128;
/// Of a longer one so many characters are shown.
const SHOWN: usize = 40;
/// Of so many skills it is said that they are left out.
const TOLD: usize = 8;

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
        if !skill.id.is_empty() && !is_too_long(&skill.id) && skills.iter().all(|(known, _)| known.id != skill.id) {
            skills.push((of_card(skill), SkillSource::Card));
        }
    }
    for (skill, _) in &mut skills {
        let of_card = card.and_then(|card| card.skills.iter().find(|of_card| of_card.id == skill.id));
        if let Some(of_card) = of_card {
            skill.input_modes.clone_from(&of_card.input_modes);
            skill.output_modes.clone_from(&of_card.output_modes);
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

/// What is wrong with the skills of a card, which are left out therefore.
pub(super) fn problems_of(card: &AgentCard) -> Vec<String> {
    let too_long = card.skills.iter().filter(|skill| is_too_long(&skill.id)).take(TOLD);
    let problem = |skill: &AgentSkill| {
        let beginning: String = skill.id.chars().take(SHOWN).collect();
        format!("a skill of its card is left out, since its id has more than {LONGEST_ID} characters: {beginning:?}…")
    };
    too_long.map(problem).collect()
}

fn is_too_long(id: &str) -> bool {
    id.chars().nth(LONGEST_ID).is_some()
}

fn of_card(skill: &AgentSkill) -> Skill {
    let mut shown = Skill::new(&skill.id, &skill.name, &skill.description);
    shown.tags.clone_from(&skill.tags);
    shown.examples.clone_from(&skill.examples);
    shown
}
