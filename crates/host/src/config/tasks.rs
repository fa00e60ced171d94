//! `tasks`: how long tasks may take, wait and linger.

use serde::Serialize;

use crate::config::size::Count;
use crate::config::time_span::{TimeLimit, TimeSpan};
use crate::section_keys;

/// The times of a task's life.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(default, deny_unknown_fields))]
#[serde(rename_all = "camelCase")]
pub struct Tasks {
    /// Time running tasks have to finish at shutdown.
    pub drain: TimeSpan,
    /// Time an agent has to stop after a cancel.
    pub cancel_grace: TimeSpan,
    /// Time a waiting agent stays in memory.
    ///
    /// After it the answer starts the agent again with what it saved. `0s` always does.
    pub park: TimeSpan,
    /// Time a question waits for its answer.
    ///
    /// Then the task fails with the reason `input_expired`.
    pub parked_expiry: TimeSpan,
    /// A task's total time.
    pub deadline: TimeLimit,
    /// Time a running task may go without any event.
    pub idle: TimeLimit,
    /// Longest wait of a blocking call.
    ///
    /// Then the caller gets the task as it is, which the specification does not foresee.
    pub max_blocking: TimeLimit,
    /// Crashes that a task may be lost in without making progress.
    ///
    /// With the next one it fails with the reason `recovery_limit`. Graceful shutdowns are not counted.
    pub max_recoveries: u32,
    /// Tasks recovered at a time after a crash.
    pub parallel_recoveries: Count,
}

section_keys!(Tasks, {
    drain: TimeSpan::from_seconds(10),
    cancel_grace: TimeSpan::from_seconds(3),
    park: TimeSpan::from_minutes(10),
    parked_expiry (nonzero): TimeSpan::from_days(7),
    deadline: TimeLimit::NONE,
    idle: TimeLimit::NONE,
    max_blocking: TimeLimit::NONE,
    max_recoveries: 3,
    parallel_recoveries: Count::new(16),
});
