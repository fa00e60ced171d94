//! A skill of an agent: what the card says of it, and what requests that name it get.

use schemars::JsonSchema;
use serde::Serialize;
use switchboard_host::config::section::Section;

use crate::config::agents::Kind;
use crate::config::cli_agent::permission_checks;
use crate::config::cli_agent::permissions::SkillPermissions;
use crate::config::output_schema::OutputSchema;
use crate::config::skill_effect::SkillEffect;

/// A skill on the card.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct Skill {
    /// Name.
    pub name: String,
    /// Description.
    pub description: String,
    /// Words to find it by.
    #[schemars(default)]
    pub tags: Vec<String>,
    /// Words in a message to the root address that ask for it, if the caller names neither an agent nor a skill.
    ///
    /// Case does not count, and only whole words do. The rules of `hub.routing.keywords` go first.
    #[schemars(default)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keywords: Vec<String>,
    /// What a program may do for requests that name this skill in `metadata.skill`, with `cli`.
    ///
    /// A caller chooses the skill, so these are what every caller of the agent may have. A later message of the same
    /// conversation that names no skill keeps it.
    #[schemars(default)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<SkillPermissions>,
    /// What it is expected to change outside of its tasks.
    ///
    /// `POST /api/plan` picks skills by it.
    #[schemars(default)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<SkillEffect>,
    /// A file with the JSON Schema that its results fit.
    ///
    /// A relative path starts at the workspace folder. A result is checked before the task ends; one that does not fit is
    /// asked for once more, and then the task fails with `invalid_result`.
    #[schemars(default)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<OutputSchema>,
}

impl Skill {
    /// Reads the list of an agent's skills; `kind` is nothing for an agent elsewhere.
    pub(super) fn read_all(section: &mut Section<'_, '_>, mut kind: Option<&mut Kind>) -> Vec<Self> {
        let mut skills = Vec::new();
        // Some fleets list names only.
        section.each_or_text("skills", &["name", "description"], |section, _| {
            let Some(skill) = Self::read(section, kind.as_deref_mut()) else { return };
            if skills.iter().any(|known: &Self| known.name == skill.name) {
                let wrong = format!("two skills are called \"{}\"", skill.name);
                section.refuse("name", wrong, "give each a name of its own: requests choose a skill by it");
            }
            skills.push(skill);
        });
        skills
    }

    fn read(section: &mut Section<'_, '_>, kind: Option<&mut Kind>) -> Option<Self> {
        let name = section.require::<String>("name");
        let permissions = Self::permissions(section, name.as_deref(), kind);
        let description = section.require::<String>("description");
        let mut tags = Vec::new();
        section.read("tags", &mut tags);
        let mut keywords: Vec<String> = Vec::new();
        section.read("keywords", &mut keywords);
        if keywords.iter().any(|keyword| keyword.trim().is_empty()) {
            section.refuse("keywords", "one of them is empty", "remove it, or write a word that asks for this skill");
        }
        let effects = SkillEffect::read_all(section);
        let output_schema = OutputSchema::read(section);
        for key in ["name", "description"] {
            if !section.is_set(key) {
                section.refuse_all(format!("has no {key}"), format!("add {key}: with a text for the card"));
            }
        }
        Some(Self { name: name?, description: description?, tags, keywords, permissions, effects, output_schema })
    }

    /// Reads what a program may do for it, and leaves it with the program.
    fn permissions(
        section: &mut Section<'_, '_>,
        name: Option<&str>,
        kind: Option<&mut Kind>,
    ) -> Option<SkillPermissions> {
        if !section.is_set("permissions") {
            section.mark_known("permissions");
            return None;
        }
        let Some(Kind::Cli(agent)) = kind else {
            section.mark_known("permissions");
            section.refuse("permissions", "only a program has permissions", "remove it, or write cli: for the agent");
            return None;
        };
        let (own, permissions) = permission_checks::read_skill(section, agent);
        agent.skill_permissions.extend(name.map(|name| (name.to_owned(), permissions)));
        Some(own)
    }
}
