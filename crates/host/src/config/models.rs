//! `models`: what is known of language models, by name. Agents say which one they have used.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use crate::config::decimal::Decimal;
use crate::config::document::{Content, Entry};
use crate::config::problem::Mismatch;
use crate::config::value::Value;
use crate::json_schema_of;

/// Models by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Models(pub BTreeMap<String, Model>);

/// A language model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Model {
    /// What its provider and its agents call it, where that is not its name here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What it costs.
    pub price: ModelPrice,
}

/// US dollars for a million tokens, as providers list them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelPrice {
    /// That it reads.
    pub input: Decimal,
    /// That it writes.
    pub output: Decimal,
}

/// What a model looks like.
const WRITE: &str =
    "write { model: gpt-5-mini, price: { input: 0.25, output: 2 } }, the price in USD per million tokens";

fn mapping(content: &Content) -> Result<&[Entry], Mismatch> {
    match content {
        Content::Mapping(entries) => Ok(entries),
        other => Err(Mismatch::new(other.kind(), WRITE)),
    }
}

fn unknown(key: &str) -> Mismatch {
    Mismatch::new(format!("\"{key}\" is an unknown key"), WRITE)
}

impl Value for Models {
    fn from_content(content: &Content) -> Result<Self, Mismatch> {
        if matches!(content, Content::Empty) {
            return Ok(Self::default());
        }
        let read = |entry: &Entry| Ok((entry.key.clone(), Model::read(&entry.value.content)?));
        let models: BTreeMap<String, Model> = mapping(content)?.iter().map(read).collect::<Result<_, _>>()?;
        // Which of two prices counts would depend on their order.
        let mut entries: BTreeMap<&str, &str> = BTreeMap::new();
        for (name, model) in &models {
            let called = model.model.as_ref().unwrap_or(name);
            if let Some(other) = entries.insert(called, name) {
                let wrong = format!("\"{other}\" and \"{name}\" are both the model \"{called}\"");
                return Err(Mismatch::new(wrong, "write each model once"));
            }
        }
        Ok(Self(models))
    }
}

impl Model {
    fn read(content: &Content) -> Result<Self, Mismatch> {
        let (mut model, mut price) = (None, None);
        for Entry { key, value, .. } in mapping(content)? {
            match key.as_str() {
                "model" => match Option::<String>::from_content(&value.content)? {
                    Some(name) if name.is_empty() => return Err(Mismatch::new("the name of a model is empty", WRITE)),
                    name => model = name,
                },
                "price" => price = Some(ModelPrice::read(&value.content)?),
                other => return Err(unknown(other)),
            }
        }
        let price = price.ok_or_else(|| Mismatch::new("a model has no price", WRITE))?;
        Ok(Self { model, price })
    }
}

impl ModelPrice {
    fn read(content: &Content) -> Result<Self, Mismatch> {
        let (mut input, mut output) = (None, None);
        for Entry { key, value, .. } in mapping(content)? {
            match key.as_str() {
                "input" => input = Some(Decimal::from_content(&value.content)?),
                "output" => output = Some(Decimal::from_content(&value.content)?),
                other => return Err(unknown(other)),
            }
        }
        // A price for one direction is no price: the other would count as free.
        match (input, output) {
            (Some(input), Some(output)) => Ok(Self { input, output }),
            _ => Err(Mismatch::new("a price lacks input or output", WRITE)),
        }
    }
}

impl Serialize for Models {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(&self.0)
    }
}

json_schema_of!(Models, {
    "type": "object",
    "additionalProperties": {
        "type": "object",
        "additionalProperties": false,
        "required": ["price"],
        "properties": {
            "model": { "type": "string", "minLength": 1 },
            "price": {
                "type": "object",
                "additionalProperties": false,
                "required": ["input", "output"],
                "properties": {
                    "input": { "type": "number", "minimum": 0 },
                    "output": { "type": "number", "minimum": 0 }
                }
            }
        }
    }
});
