//! `store`: where tasks are kept, how safely, and for how long.

use std::path::PathBuf;

use serde::Serialize;

use crate::config::section::Section;
use crate::config::size::{Count, Size};
use crate::config::time_span::TimeSpan;
use crate::section_keys;
use crate::word_setting;

/// The store of tasks.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(default, deny_unknown_fields))]
#[serde(rename_all = "camelCase")]
pub struct Store {
    /// Data directory.
    ///
    /// Created on first use. A relative path starts at the workspace folder.
    pub data_dir: PathBuf,
    /// Database server.
    ///
    /// Refused by this version, which keeps its data in the data directory.
    pub url: Option<String>,
    /// What a committed event survives.
    pub durability: Durability,
    /// Longest wait for the writer before new messages are refused.
    ///
    /// Cancels and endings are still taken.
    pub max_queue_delay: TimeSpan,
    /// How long finished tasks are kept.
    pub retention: Retention,
}

/// What a committed event survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Durability {
    /// A power cut.
    Full,
    /// A killed process, but perhaps not a power cut; faster.
    Process,
}

/// When finished tasks are removed, oldest first. Unfinished ones never are.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(default, deny_unknown_fields))]
#[serde(rename_all = "camelCase")]
pub struct Retention {
    /// Age at which a finished task goes.
    pub max_age: TimeSpan,
    /// Tasks kept.
    pub max_tasks: Count,
    /// Bytes kept.
    pub max_bytes: Size,
}

section_keys!(Store with check, {
    data_dir: PathBuf::from(".switchboard"),
    url (unread): None,
    durability: Durability::Full,
    max_queue_delay (nonzero): TimeSpan::from_seconds(2),
    retention (section): Retention::default(),
});

section_keys!(Retention, {
    max_age: TimeSpan::from_days(30),
    max_tasks: Count::new(1_000_000),
    max_bytes: Size::from_gibibytes(10),
});

impl Store {
    fn check(&self, section: &mut Section<'_, '_>) {
        if section.is_set("url") {
            // The value is not repeated: it may hold a password.
            section.refuse(
                "url",
                "this version keeps its data in a directory, not on a database server",
                "remove the key and set store.dataDir",
            );
        }
    }
}

word_setting!(Durability: "full" => Full or "process" => Process);
