//! Results that fit a schema: checks what an agent has come to for a skill with `outputSchema`, and says what to mend.
//!
//! Programs and many other agents answer with text. One that is JSON counts as the result, which is added as a data part, so
//! that callers find it in one place whatever the agent is.

use std::collections::BTreeMap;
use std::sync::Arc;

use switchboard_a2a::extension::output_schema::{URI, extension, media_type};
use switchboard_a2a::{Artifact, Json, Metadata, Part, Task};
use switchboard_engine::{ResultCheck, ResultVerdict, Served};

/// The name of the artifact that is added.
const ARTIFACT: &str = "structured-result";
/// The most problems that are told.
const PROBLEMS: usize = 10;
/// So much of a problem or a schema is told: they may repeat all of a result.
const PROBLEM_CHARACTERS: usize = 300;
const SCHEMA_CHARACTERS: usize = 16 << 10;

/// An agent with the schemas of its skills on its card and results that fit them.
pub fn with_output_schemas(mut served: Served) -> Served {
    let with_schema = served.manifest.skills.iter();
    let schemas: BTreeMap<String, Json> =
        with_schema.filter_map(|skill| Some((skill.id.clone(), skill.output_schema.clone()?))).collect();
    if schemas.is_empty() {
        return served;
    }
    served.manifest.extensions.retain(|known| known.uri != URI);
    served.manifest.extensions.push(extension(&schemas));
    let compiled = schemas.into_iter().filter_map(|(skill, schema)| Some((skill, Schema::compile(&schema)?)));
    served.checked(Arc::new(OutputSchemas(compiled.collect())))
}

/// By skill.
struct OutputSchemas(BTreeMap<String, Schema>);

struct Schema {
    validator: jsonschema::Validator,
    text: String,
}

impl Schema {
    /// The configuration has compiled it before.
    fn compile(schema: &Json) -> Option<Self> {
        let validator = jsonschema::validator_for(&schema.read().ok()?).ok()?;
        Some(Self { validator, text: schema.as_str().to_owned() })
    }
}

impl ResultCheck for OutputSchemas {
    fn check(&self, task: &Task, skill: &str) -> ResultVerdict {
        let Some(schema) = self.0.get(skill) else { return ResultVerdict::Good };
        let Some((result, is_text)) = result_of(task, skill) else {
            return bad(schema, "there is neither a data part nor a text that is JSON".to_owned());
        };
        let problems: Vec<String> = schema
            .validator
            .iter_errors(&result)
            .take(PROBLEMS)
            .map(|error| shortened(&format!("{}: {error}", error.instance_path()), PROBLEM_CHARACTERS))
            .collect();
        if !problems.is_empty() {
            return bad(schema, problems.join("; "));
        }
        match is_text.then(|| artifact(skill, &result)).flatten() {
            Some(artifact) => ResultVerdict::GoodAs(Box::new(artifact)),
            None => ResultVerdict::Good,
        }
    }
}

fn bad(schema: &Schema, problem: String) -> ResultVerdict {
    let text = shortened(&schema.text, SCHEMA_CHARACTERS);
    let request = format!(
        "The result is not as it has to be: {problem}. Answer once more with nothing but the result, as JSON that fits \
         this JSON Schema: {text}"
    );
    ResultVerdict::Bad { problem: format!("the result does not fit its schema: {problem}"), request }
}

/// The result of a task, and whether it is in a text: the newest data part that says it is one, else the text that the task
/// ends with if that is JSON, else the newest data part that does not say it is something else.
fn result_of(task: &Task, skill: &str) -> Option<(serde_json::Value, bool)> {
    let status = task.status.message.iter().flat_map(|message| &message.parts);
    let parts: Vec<&Part> = task.artifacts.iter().flat_map(|artifact| &artifact.parts).chain(status.clone()).collect();
    let named = media_type(skill);
    let of_type = parts.iter().rev().find(|part| said_type(part).as_deref() == Some(&*named));
    if let Some(data) = of_type.and_then(|part| part.as_data()) {
        return Some((data.read().ok()?, false));
    }
    let said: Vec<&str> = status.filter_map(Part::as_text).collect();
    let last = task.artifacts.iter().rev().find(|artifact| artifact.parts.iter().any(|part| part.as_text().is_some()));
    let last = last.map(|last| last.parts.iter().filter_map(Part::as_text).collect::<String>());
    if let Some(result) = read_text(&said.concat()).or_else(|| read_text(&last.unwrap_or_default())) {
        return Some((result, true));
    }
    let is_result = |part: &&&Part| said_type(part).is_none_or(|said| !said.ends_with("-v1+json"));
    let data = parts.iter().rev().filter(is_result).find_map(|part| part.as_data())?;
    Some((data.read().ok()?, false))
}

/// The media type that a data part says it has.
fn said_type(part: &Part) -> Option<String> {
    part.as_data()?;
    let said = part.metadata.as_ref().and_then(|metadata| metadata.get("mimeType")).and_then(Json::as_text);
    said.or_else(|| part.media_type.clone())
}

/// A text that is an object or a list, in a code block or not.
fn read_text(text: &str) -> Option<serde_json::Value> {
    let text = text.trim();
    let block = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let text = block.map_or(text, |block| block.strip_prefix("json").unwrap_or(block).trim());
    if !text.starts_with(['{', '[']) {
        return None;
    }
    Json::parse(text).ok()?.read().ok()
}

fn artifact(skill: &str, result: &serde_json::Value) -> Option<Artifact> {
    let mut metadata = Metadata::default();
    metadata.insert("mimeType", Json::from_serialize(&media_type(skill)).ok()?);
    let data = Part::data(Json::from_serialize(result).ok()?);
    let part = Part { metadata: Some(metadata), media_type: Some("application/json".to_owned()), ..data };
    Some(Artifact::new(vec![part]).named(ARTIFACT))
}

fn shortened(text: &str, characters: usize) -> String {
    let mut shown: String = text.chars().take(characters).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}
