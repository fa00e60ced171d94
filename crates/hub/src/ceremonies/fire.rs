//! The job `fire`: runs a ceremony at its time, and is moved on to the next one. The message is sent under a key of ceremony and
//! time before the job is moved on, so a run that is killed in between, or whose job was claimed twice, is the same task; what
//! the journal tells is written with the move.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;
use switchboard_a2a::{TaskId, Timestamp};
use switchboard_engine::clock::later;
use switchboard_engine::store::feed::JournalLine;
use switchboard_engine::store::hub::ClaimedJob;
use switchboard_engine::store::lineage::Via;
use switchboard_engine::store::survey::SurveyQuery;
use switchboard_engine::store::{IdempotencyScope, Phase, StoreError, TaskRow};
use switchboard_engine::{Address, CallerRole, Error};
use switchboard_host::config::ceremonies::Ceremonies as Settings;

use super::definition::{Definition, Overlap};
use super::due::{Passed, Plan, Policy};
use super::journal::{run_line, skipped};
use super::progress::{LastRun, NEVER, Progress, Trying, ceremony_of};
use super::table::Ceremony;
use super::{context_of, run};
use crate::hub::HubState;
use crate::jobs::{JobKind, JobOutcome};
use crate::metric_definitions as metric;

/// How soon a run is tried again while the server stops, or the store fails.
const SOON: Duration = Duration::from_secs(1);
/// How long a run waits at most before it is looked again whether the one before has ended, or before it is tried again.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// How long a job waits whose file cannot be read.
const UNREADABLE: Duration = Duration::from_secs(60);
/// The newest tasks of a ceremony of which one may go on.
const NEWEST: usize = 100;

/// Runs jobs of this kind.
pub(crate) struct FireJobs {
    pub(crate) hub: Arc<HubState>,
}

/// One run of a job.
struct Firing<'a> {
    hub: &'a HubState,
    ceremony: &'a Ceremony,
    policy: Policy<'a>,
    progress: Progress,
    now: Timestamp,
    lines: Vec<JournalLine>,
}

/// What became of a time that has come.
enum Outcome {
    /// A run has begun, or what it publishes is written with the move of the job.
    Fired(Option<TaskId>),
    /// There is none.
    Skipped { reason: &'static str, problem: Option<String> },
    /// It is looked at again.
    Later,
    /// The same by the next process: this one stops.
    Stopping,
}

impl JobKind for FireJobs {
    fn run<'a>(&'a self, claimed: &'a ClaimedJob) -> BoxFuture<'a, JobOutcome> {
        async move {
            let Some(id) = ceremony_of(&claimed.job) else {
                tracing::error!(job = claimed.job.name, "a job of a ceremony has no id of one");
                return JobOutcome::Done;
            };
            self.run_ceremony(id, claimed).await.unwrap_or_else(|error| {
                tracing::warn!(ceremony = id, %error, "a ceremony could not be run, and is tried again");
                JobOutcome::Again(SOON)
            })
        }
        .boxed()
    }
}

impl FireJobs {
    async fn run_ceremony(&self, id: &str, claimed: &ClaimedJob) -> Result<JobOutcome, StoreError> {
        let (hub, progress) = (&*self.hub, Progress::read(&claimed.job));
        let ceremonies = &hub.ceremonies;
        let known = ceremonies.table.find(id).filter(|known| known.definition.timing() == progress.timing);
        let found = match known {
            Some(known) => Some(known),
            None => {
                // Another node may have changed it.
                ceremonies.load_registrations().await?;
                ceremonies.table.find(id)
            }
        };
        let Some(ceremony) = found else {
            let may_come_back = ceremonies.may_come_back(id).await;
            return Ok(if may_come_back { JobOutcome::Again(UNREADABLE) } else { JobOutcome::Done });
        };
        let settings = &hub.parts.config.hub.ceremonies;
        let policy = policy(settings, &ceremony.definition);
        let now = hub.parts.clock.now();
        let mut firing = Firing { hub, ceremony: &ceremony, policy, progress, now, lines: Vec::new() };
        firing.go_on().await
    }
}

fn policy<'a>(settings: &Settings, definition: &'a Definition) -> Policy<'a> {
    Policy {
        id: &definition.id,
        schedule: &definition.schedule,
        jitter: definition.jitter(),
        missed: definition.missed.unwrap_or(settings.missed),
        grace: settings.grace.duration(),
        most: settings.max_catch_up.get(),
    }
}

