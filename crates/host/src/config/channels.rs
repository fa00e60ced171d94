//! `hub.channels`: messages of chat platforms, which their bridges POST.

use std::path::PathBuf;

use serde::Serialize;

use crate::config::size::{Count, Size};
use crate::config::time_span::TimeSpan;
use crate::section_keys;

/// Messages of chat platforms.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(default, deny_unknown_fields))]
#[serde(rename_all = "camelCase")]
pub struct Channels {
    /// The file that says which agent a channel talks to.
    ///
    /// A relative path starts at the workspace folder.
    pub file: PathBuf,
    /// Most channels in it.
    pub max: Count,
    /// How long it has to be quiet before a burst of messages is handed on as one.
    pub debounce: TimeSpan,
    /// The longest wait for that.
    pub max_debounce: TimeSpan,
    /// How long a direct conversation keeps its agent after its last word.
    pub sticky: TimeSpan,
    /// Largest message.
    pub message: Size,
    /// Messages are joined up to so many bytes; the rest is handed on after that.
    ///
    /// At most a third of `limits.event`.
    pub joined: Size,
    /// Messages that may wait in one conversation.
    ///
    /// Further ones are refused until the agent has taken some.
    pub waiting: Count,
}

section_keys!(Channels, {
    file: PathBuf::from("channels.yaml"),
    max: Count::new(1_000),
    debounce: TimeSpan::from_seconds(3),
    max_debounce: TimeSpan::from_seconds(15),
    sticky: TimeSpan::from_minutes(15),
    message: Size::from_kibibytes(64),
    joined: Size::from_kibibytes(256),
    waiting: Count::new(100),
});
