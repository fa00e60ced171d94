//! `hub.jobs`: work that is owed at a time and outlives the process, such as a cancellation at another server.

use serde::Serialize;

use crate::config::size::Count;
use crate::config::time_span::TimeSpan;
use crate::section_keys;

/// Work that is owed, such as cancellations at other servers.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(default, deny_unknown_fields))]
#[serde(rename_all = "camelCase")]
pub struct Jobs {
    /// Wait before a job that has failed is run again; each next one is twice as long.
    pub first: TimeSpan,
    /// The longest wait between two runs of a job.
    pub most: TimeSpan,
    /// How long after its end here a task is canceled at its agent elsewhere, if that does not work at once.
    ///
    /// After that `remote.orphaned` names it in the feed.
    pub give_up: TimeSpan,
    /// Jobs that are run at the same time.
    pub parallel: Count,
    /// Of these, jobs that call the same agent.
    pub per_agent: Count,
}

section_keys!(Jobs, {
    first (nonzero): TimeSpan::from_seconds(1),
    most (nonzero): TimeSpan::from_hours(1),
    give_up (nonzero): TimeSpan::from_hours(24),
    parallel: Count::new(32),
    per_agent: Count::new(8),
});
