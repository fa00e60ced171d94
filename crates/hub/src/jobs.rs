//! The job runner: work that is owed at a time, claimed from the store and run by its kind. A job is a row, so it
//! outlives the process; what has failed is due again later.

mod cancel;
mod escalate;
mod families;
mod settings;

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use switchboard_a2a::Timestamp;
use switchboard_engine::clock::{Clock, later};
use switchboard_engine::store::StoreError;
use switchboard_engine::store::feed::JournalLine;
use switchboard_engine::store::hub::{ClaimedJob, HubStore, JobEnd};
use tokio_util::sync::CancellationToken;

pub use cancel::{CANCEL_KIND, CancelJobs, RemoteDirectory, owed_cancel};
pub(crate) use escalate::{ESCALATE_KIND, EscalateJobs, owed_escalation};
pub(crate) use families::{CHILDREN_KIND, CancelChildren, PARENT_KIND, SettleParents, family_job};
pub use settings::JobSettings;

use crate::metric_definitions as metric;

/// Between two looks for jobs that are due.
const TICK: Duration = Duration::from_secs(1);
/// How long a job waits that has panicked. It is a bug, and not over in a moment.
const AFTER_PANIC: Duration = Duration::from_secs(600);
/// How long a job is put off at least whose lane is full.
const PUT_OFF: Duration = Duration::from_secs(10);
/// How much longer than the one before it in its lane: all that wait for an agent are not claimed again at once.
const PUT_OFF_STEP: Duration = Duration::from_millis(50);

/// One kind of work.
pub trait JobKind: Send + Sync + 'static {
    /// Runs a job. It may have been run before: by a process that died, or without success.
    fn run<'a>(&'a self, job: &'a ClaimedJob) -> BoxFuture<'a, JobOutcome>;

    /// What it has to share with other jobs of the same name here, such as the agent that it calls: so that one that does
    /// not answer takes no more than its part of the places.
    fn lane(&self, _job: &ClaimedJob) -> Option<String> {
        None
    }
}

/// How a job has gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobOutcome {
    Done,
    /// To be run again after a while.
    Again(Duration),
    /// The same, with another body.
    Changed(Duration, Bytes),
    /// To be run again at a time, with another body, and with lines of the journal that say what was done. They are written
    /// only if the claim still holds.
    Told {
        run_at: Timestamp,
        body: Bytes,
        journal: Vec<JournalLine>,
    },
}

/// Runs the jobs of a store.
pub struct JobRunner {
    store: Arc<dyn HubStore>,
    clock: Arc<dyn Clock>,
    kinds: HashMap<&'static str, Arc<dyn JobKind>>,
    settings: JobSettings,
}

