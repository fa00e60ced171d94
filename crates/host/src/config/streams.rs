//! `streams`: how event streams are kept alive.

use serde::Serialize;

use crate::config::section::{Section, camel_case, keys};
use crate::config::time_span::TimeSpan;

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

keys!(Streams, read, {
    ping (nonzero): TimeSpan::from_seconds(15),
});
