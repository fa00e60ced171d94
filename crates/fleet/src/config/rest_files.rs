//! `v03.restFiles`: how files are encoded over REST of version 0.3, where Python's SDK differs from the format. The same
//! setting for agents that are served and for agents elsewhere.

use schemars::JsonSchema;
use serde::Serialize;
use switchboard_host::word_setting;

/// How often the bytes of files are encoded as base64 over REST.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RestFiles {
    /// Twice with Python's SDK, once with everyone else, as far as can be told.
    #[default]
    Auto,
    /// Once, as the specification says.
    Once,
    /// Twice, as Python's SDK does.
    Twice,
}

/// How an agent elsewhere of version 0.3 is treated.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(default, deny_unknown_fields)]
pub struct RemoteVersion03 {
    /// How often files are encoded as base64 over REST.
    ///
    /// `auto`: twice if the server of its card is uvicorn, as with Python's SDK; `once` and `twice` are for agents that
    /// are taken for what they are not.
    pub rest_files: RestFiles,
}

word_setting!(RestFiles: "auto" => Auto, "once" => Once or "twice" => Twice);

impl From<RestFiles> for switchboard_a2a::RestFiles {
    fn from(setting: RestFiles) -> Self {
        match setting {
            RestFiles::Auto => Self::Auto,
            RestFiles::Once => Self::Once,
            RestFiles::Twice => Self::Twice,
        }
    }
}
