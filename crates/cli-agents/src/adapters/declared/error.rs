//! What is wrong with a declaration.

use crate::adapters::field_error::FieldError;

/// Everything that is wrong with one declaration, so that its author can fix it in one go.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.lines())]
pub struct DeclaredError {
    /// The file, as it was named.
    pub file: String,
    /// What is wrong, in the order of reading; never empty.
    pub problems: Vec<FieldError>,
}

impl DeclaredError {
    fn lines(&self) -> String {
        let lines: Vec<String> = self.problems.iter().map(|problem| format!("{}: {problem}", self.file)).collect();
        lines.join("\n")
    }
}
