//! `hub`: what readers of all tasks get, and how long it is kept for them.

use serde::Serialize;

use crate::config::size::Size;
use crate::config::time_span::TimeSpan;
use crate::section_keys;

/// Readers of all tasks.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(default, deny_unknown_fields))]
#[serde(rename_all = "camelCase")]
pub struct Hub {
    /// The feed of everything that is committed.
    pub feed: Feed,
    /// What happened outside of tasks.
    pub journal: Journal,
    /// The reader that keeps sums and owes work.
    pub projector: Projector,
}

/// The feed of everything that is committed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(default, deny_unknown_fields))]
#[serde(rename_all = "camelCase")]
pub struct Feed {
    /// Newest events kept in memory while there are readers.
    ///
    /// What is older they read from the store.
    pub ring: Size,
}

/// How long the journal is kept.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(default, deny_unknown_fields))]
#[serde(rename_all = "camelCase")]
pub struct Journal {
    /// Age at which a line goes.
    pub keep: TimeSpan,
    /// Age at which a line of the audit goes.
    pub audit: TimeSpan,
}

/// The reader that keeps sums and owes work.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(default, deny_unknown_fields))]
#[serde(rename_all = "camelCase")]
pub struct Projector {
    /// How long a finished task is kept for a reader that has not come to its end.
    ///
    /// Counted from its end. After that `store.retention` counts alone.
    pub hold: TimeSpan,
}

section_keys!(Hub, {
    feed (section): Feed::default(),
    journal (section): Journal::default(),
    projector (section): Projector::default(),
});

section_keys!(Feed, {
    ring: Size::from_mebibytes(16),
});

section_keys!(Journal, {
    keep: TimeSpan::from_days(30),
    audit: TimeSpan::from_days(400),
});

section_keys!(Projector, {
    hold: TimeSpan::from_days(7),
});
