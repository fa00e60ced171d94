//! `hub.extensions`: how agents of this server write the payloads of protocol extensions. They are read in every form.

use serde::Serialize;

use crate::section_keys;
use crate::word_setting;

/// The payloads of protocol extensions.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(default, deny_unknown_fields))]
#[serde(rename_all = "camelCase")]
pub struct Extensions {
    /// Where costs and tool calls of this server's agents stand.
    ///
    /// `newest` writes them into metadata, under the address of the extension; `all` adds the data part that readers of
    /// earlier versions look for. Clients that speak A2A 0.3 get both always.
    pub emit: EmittedCarriers,
}

/// The carriers of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum EmittedCarriers {
    /// Metadata.
    Newest,
    /// Metadata and a data part.
    All,
}

section_keys!(Extensions, {
    emit: EmittedCarriers::Newest,
});

word_setting!(EmittedCarriers: "newest" => Newest or "all" => All);
