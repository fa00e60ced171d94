//! `cards`: which agent card a client gets that does not say which one it reads.

use serde::Serialize;

use crate::section_keys;
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

section_keys!(Cards, {
    default: CardForm::Hybrid,
});

word_setting!(CardForm: "hybrid" => Hybrid, "v1" => V1 or "v03" => V03);
