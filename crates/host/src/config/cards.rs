//! `cards`: which agent card a client gets that does not say which one it reads.

use serde::Serialize;

use crate::config::section::Section;
use crate::word_setting;

/// Agent cards.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(default, deny_unknown_fields))]
#[serde(rename_all = "camelCase")]
pub struct Cards {
    /// Card for a request without a version.
    pub default: CardForm,
}

/// The forms of a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum CardForm {
    /// Readable for clients of either version.
    Hybrid,
    /// Version 1.0 and nothing else.
    V1,
    /// Version 0.3 and nothing else.
    V03,
}

impl Default for Cards {
    fn default() -> Self {
        Self { default: CardForm::Hybrid }
    }
}

impl Cards {
    pub(crate) fn read(&mut self, section: &mut Section<'_, '_>) {
        section.read("default", &mut self.default);
    }
}

word_setting!(CardForm: "hybrid" => Hybrid, "v1" => V1 or "v03" => V03);
