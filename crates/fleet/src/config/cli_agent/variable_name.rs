//! Names of variables that a program is shown. Only names: their values come from the server's environment, so that no
//! secret stands in a file.

use serde::Serialize;
use switchboard_host::config::problem::Mismatch;
use switchboard_host::config::value::Scalar;
use switchboard_host::json_schema_of;

/// The name of a variable of the environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct VariableName(String);

impl VariableName {
    /// The name as text.
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
            return Err(Self::mismatch(text, "is not the name of a variable"));
        }
        Ok(Self(text.to_owned()))
    }
}

json_schema_of!(VariableName, { "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" });
