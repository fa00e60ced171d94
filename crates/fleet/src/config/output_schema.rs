//! The file with the JSON Schema of a skill's results, read and checked with the configuration.

use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};
use switchboard_a2a::Json;
use switchboard_host::config::problem::Origin;
use switchboard_host::config::regular_file;
use switchboard_host::config::section::Section;
use switchboard_host::json_schema_of;

/// A schema, and where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputSchema {
    /// As it is written.
    pub file: String,
    /// What is in it.
    pub schema: Json,
}

impl OutputSchema {
    const KEY: &'static str = "outputSchema";

    pub(super) fn read(section: &mut Section<'_, '_>) -> Option<Self> {
        let file = section.require::<String>(Self::KEY)?;
        let Some(path) = place(&section.origin_of(Self::KEY), &file) else {
            let right = "configure this agent in agents.yaml, where it may name files of the server";
            section.refuse(Self::KEY, "names a file of the server", right);
            return None;
        };
        let shown = path.display();
        let text = match regular_file::read_to_string(&path) {
            Ok(text) => text,
            Err(error) => {
                let wrong = format!("{shown} cannot be read ({error})");
                section.refuse(Self::KEY, wrong, "name a file with a JSON Schema, from the workspace folder on");
                return None;
            }
        };
        match compiled(&text) {
            Ok(schema) => Some(Self { file, schema }),
            Err(problem) => {
                section.refuse(Self::KEY, format!("{shown} is no JSON Schema: {problem}"), "correct that file");
                None
            }
        }
    }
}

/// Where a relative path of a file of agents leads: from the workspace folder on. Nothing where it was not a file that
/// named it.
fn place(origin: &Origin, file: &str) -> Option<PathBuf> {
    let Origin::File { file: source, .. } = origin else { return None };
    let source = Path::new(&**source);
    source.extension().filter(|extension| *extension == "yaml" || *extension == "yml")?;
    let folder = source.parent()?;
    let is_drop_in = folder.file_name().is_some_and(|name| name == "agents.d");
    let workspace = if is_drop_in { folder.parent()? } else { folder };
    Some(workspace.join(file))
}

fn compiled(text: &str) -> Result<Json, String> {
    let schema: serde_json::Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    jsonschema::validator_for(&schema).map_err(|error| format!("{}: {error}", error.instance_path()))?;
    Json::from_serialize(&schema).map_err(|error| error.to_string())
}

impl Serialize for OutputSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.file)
    }
}

json_schema_of!(OutputSchema, { "type": "string" });
