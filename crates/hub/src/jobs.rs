//! The job runner: work that is owed at a time, claimed from the store and run by its kind. A job is a row, so it
//! outlives the process; what has failed is due again later.

mod cancel;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use switchboard_engine::clock::{Clock, later};
use switchboard_engine::store::StoreError;
use switchboard_engine::store::hub::{ClaimedJob, HubStore, JobEnd};
use tokio_util::sync::CancellationToken;

pub use cancel::{CANCEL_KIND, CancelJobs, RemoteDirectory, owed_cancel};

use crate::metric_definitions as metric;

/// Between two looks for jobs that are due.
const TICK: Duration = Duration::from_secs(1);
/// Jobs that are run at a time.
const AT_ONCE: usize = 32;

/// One kind of work.
pub trait JobKind: Send + Sync + 'static {
    /// Runs a job. It may have been run before: by a process that died, or without success.
    fn run<'a>(&'a self, job: &'a ClaimedJob) -> BoxFuture<'a, JobOutcome>;
}

/// How a job has gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobOutcome {
    Done,
    /// To be run again after a while.
    Again(Duration),
}

/// Runs the jobs of a store.
pub struct JobRunner {
    store: Arc<dyn HubStore>,
    clock: Arc<dyn Clock>,
    kinds: HashMap<&'static str, Arc<dyn JobKind>>,
}

impl JobRunner {
    pub fn new(store: Arc<dyn HubStore>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock, kinds: HashMap::new() }
    }

    /// The same with one more kind.
    #[must_use]
    pub fn with(mut self, name: &'static str, kind: Arc<dyn JobKind>) -> Self {
        self.kinds.insert(name, kind);
        self
    }

    /// Runs jobs as they fall due, until it is stopped.
    pub async fn run(self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            let due = stop.run_until_cancelled(self.run_due()).await;
            match due {
                None => return,
                // More may be due.
                Some(Ok(AT_ONCE)) => continue,
                Some(Ok(_)) => {}
                Some(Err(error)) => tracing::warn!(%error, "jobs cannot be claimed"),
            }
            self.measure().await;
            stop.run_until_cancelled(self.clock.sleep(TICK)).await;
        }
    }

    /// Runs what is due now; says how many jobs that were.
    pub async fn run_due(&self) -> Result<usize, StoreError> {
        let claimed = self.store.claim_jobs(self.clock.now(), AT_ONCE).await?;
        let count = claimed.len();
        let mut running: FuturesUnordered<_> = claimed.iter().map(|claimed| self.run_one(claimed)).collect();
        while let Some(ran) = running.next().await {
            ran?;
        }
        Ok(count)
    }

    /// Sets the gauges. A kind without jobs is zero, not what it was.
    async fn measure(&self) {
        let Ok(owed) = self.store.owed_jobs().await else { return };
        for kind in self.kinds.keys() {
            let count = owed.iter().find(|(owed, _)| owed == kind).map_or(0, |(_, count)| *count);
            metrics::gauge!(metric::JOBS_OWED, "kind" => *kind).set(count as f64);
        }
    }

    async fn run_one(&self, claimed: &ClaimedJob) -> Result<(), StoreError> {
        let job = &claimed.job;
        let outcome = match self.kinds.get(job.kind.as_str()) {
            Some(kind) => kind.run(claimed).await,
            None => {
                tracing::error!(job = job.name, kind = job.kind, "a job is of no kind that is known here");
                JobOutcome::Again(Duration::from_secs(3_600))
            }
        };
        let end = match outcome {
            JobOutcome::Done => JobEnd::Done,
            JobOutcome::Again(after) => JobEnd::Again { run_at: later(self.clock.now(), after), body: None },
        };
        let held = self.store.finish_job(&job.name, claimed.attempts, end).await?;
        if !held {
            tracing::debug!(job = job.name, "another process has taken a job over");
        }
        Ok(())
    }
}
