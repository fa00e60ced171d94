//! Names of variables that a program is shown. Only names: their values come from the server's environment, so that no
//! secret stands in a file.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use switchboard_host::config::problem::Mismatch;
use switchboard_host::config::value::Scalar;

/// The name of a variable of the environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct VariableName(String);

impl VariableName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Scalar for VariableName {
    const WRITE: &'static str = "the name of a variable, such as ANTHROPIC_API_KEY";

    fn from_text(text: &str) -> Result<Self, Mismatch> {
        if let Some((name, _)) = text.split_once('=') {
            // What follows may be a secret, so it is not repeated.
            let wrong = format!("\"{name}=…\" has a value");
            return Err(Mismatch::new(wrong, "write only the name and set the variable for the server"));
        }
        let well_formed = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        if !well_formed {
            let wrong = format!("\"{text}\" is not the name of a variable");
            return Err(Mismatch::new(wrong, format!("write {}", Self::WRITE)));
        }
        Ok(Self(text.to_owned()))
    }
}

impl JsonSchema for VariableName {
    fn schema_name() -> Cow<'static, str> {
        "VariableName".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_and_values_are_not_repeated() {
        for name in ["PATH", "_x", "npm_config_cache", "A1"] {
            assert_eq!(VariableName::from_text(name).unwrap().as_str(), name);
        }
        for name in ["", "1A", "A-B", "A B", "$HOME", "LC_*"] {
            assert!(VariableName::from_text(name).unwrap_err().wrong.contains(name), "{name}");
        }
        let secret = VariableName::from_text("KEY=hunter2").unwrap_err();
        assert!(secret.wrong.contains("KEY=…") && !format!("{secret:?}").contains("hunter2"), "{secret:?}");
    }
}
