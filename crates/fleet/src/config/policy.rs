//! `policy` of an agent: how far people take part before its skills run, and while they do.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use switchboard_host::config::review_mode::{BlastRadius, OnTimeout, ReviewMode};
use switchboard_host::config::section::Section;
use switchboard_host::config::time_span::TimeSpan;
use switchboard_host::word_setting;

/// How far people take part in an agent's work.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(default, deny_unknown_fields)]
pub struct Policy {
    /// For all of its skills.
    #[serde(flatten)]
    pub agent: SkillPolicy,
    /// For single skills, by name. What one does not say is as for the agent.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub skills: BTreeMap<String, SkillPolicy>,
}

/// How far people take part in a skill.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(default, deny_unknown_fields)]
pub struct SkillPolicy {
    /// How much they take part.
    ///
    /// `autonomous`: not at all. `notification`: they are told. `veto`: it begins after `vetoTtl` unless they reject it.
    /// `gated`: it begins once they approve. `compound`: the same, and they answer each of its questions. Without it the
    /// stricter of what the agent's card says and `hub.inbox.minimum` for the radius.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<ReviewMode>,
    /// How far its effects reach, in place of what the agent's card says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub radius: Option<BlastRadius>,
    /// Who decides: operators, or the caller as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reviewer: Option<PolicyReviewer>,
    /// Time for a veto. Without it `hub.inbox.vetoTtl`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub veto_ttl: Option<TimeSpan>,
    /// Time for an approval. Without it `hub.inbox.gateTtl`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl: Option<TimeSpan>,
    /// What happens after that time. Without it `hub.inbox.onTimeout`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_timeout: Option<OnTimeout>,
}

/// Who decides whether a skill runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PolicyReviewer {
    /// The task's owner, and operators of the agent.
    Caller,
    /// Operators of the agent alone.
    Operator,
}

impl Policy {
    pub(crate) fn read(&mut self, section: &mut Section<'_, '_>) {
        self.agent.read(section);
        section.section("skills", |section| {
            for name in section.names() {
                let mut policy = SkillPolicy::default();
                section.section(name.clone(), |section| policy.read(section));
                self.skills.insert(name, policy);
            }
        });
    }

    /// Refuses skills that the agent does not have, where the file says which it has. One that is misspelt would not be
    /// guarded.
    pub(crate) fn check_names<'a>(&self, section: &mut Section<'_, '_>, skills: impl Iterator<Item = &'a str>) {
        let known: Vec<&str> = skills.collect();
        if known.is_empty() {
            return;
        }
        for name in self.skills.keys().filter(|name| !known.contains(&name.as_str())) {
            let wrong = format!("skills names \"{name}\", which is no skill of this agent");
            section.refuse("policy", wrong, format!("its skills are {}", known.join(", ")));
        }
    }

    /// Whether it says the mode of a skill, whatever a card asks for.
    pub fn says_mode_of(&self, skill: &str) -> bool {
        self.agent.mode.is_some() || self.skills.get(skill).is_some_and(|policy| policy.mode.is_some())
    }

    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl SkillPolicy {
    fn read(&mut self, section: &mut Section<'_, '_>) {
        section.read("mode", &mut self.mode);
        section.read("radius", &mut self.radius);
        section.read("reviewer", &mut self.reviewer);
        section.read("vetoTtl", &mut self.veto_ttl);
        section.read("ttl", &mut self.ttl);
        section.read("onTimeout", &mut self.on_timeout);
        for (key, time) in [("vetoTtl", self.veto_ttl), ("ttl", self.ttl)] {
            if let Some(time) = time {
                section.refuse_zero(key, time);
            }
        }
    }
}

word_setting!(PolicyReviewer: "operator" => Operator or "caller" => Caller);
