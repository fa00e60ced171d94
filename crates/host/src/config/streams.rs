//! `streams`: how event streams are kept alive.

use serde::Serialize;

use crate::config::time_span::TimeSpan;
use crate::section_keys;

/// Event streams.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(default, deny_unknown_fields))]
#[serde(rename_all = "camelCase")]
pub struct Streams {
    /// Silence after which a comment line is sent.
    ///
    /// Proxies cut connections that say nothing for a minute or less.
    pub ping: TimeSpan,
}

section_keys!(Streams, {
    ping (nonzero): TimeSpan::from_seconds(15),
});
