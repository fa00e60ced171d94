//! A problem with one setting, for the operator who has to fix it.

/// A setting that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}{}{wrong}: {right}", if field.is_empty() { "" } else { ": " })]
pub struct FieldError {
    /// Its name, with the names of what it is in: `rules[2].toolUse.id`.
    pub field: String,
    /// What is wrong, with the value where that helps.
    pub wrong: String,
    pub right: String,
}

impl FieldError {
    pub(crate) fn new(field: impl Into<String>, wrong: impl Into<String>, right: impl Into<String>) -> Self {
        Self { field: field.into(), wrong: wrong.into(), right: right.into() }
    }

    /// The same, inside another setting.
    #[must_use]
    pub fn within(mut self, outer: &str) -> Self {
        self.field = format!("{outer}.{}", self.field);
        self
    }
}
