//! The JSON schemas of the files, made from the same types that are read, for editors and for `config schema`.

use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::config::Config;

/// The schema of `switchboard.yaml`.
pub fn switchboard() -> Schema {
    of_file::<Config>()
}

/// The schema of a file that holds this type.
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
