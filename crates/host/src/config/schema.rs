//! The JSON schemas of the files, made from the same types that are read, for editors and for `config schema`.

use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::config::Config;

/// The schema of `switchboard.yaml`.
#[must_use]
pub fn switchboard() -> Schema {
    of_file::<Config>()
}

/// The schema of a file that holds this type.
#[must_use]
pub fn of_file<T: JsonSchema>() -> Schema {
    let mut schema = SchemaGenerator::default().into_root_schema_for::<T>();
    Titles.transform(&mut schema);
    schema
}

/// Takes the first line of each description, which our doc comments keep short, as the title an editor shows.
struct Titles;

impl Transform for Titles {
    fn transform(&mut self, schema: &mut Schema) {
        let description = schema.get("description").and_then(|description| description.as_str()).map(str::to_owned);
        if let Some(description) = description
            && schema.get("title").is_none()
        {
            let title = description.lines().next().unwrap_or_default().trim_end_matches('.').to_owned();
            schema.insert("title".to_owned(), title.into());
        }
        transform_subschemas(self, schema);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// Every property of a schema: where it is, and what it says.
    fn properties(path: &str, schema: &Value, root: &Value, found: &mut Vec<(String, Value)>) {
        let schema = match schema.get("$ref").and_then(Value::as_str) {
            Some(reference) => root.pointer(reference.trim_start_matches('#')).unwrap(),
            None => schema,
        };
        for (key, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            found.push((path.clone(), property.clone()));
            properties(&path, property, root, found);
        }
        for choice in schema.get("anyOf").and_then(Value::as_array).into_iter().flatten() {
            properties(path, choice, root, found);
        }
    }

    #[test]
    fn every_key_has_a_title_and_every_key_that_is_read_is_in_the_schema() {
        let schema = serde_json::to_value(switchboard()).unwrap();
        let mut found = Vec::new();
        properties("", &schema, &schema, &mut found);
        for (path, property) in &found {
            assert!(property["title"].is_string(), "{path} has no title: {property}");
        }
        let overrides = crate::config::Overrides::default();
        let mut reader = crate::config::section::Reader { overrides: Some(&overrides), ..Default::default() };
        reader.read("", None, |root| Config::default().read(root));
        let is_mapping = |path: &str| found.iter().any(|(other, _)| other.starts_with(&format!("{path}.")));
        let mut in_schema: Vec<&str> =
            found.iter().map(|(path, _)| path.as_str()).filter(|path| !is_mapping(path)).collect();
        in_schema.sort_unstable();
        let mut read: Vec<&str> = reader.settings.iter().map(|setting| setting.key.as_str()).collect();
        // Its values are refused, whatever they are.
        read.push("store.url");
        read.sort_unstable();
        assert_eq!(in_schema, read);
    }
}
