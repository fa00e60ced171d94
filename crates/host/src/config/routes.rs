//! `hub.routes`: events that become messages to agents, or POSTs to addresses. Which agent gets a message is `hub.routing`.

use std::path::PathBuf;

use serde::Serialize;

use crate::config::size::{Count, Size};
use crate::config::time_span::TimeSpan;
use crate::section_keys;

/// Events that become messages or POSTs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(default, deny_unknown_fields))]
#[serde(rename_all = "camelCase")]
pub struct Routes {
    /// Folder with a file for each route.
    ///
    /// A relative path starts at the workspace folder.
    pub folder: PathBuf,
    /// Most routes.
    pub max: Count,
    /// Events that a route may owe.
    ///
    /// With more it is paused: further events are left out until half of these are delivered.
    pub owed: Count,
    /// Most events of one POST.
    pub batch: Count,
    /// Messages that routes may send because of one task and what it causes.
    ///
    /// Counted within `sendsWithin`; further ones are dropped.
    pub sends_per_root: Count,
    /// The time in which they are counted.
    pub sends_within: TimeSpan,
    /// Largest payload of an event that a route hands on, and largest text that a template makes.
    ///
    /// A larger payload is left out, and a longer text is cut.
    pub content: Size,
}

section_keys!(Routes, {
    folder: PathBuf::from("routes.d"),
    max: Count::new(1_000),
    owed: Count::new(10_000),
    batch: Count::new(100),
    sends_per_root: Count::new(12),
    sends_within (nonzero): TimeSpan::from_seconds(30),
    content: Size::from_kibibytes(64),
});
