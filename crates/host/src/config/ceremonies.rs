//! `hub.ceremonies`: runs of skills by a schedule.

use std::path::PathBuf;

use serde::Serialize;

use crate::config::size::Count;
use crate::config::time_span::TimeSpan;
use crate::{section_keys, word_setting};

/// Runs of skills by a schedule.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(default, deny_unknown_fields))]
#[serde(rename_all = "camelCase")]
pub struct Ceremonies {
    /// Folder with a file for each ceremony.
    ///
    /// A relative path starts at the workspace folder.
    pub folder: PathBuf,
    /// What becomes of times that have passed unused, where a ceremony does not say.
    ///
    /// `run_once` runs once for all of them, `skip` waits for the next one, `catch_up` runs once for each.
    pub missed: MissedRuns,
    /// How late a run may be before its time counts as missed.
    pub grace: TimeSpan,
    /// Most missed times that are caught up on; earlier ones are skipped.
    pub max_catch_up: Count,
    /// Most ceremonies.
    pub max: Count,
    /// Most ceremonies of one caller who is no administrator.
    pub per_owner: Count,
    /// The shortest time between two runs of a ceremony whose owner is no administrator.
    pub min_interval: TimeSpan,
}

/// What becomes of times that have passed unused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MissedRuns {
    /// One run, for the newest of them.
    RunOnce,
    /// None.
    Skip,
    /// One run for each, the oldest first.
    CatchUp,
}

word_setting!(MissedRuns: "run_once" => RunOnce, "skip" => Skip or "catch_up" => CatchUp);

section_keys!(Ceremonies, {
    folder: PathBuf::from("ceremonies"),
    missed: MissedRuns::RunOnce,
    grace: TimeSpan::from_seconds(60),
    max_catch_up: Count::new(100),
    max: Count::new(10_000),
    per_owner: Count::new(100),
    min_interval: TimeSpan::from_seconds(60),
});
