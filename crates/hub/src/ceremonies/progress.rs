//! How far a ceremony has come: the body of its job, of which there is one, due when the next run is.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use switchboard_a2a::{TaskId, Timestamp};
use switchboard_engine::store::StoreError;
use switchboard_engine::store::hub::{HubStore, NewJob};

use super::definition::Definition;

/// The kind of the jobs that run ceremonies.
pub(crate) const FIRE_KIND: &str = "fire";
/// The time of a job of a ceremony that is not due any more. It keeps what was last.
pub(super) const NEVER: Timestamp = Timestamp(i64::MAX);

/// What the job of a ceremony keeps between its runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Progress {
    /// What the time follows from: another node may have changed it.
    #[serde(default)]
    pub(super) timing: String,
    /// The time of the schedule that is next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) at: Option<Timestamp>,
    /// Its run is being tried, or waits for the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) trying: Option<Trying>,
    /// What became of the time before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last: Option<LastRun>,
}

/// A run that could not begin yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Trying {
    pub(super) since: Timestamp,
    /// Attempts that have failed.
    pub(super) failures: u32,
    /// It is for a missed time that is caught up on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_caught_up: bool,
}

/// What became of a time of the schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LastRun {
    pub(crate) at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) task: Option<TaskId>,
    /// Why there was no run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) skipped: Option<String>,
}

impl Progress {
    /// That of a definition that is new, or was changed. No time comes twice, also if the clock was set back.
    pub(super) fn begin(definition: &Definition, last: Option<LastRun>, now: Timestamp) -> Self {
        let after = last.as_ref().map_or(now, |last| last.at.max(now));
        let at = if definition.enabled { definition.schedule.next_after(after) } else { None };
        Self { timing: definition.timing(), at, trying: None, last }
    }

    pub(super) fn read(job: &NewJob) -> Self {
        serde_json::from_slice(&job.body).unwrap_or_default()
    }

    pub(super) fn body(&self) -> Bytes {
        Bytes::from(serde_json::to_vec(self).unwrap_or_default())
    }

    /// The job, due at a time.
    pub(super) fn job(&self, id: &str, run_at: Timestamp) -> NewJob {
        NewJob { name: job_name(id), kind: FIRE_KIND.to_owned(), run_at, body: self.body() }
    }
}

/// The job of a ceremony.
pub(super) fn job_name(id: &str) -> String {
    format!("{FIRE_KIND}:{id}")
}

/// The ceremony of a job.
pub(super) fn ceremony_of(job: &NewJob) -> Option<&str> {
    job.name.strip_prefix(FIRE_KIND)?.strip_prefix(':')
}

/// How far a ceremony has come; nothing if it has no job.
pub(crate) async fn progress_of(store: &dyn HubStore, id: &str) -> Result<Option<Progress>, StoreError> {
    let name = job_name(id);
    // Other names may begin like it, and come after it.
    let found = store.jobs_named(&name, "", 1).await?;
    Ok(found.iter().find(|job| job.name == name).map(Progress::read))
}
