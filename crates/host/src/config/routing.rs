//! `hub.roles` and `hub.routing`: which agent gets a message to the root address.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use crate::config::agent_name::AgentName;
use crate::config::document::{Content, Entry};
use crate::config::problem::Mismatch;
use crate::config::time_span::TimeSpan;
use crate::config::value::Value;
use crate::{json_schema_of, section_keys, word_setting};

/// Agents with a part of their own.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(default, deny_unknown_fields))]
#[serde(rename_all = "camelCase")]
pub struct Roles {
    /// The agent that serves what no rule of routing decides, in place of `server.defaultAgent`.
    ///
    /// `switchboard config reload` applies a change.
    pub helm: Option<AgentName>,
    /// The agent that reviews. It is shown and has no effect.
    pub reviewer: Option<AgentName>,
}

/// Which agent gets a message to the root address.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(default, deny_unknown_fields))]
#[serde(rename_all = "camelCase")]
pub struct Routing {
    /// What happens to a message that asks for a skill that no agent has.
    ///
    /// `default` gives it to the default agent, `refuse` answers with the nearest names. `switchboard config
    /// reload` applies a change.
    pub unknown_skill: UnknownSkill,
    /// Texts in a message that pick an agent or a skill, if the caller names neither.
    ///
    /// The first that matches counts. Each is `{ match: "ship it", by: word, agent: releaser, skill: release }`; `by` is
    /// `word` (the default) or `substring`, and one of `agent` and `skill` is needed. Case does not count.
    /// `switchboard config reload` applies a change.
    pub keywords: Keywords,
    /// By skill: time in which the same work is not done again.
    ///
    /// The same work is the same skill with the same `cooldownKey`, else for the same pull request, issue or repository
    /// in `metadata.github`. A message that comes too early is refused with `COOLDOWN`. `switchboard config
    /// reload` applies a change.
    pub cooldowns: Cooldowns,
}

/// What happens to a skill that no agent has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum UnknownSkill {
    /// The default agent gets the message.
    Default,
    /// It is answered with the nearest names.
    Refuse,
}

word_setting!(UnknownSkill: "default" => Default or "refuse" => Refuse);

/// Keyword rules, in order.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Keywords(pub Vec<Keyword>);

/// A text, and what it picks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Keyword {
    /// The text to look for.
    #[serde(rename = "match")]
    pub text: String,
    /// Where it may be.
    pub by: KeywordPlace,
    /// The agent that gets the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    /// The skill that it asks for then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
}

/// Where a keyword may be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum KeywordPlace {
    /// Between characters that are no part of a word.
    #[default]
    Word,
    /// Anywhere.
    Substring,
}

word_setting!(KeywordPlace: "word" => Word or "substring" => Substring);

/// Times by skill.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cooldowns(pub BTreeMap<String, TimeSpan>);

impl Serialize for Cooldowns {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(&self.0)
    }
}

impl Value for Keywords {
    fn from_content(content: &Content) -> Result<Self, Mismatch> {
        match content {
            Content::List(items) => {
                items.iter().map(|item| Keyword::read(&item.content)).collect::<Result<_, _>>().map(Self)
            }
            Content::Empty => Ok(Self::default()),
            other => Err(Mismatch::new(other.kind(), format!("write a list, each item {KEYWORD}"))),
        }
    }
}

/// What a keyword rule looks like.
const KEYWORD: &str = "{ match: TEXT, by: word or substring, agent: NAME, skill: ID }";

impl Keyword {
    fn read(content: &Content) -> Result<Self, Mismatch> {
        let Content::Mapping(entries) = content else {
            return Err(Mismatch::new(content.kind(), format!("write {KEYWORD}")));
        };
        let (mut text, mut by, mut agent, mut skill) = (None, KeywordPlace::Word, None, None);
        for Entry { key, value, .. } in entries {
            match key.as_str() {
                "match" => text = Some(String::from_content(&value.content)?),
                "by" => by = KeywordPlace::from_content(&value.content)?,
                "agent" => agent = Option::from_content(&value.content)?,
                "skill" => skill = Option::<String>::from_content(&value.content)?,
                other => return Err(Mismatch::new(format!("{other} is no key here"), format!("write {KEYWORD}"))),
            }
        }
        let Some(text) = text.filter(|text| !text.trim().is_empty()) else {
            return Err(Mismatch::new("a rule has no match", format!("write {KEYWORD}")));
        };
        if agent.is_none() && skill.is_none() {
            return Err(Mismatch::new(format!("\"{text}\" picks nothing"), "add an agent or a skill to it"));
        }
        Ok(Self { text, by, agent, skill })
    }
}

impl Value for Cooldowns {
    fn from_content(content: &Content) -> Result<Self, Mismatch> {
        let entries = match content {
            Content::Mapping(entries) => entries,
            Content::Empty => return Ok(Self::default()),
            other => return Err(Mismatch::new(other.kind(), "write a mapping of skills and times")),
        };
        let read = |entry: &Entry| Ok((entry.key.clone(), TimeSpan::from_content(&entry.value.content)?));
        entries.iter().map(read).collect::<Result<_, _>>().map(Self)
    }
}

json_schema_of!(Keywords, {
    "type": "array",
    "items": {
        "type": "object",
        "additionalProperties": false,
        "required": ["match"],
        "anyOf": [{ "required": ["agent"] }, { "required": ["skill"] }],
        "properties": {
            "match": { "type": "string", "minLength": 1 },
            "by": { "enum": ["word", "substring"] },
            "agent": { "type": "string" },
            "skill": { "type": "string" }
        }
    }
});
json_schema_of!(Cooldowns, { "type": "object", "additionalProperties": { "type": "string" } });

section_keys!(Roles, {
    helm: None,
    reviewer: None,
});

section_keys!(Routing, {
    unknown_skill: UnknownSkill::Default,
    keywords: Keywords::default(),
    cooldowns: Cooldowns::default(),
});
