//! Output schemas: on a card, the JSON Schema that the result of each skill fits, under `params.skills.NAME.schema`.

use std::collections::BTreeMap;

use serde::Serialize;

use super::card_params;
use crate::Json;
use crate::card::AgentExtension;

/// The extension's URI.
pub const URI: &str = "urn:switchboard:a2a:output-schema:v1";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SkillResult<'a> {
    media_type: String,
    schema: &'a Json,
}

/// The media type of a skill's result.
pub fn media_type(skill: &str) -> String {
    format!("application/vnd.protolabs.{skill}+json")
}

/// The extension for a card, with the schema of each skill that has one.
pub fn extension(schemas: &BTreeMap<String, Json>) -> AgentExtension {
    let result = |(skill, schema)| (String::clone(skill), SkillResult { media_type: media_type(skill), schema });
    let skills: BTreeMap<String, SkillResult<'_>> = schemas.iter().map(result).collect();
    let description = "Results of these skills have a data part that fits its JSON Schema".to_owned();
    AgentExtension { description: Some(description), ..card_params::extension(URI, &skills) }
}