/// When the job of a ceremony is due that has come so far.
pub(super) fn run_at(settings: &Settings, definition: &Definition, progress: &Progress) -> Timestamp {
    progress.at.map_or(NEVER, |at| policy(settings, definition).due(at))
}

impl Firing<'_> {
    async fn go_on(&mut self) -> Result<JobOutcome, StoreError> {
        let Some(at) = self.progress.at.filter(|_| self.ceremony.definition.enabled) else {
            self.progress.at = None;
            return Ok(self.moved(NEVER));
        };
        // The clock was set back.
        if self.policy.due(at) > self.now {
            return Ok(self.moved(self.policy.due(at)));
        }
        let (at, is_caught_up) = match &self.progress.trying {
            Some(trying) => (at, trying.is_caught_up),
            None => match self.policy.plan(at, self.now) {
                Plan::Run { passed, at, is_caught_up } => {
                    if let Some(passed) = passed {
                        self.pass(passed, "missed", None);
                    }
                    (at, is_caught_up)
                }
                Plan::Pass { passed, next } => {
                    self.pass(passed, "missed", None);
                    return Ok(self.move_to(next));
                }
            },
        };
        match self.try_run(at, is_caught_up).await? {
            Outcome::Fired(task) => {
                self.fired(at, task);
                Ok(self.settled(at, is_caught_up))
            }
            Outcome::Skipped { reason, problem } => {
                self.pass(Passed { first: at, last: at }, reason, problem.as_deref());
                Ok(self.settled(at, is_caught_up))
            }
            Outcome::Stopping => Ok(JobOutcome::Again(SOON)),
            Outcome::Later => {
                let trying = Trying { since: self.now, failures: 0, is_caught_up };
                let trying = self.progress.trying.get_or_insert(trying);
                let waited = u64::try_from(self.now.0.saturating_sub(trying.since.0)).unwrap_or(0);
                // The longer it has waited, the longer until the next look.
                let wait = Duration::from_millis(waited / 4).clamp(SOON, LONGEST_WAIT);
                self.progress.at = Some(at);
                Ok(self.moved(later(self.now, wait)))
            }
        }
    }

    async fn try_run(&mut self, at: Timestamp, is_caught_up: bool) -> Result<Outcome, StoreError> {
        let hub = self.hub;
        let definition = &self.ceremony.definition;
        if hub.engine.closing().is_cancelled() {
            return Ok(Outcome::Stopping);
        }
        let Some(owner) = hub.ceremonies.owner(self.ceremony) else {
            return Ok(refused("the key of its owner is revoked"));
        };
        if definition.publish.is_some() && owner.scopes.role < CallerRole::Admin {
            return Ok(refused("its owner is no administrator any more, and it publishes"));
        }
        if !definition.sends() {
            return Ok(Outcome::Fired(None));
        }
        if definition.overlap != Overlap::Parallel && self.is_running(at).await? {
            // What is caught up on runs one after the other.
            return Ok(match definition.overlap == Overlap::Queue || is_caught_up {
                true => Outcome::Later,
                false => Outcome::Skipped { reason: "overlap", problem: None },
            });
        }
        let key = run::key_of(&definition.id, at);
        let error = match run::send(hub, &owner, self.ceremony, at, key).await {
            Ok(task) => return Ok(Outcome::Fired(Some(task))),
            Err(error) => error,
        };
        if hub.engine.closing().is_cancelled() {
            return Ok(Outcome::Stopping);
        }
        let problem = error.to_string();
        if !matches!(error, Error::Unavailable { .. }) {
            return Ok(Outcome::Skipped { reason: "refused", problem: Some(problem) });
        }
        let now = self.now;
        let trying = self.progress.trying.get_or_insert(Trying { since: now, failures: 0, is_caught_up });
        trying.failures += 1;
        tracing::info!(ceremony = %definition.id, problem, "a run could not begin, and is tried again");
        if trying.failures > 1 && later(trying.since, definition.timeout()) < now {
            return Ok(Outcome::Skipped { reason: "unavailable", problem: Some(problem) });
        }
        Ok(Outcome::Later)
    }

    /// Whether an earlier run goes on. The one of this very time does not count: it was sent, and the job not moved on.
    async fn is_running(&self, at: Timestamp) -> Result<bool, StoreError> {
        let definition = &self.ceremony.definition;
        let store = &self.hub.parts.store;
        let key = run::key_of(&definition.id, at);
        let scope =
            IdempotencyScope { owner: self.ceremony.owner.clone(), address: Address::Root.as_str().to_owned(), key };
        let own = store.find_send(scope).await?.and_then(|record| record.task);
        let goes_on =
            |row: &TaskRow| is_run(row) && row.state.phase != Phase::Done && Some(&row.task.id) != own.as_ref();
        if own.is_some() {
            return Ok(false);
        }
        if let Some(task) = self.progress.last.as_ref().and_then(|last| last.task.as_ref())
            && store.row(task).await?.as_ref().is_some_and(goes_on)
        {
            return Ok(true);
        }
        let query = SurveyQuery {
            owner: Some(self.ceremony.owner.clone()),
            context: Some(context_of(&definition.id).into()),
            page_size: NEWEST,
            ..SurveyQuery::default()
        };
        Ok(store.survey(query).await?.tasks.iter().any(goes_on))
    }

    fn fired(&mut self, at: Timestamp, task: Option<TaskId>) {
        let definition = &self.ceremony.definition;
        let late = u64::try_from(self.now.0.saturating_sub(self.policy.due(at).0)).unwrap_or(0);
        metrics::counter!(metric::CEREMONY_FIRES, "outcome" => "fired").increment(1);
        metrics::histogram!(metric::CEREMONY_LATE).record(Duration::from_millis(late).as_secs_f64());
        let payload = json!({ "scheduledAt": at, "lateMs": late });
        self.lines.push(run_line(self.now, self.ceremony, "fired", task.as_ref(), payload));
        self.lines.extend(published(self.now, self.ceremony));
        tracing::debug!(ceremony = %definition.id, %at, ?task, "a run has begun");
        self.progress.last = Some(LastRun { at, task, skipped: None });
    }

    /// Leaves times out.
    fn pass(&mut self, times: Passed, reason: &'static str, problem: Option<&str>) {
        metrics::counter!(metric::CEREMONY_FIRES, "outcome" => reason).increment(1);
        self.lines.push(skipped(self.now, self.ceremony, times, reason, problem));
        let task = self.progress.last.take().and_then(|last| last.task);
        // The task of the run before stays known: it may go on.
        self.progress.last = Some(LastRun { at: times.last, task, skipped: Some(reason.to_owned()) });
    }

    /// Goes on after a time: past those that came while its run waited for another one, of which only one may wait.
    fn settled(&mut self, at: Timestamp, is_caught_up: bool) -> JobOutcome {
        let waited = self.progress.trying.take().is_some();
        if !waited || is_caught_up || self.ceremony.definition.overlap != Overlap::Queue {
            return self.move_to(self.policy.schedule.next_after(at));
        }
        let (passed, next) = self.policy.passed_since(at, self.now);
        if let Some(passed) = passed {
            let fired = self.progress.last.take();
            self.pass(passed, "overlap", None);
            // What was last is the run that has begun.
            self.progress.last = fired;
        }
        self.move_to(next)
    }

    fn move_to(&mut self, next: Option<Timestamp>) -> JobOutcome {
        (self.progress.at, self.progress.trying) = (next, None);
        let run_at = next.map_or(NEVER, |next| self.policy.due(next));
        self.moved(run_at)
    }

    fn moved(&mut self, run_at: Timestamp) -> JobOutcome {
        self.progress.timing = self.ceremony.definition.timing();
        JobOutcome::Told { run_at, body: self.progress.body(), journal: std::mem::take(&mut self.lines) }
    }
}

fn refused(problem: &str) -> Outcome {
    Outcome::Skipped { reason: "refused", problem: Some(problem.to_owned()) }
}

/// Whether a task is a run, and not one that a run has called, or a message of its owner in the same conversation.
pub(crate) fn is_run(row: &TaskRow) -> bool {
    let lineage = &row.task.lineage;
    lineage.ancestors.is_none() && lineage.via == Via::Cron
}

/// The line that a ceremony publishes.
pub(super) fn published(now: Timestamp, ceremony: &Ceremony) -> Option<JournalLine> {
    let publish = ceremony.definition.publish.as_ref()?;
    let mut payload = publish.payload.clone();
    switchboard_host::redact::json(&mut payload);
    Some(JournalLine {
        at: now,
        owner: Some(ceremony.owner.clone()),
        task: None,
        topic: publish.topic.clone(),
        payload: payload.to_string().into(),
    })
}
