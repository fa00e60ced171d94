//! The rules of routing as the configuration has them.

use switchboard_engine::AgentName;
use switchboard_host::config::hub::Hub;
use switchboard_host::config::routing::{KeywordPlace, UnknownSkill};

use super::RoutingRules;
use super::keywords::{KeywordMatch, KeywordRule};

impl RoutingRules {
    /// Those of a configuration.
    pub fn configured(hub: &Hub) -> Self {
        let name = |name: &switchboard_host::config::agent_name::AgentName| AgentName::from(name.as_str());
        let keywords = hub.routing.keywords.0.iter().map(|keyword| KeywordRule {
            text: keyword.text.clone(),
            by: match keyword.by {
                KeywordPlace::Word => KeywordMatch::Word,
                KeywordPlace::Substring => KeywordMatch::Substring,
            },
            agent: keyword.agent.as_ref().map(name),
            skill: keyword.skill.clone(),
        });
        let cooldowns = hub.routing.cooldowns.0.iter().map(|(skill, window)| (skill.clone(), window.duration()));
        Self {
            helm: hub.roles.helm.as_ref().map(name),
            refuse_unknown_skills: hub.routing.unknown_skill == UnknownSkill::Refuse,
            keywords: keywords.collect(),
            cooldowns: cooldowns.collect(),
            max_targets: hub.fanout.max.get(),
        }
    }
}