impl JobRunner {
    pub fn new(store: Arc<dyn HubStore>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock, kinds: HashMap::new(), settings: JobSettings::default() }
    }

    /// The same within other limits.
    #[must_use]
    pub fn with_settings(self, settings: JobSettings) -> Self {
        Self { settings, ..self }
    }

    /// The same with one more kind.
    #[must_use]
    pub fn with(mut self, name: &'static str, kind: Arc<dyn JobKind>) -> Self {
        self.kinds.insert(name, kind);
        self
    }

    /// Runs jobs as they fall due, until it is stopped. A job that takes long keeps its own place and no other.
    pub async fn run(self, stop: CancellationToken) {
        stop.run_until_cancelled(self.run_on()).await;
    }

    async fn run_on(&self) {
        let (mut running, mut lanes) = (FuturesUnordered::new(), Lanes::new(self.settings.per_agent));
        let mut tick = self.clock.sleep(Duration::ZERO);
        let mut may_be_more = false;
        loop {
            let free = self.settings.parallel - running.len();
            tokio::select! {
                () = &mut tick => {
                    tick = self.clock.sleep(TICK);
                    may_be_more = true;
                    self.measure().await;
                }
                Some((lane, ran)) = running.next() => {
                    lanes.leave(lane);
                    if let Err(error) = ran {
                        tracing::warn!(%error, "the end of a job cannot be stored");
                    }
                }
                // Only if the last claim was full: else the next tick finds what has fallen due since.
                () = std::future::ready(()), if may_be_more && free > 0 => {
                    let claimed = self.claim(free).await;
                    may_be_more = claimed.len() == free;
                    for claimed in claimed {
                        let lane = self.lane(&claimed);
                        let entered = lanes.enter(lane.as_deref(), self.clock.now());
                        running.push(self.run_in_lane(claimed, lane, entered));
                    }
                }
            }
        }
    }

    async fn claim(&self, max: usize) -> Vec<ClaimedJob> {
        self.store.claim_jobs(self.clock.now(), max).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "jobs cannot be claimed");
            Vec::new()
        })
    }

    fn lane(&self, claimed: &ClaimedJob) -> Option<String> {
        self.kinds.get(claimed.job.kind.as_str())?.lane(claimed)
    }

    /// Runs a job, or puts it off if its lane is full. Also the lane that is left then.
    async fn run_in_lane(
        &self,
        claimed: ClaimedJob,
        lane: Option<String>,
        entered: Result<(), Timestamp>,
    ) -> (Option<String>, Result<(), StoreError>) {
        match entered {
            Ok(()) => (lane, self.run_one(&claimed).await),
            Err(run_at) => (None, self.finish(&claimed, JobEnd::Again { run_at, body: None }).await),
        }
    }

    /// Runs what is due now; says how many jobs that were.
    pub async fn run_due(&self) -> Result<usize, StoreError> {
        let claimed = self.store.claim_jobs(self.clock.now(), self.settings.parallel).await?;
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
            // One bad job does not end the runner of all others.
            Some(kind) => AssertUnwindSafe(kind.run(claimed)).catch_unwind().await.unwrap_or_else(|_| {
                tracing::error!(job = job.name, "a job has panicked, and is run again later");
                JobOutcome::Again(AFTER_PANIC)
            }),
            None => {
                tracing::error!(job = job.name, kind = job.kind, "a job is of no kind that is known here");
                JobOutcome::Again(Duration::from_secs(3_600))
            }
        };
        let end = match outcome {
            JobOutcome::Done => JobEnd::Done,
            JobOutcome::Again(after) => JobEnd::Again { run_at: later(self.clock.now(), after), body: None },
            JobOutcome::Changed(after, body) => {
                JobEnd::Again { run_at: later(self.clock.now(), after), body: Some(body) }
            }
            JobOutcome::Told { run_at, body, journal } => JobEnd::Told { run_at, body, journal },
        };
        self.finish(claimed, end).await
    }

    /// Stores how a job has ended; it would stay claimed otherwise.
    async fn finish(&self, claimed: &ClaimedJob, end: JobEnd) -> Result<(), StoreError> {
        let name = &claimed.job.name;
        let held = loop {
            match self.store.finish_job(name, claimed.attempts, end.clone()).await {
                Ok(held) => break held,
                Err(StoreError::Closed) => return Err(StoreError::Closed),
                Err(error) => tracing::warn!(job = name, %error, "the end of a job cannot be stored"),
            }
            self.clock.sleep(TICK).await;
        };
        if !held {
            tracing::debug!(job = name, "the job is owed anew, or another process has taken it over");
        }
        Ok(())
    }
}

/// The lanes in which jobs run.
struct Lanes {
    /// Jobs that may run in one.
    room: usize,
    by_name: HashMap<String, Lane>,
}

#[derive(Default)]
struct Lane {
    running: usize,
    /// When the last one that was put off is due again.
    put_off_until: Timestamp,
}

impl Lanes {
    fn new(room: usize) -> Self {
        Self { room, by_name: HashMap::new() }
    }

    /// Takes a place, or says when the job is to be run if there is none.
    fn enter(&mut self, lane: Option<&str>, now: Timestamp) -> Result<(), Timestamp> {
        let Some(lane) = lane else { return Ok(()) };
        let lane = self.by_name.entry(lane.to_owned()).or_default();
        if lane.running < self.room {
            lane.running += 1;
            return Ok(());
        }
        lane.put_off_until = later(now, PUT_OFF).max(later(lane.put_off_until, PUT_OFF_STEP));
        Err(lane.put_off_until)
    }

    fn leave(&mut self, lane: Option<String>) {
        let Some(name) = lane else { return };
        if let Some(lane) = self.by_name.get_mut(&name) {
            lane.running -= 1;
            if lane.running == 0 {
                self.by_name.remove(&name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_of_a_full_lane_are_put_off_the_longer_the_more_of_them_wait() {
        let (mut lanes, now) = (Lanes::new(3), Timestamp(1_000));
        (0..3).for_each(|_| lanes.enter(Some("far"), now).unwrap());
        let waits: Vec<_> = (0..3).map(|_| lanes.enter(Some("far"), now).unwrap_err().0 - now.0).collect();
        assert_eq!(waits, [10_000, 10_050, 10_100]);
        assert_eq!((lanes.enter(Some("near"), now), lanes.enter(None, now)), (Ok(()), Ok(())));
        // Those that are due again come after the others.
        assert_eq!(lanes.enter(Some("far"), Timestamp(11_000)), Err(Timestamp(21_000)));
        assert_eq!(lanes.enter(Some("far"), Timestamp(11_000)), Err(Timestamp(21_050)));
        lanes.leave(Some("far".to_owned()));
        assert_eq!(lanes.enter(Some("far"), now), Ok(()));
    }
}
