//! The job `match` of a route: works through what the route owes, in order, until nothing is left, something has to wait or
//! others have waited long enough. A hit is deleted once it was delivered or given up; a process that dies in between does
//! it again, and a message under the same key is the same task.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;
use switchboard_a2a::Timestamp;
use switchboard_engine::clock::later;
use switchboard_engine::store::StoreError;
use switchboard_engine::store::feed::JournalLine;
use switchboard_engine::store::hub::{ClaimedJob, NewJob};
use switchboard_engine::{Caller, Error};
use switchboard_webhooks::PostOutcome;

use super::definition::{Then, origin};
use super::journal::line;
use super::message;
use super::owed::{Hit, Progress, prefix, route_of};
use super::post::fitting;
use super::table::{Route, Source};
use super::trigger::Trigger;
use crate::dispatch::DispatchHints;
use crate::hub::HubState;
use crate::jobs::{JobKind, JobOutcome};
use crate::metric_definitions as metric;
use crate::routing::DropReason;

/// The kind of these jobs.
pub(crate) const MATCH_KIND: &str = "match";
/// Hits that are read at a time.
const PAGE: usize = 100;
/// How long a run goes on before others get their turn.
const TURN: Duration = Duration::from_secs(5);
/// How soon a run is tried again that found another one of its route, or a store that fails.
const SOON: Duration = Duration::from_secs(1);

/// Runs jobs of this kind.
pub(crate) struct MatchJobs {
    pub(crate) hub: Arc<HubState>,
}

/// What became of the first hits.
enum Step {
    /// So many were delivered.
    Delivered(usize),
    /// So many are given up.
    GivenUp(usize, String),
    /// So many are tried again, not before a time.
    Waits(usize, Timestamp, String),
    /// The server stops, or it was no fault of theirs.
    Later(Duration),
}

/// One run of a route's job, and what is to be told of it.
struct Run<'a> {
    route: &'a Route,
    /// Events that were given up: one line tells of all of them.
    given_up: usize,
    lines: Vec<JournalLine>,
}

impl Run<'_> {
    fn count(&self, outcome: &'static str, count: usize) {
        let then = match self.route.definition.then {
            Then::Send { .. } => "send",
            Then::Post { .. } => "post",
        };
        metrics::counter!(metric::ROUTE_EVENTS, "then" => then, "outcome" => outcome).increment(count as u64);
    }

    fn problem(&self) -> Option<String> {
        self.route.state.delivery().last_error.map(|(_, problem)| problem)
    }

    fn into_lines(self, now: Timestamp) -> Vec<JournalLine> {
        let (name, problem) = (&self.route.definition.name, self.problem());
        let mut lines = self.lines;
        if self.given_up > 0 {
            tracing::warn!(route = name, events = self.given_up, problem, "events of a route are given up");
            lines.push(line(now, "dropped", name, json!({ "events": self.given_up, "problem": problem })));
        }
        lines
    }
}

impl JobKind for MatchJobs {
    fn run<'a>(&'a self, claimed: &'a ClaimedJob) -> BoxFuture<'a, JobOutcome> {
        async move {
            let Some(name) = route_of(&claimed.job) else {
                tracing::error!(job = claimed.job.name, "a job of a route has no name of one");
                return JobOutcome::Done;
            };
            self.run_route(name, claimed).await.unwrap_or_else(|error| {
                tracing::warn!(route = name, %error, "what a route owes could not be read or deleted");
                JobOutcome::Again(SOON)
            })
        }
        .boxed()
    }

    /// Receivers that do not answer take no more than their part of the places.
    fn lane(&self, claimed: &ClaimedJob) -> Option<String> {
        let table = self.hub.routes.table();
        match &table.find(route_of(&claimed.job)?)?.definition.then {
            Then::Post { url, .. } => Some(origin(url)),
            Then::Send { .. } => None,
        }
    }
}

impl MatchJobs {
    async fn run_route(&self, name: &str, claimed: &ClaimedJob) -> Result<JobOutcome, StoreError> {
        let Some(route) = self.hub.routes.table().find(name).cloned() else {
            self.hub.routes.forget(name).await?;
            return Ok(JobOutcome::Done);
        };
        if !route.definition.enabled {
            self.hub.routes.forget(name).await?;
            return Ok(JobOutcome::Done);
        }
        let Ok(_delivering) = route.state.delivering.try_lock() else { return Ok(JobOutcome::Again(SOON)) };
        let progress: Progress = serde_json::from_slice(&claimed.job.body).unwrap_or_default();
        route.state.recall(progress.attempts, progress.tried);
        let mut run = Run { route: &route, given_up: 0, lines: Vec::new() };
        let outcome = self.run_steps(&mut run).await;
        let lines = run.into_lines(self.now());
        self.hub.routes.tell(lines).await;
        outcome
    }

    async fn run_steps(&self, run: &mut Run<'_>) -> Result<JobOutcome, StoreError> {
        let (route, began) = (run.route, self.now());
        loop {
            let wait = until(self.now(), route.state.delivery().not_before);
            if !wait.is_zero() {
                return Ok(again(route, wait));
            }
            let hits = self.hub.parts.store.jobs_named(&prefix(&route.definition.name), "", PAGE).await?;
            if hits.is_empty() {
                return Ok(JobOutcome::Done);
            }
            if let Some(wait) = self.take_step(run, &hits).await? {
                return Ok(again(route, wait));
            }
            if later(began, TURN) <= self.now() {
                return Ok(again(route, Duration::ZERO));
            }
        }
    }

    /// Delivers the first hits; says how long the others have to wait, if they have to.
    async fn take_step(&self, run: &mut Run<'_>, hits: &[NewJob]) -> Result<Option<Duration>, StoreError> {
        let route = run.route;
        let step = match self.owner(route) {
            None => {
                let problem = "the key of its owner is revoked: have another administrator write it anew";
                Step::GivenUp(hits.len(), problem.to_owned())
            }
            Some(owner) => match &route.definition.then {
                Then::Send { skill, targets } => {
                    let hints = DispatchHints { skill: skill.clone(), targets: targets.clone(), ..Default::default() };
                    self.send(route, &owner, hints, &hits[0]).await?
                }
                Then::Post { url, secret_env } => self.post(route, (url, secret_env.as_deref()), &owner, hits).await?,
            },
        };
        self.settle(run, hits, step).await
    }

    /// Who sends for a route, as its key is now. What the operator's files say is sent as the operator.
    fn owner(&self, route: &Route) -> Option<Caller> {
        match &route.source {
            Source::File { .. } => Some(Caller::local()),
            Source::Registration { owner, .. } if *owner == Caller::local().id => Some(Caller::local()),
            Source::Registration { owner, .. } => self.hub.parts.callers.find(owner),
        }
    }

    async fn send(
        &self,
        route: &Route,
        owner: &Caller,
        hints: DispatchHints,
        job: &NewJob,
    ) -> Result<Step, StoreError> {
        let hub = &*self.hub;
        let Some(trigger) = read(hub, job).await? else { return Ok(deleted(1)) };
        let chain = match trigger.task {
            Some(task) => match hub.engine.chain_after(task).await {
                Ok(chain) => chain,
                Err(error) => return Ok(self.failed(route, 1, &error)),
            },
            None => None,
        };
        let name = &route.definition.name;
        let root = chain.as_ref().map(|chain| format!("{}/{}", chain.root.node, chain.root.task));
        let cause = root.or_else(|| trigger.item.correlation_id.clone());
        if let Some(cause) = cause.filter(|cause| !hub.routes.sends.allows(cause, self.now())) {
            let settings = &hub.parts.config.hub.routes;
            let (most, within) = (settings.sends_per_root.get(), settings.sends_within);
            let problem = format!(
                "routes have sent {most} messages within {within} because of {cause} (hub.routes.sendsPerRoot)"
            );
            if let Some(drops) = &hub.drops {
                drops.record(DropReason::Hops, name, &owner.id, &problem);
            }
            return Ok(Step::GivenUp(1, problem));
        }
        match message::send(hub, owner, route, hints, &trigger, chain.as_ref()).await {
            // Under its key something was sent before, by another definition of the route.
            Ok(()) | Err(Error::KeyReused | Error::MessageIdReused(_)) => Ok(Step::Delivered(1)),
            Err(error) => Ok(self.failed(route, 1, &error)),
        }
    }

    async fn post(
        &self,
        route: &Route,
        to: (&str, Option<&str>),
        owner: &Caller,
        jobs: &[NewJob],
    ) -> Result<Step, StoreError> {
        let (hub, delivery) = (&*self.hub, route.state.delivery());
        // What was tried before is tried as it was, so that its id says the same.
        let tried = delivery.tried.filter(|(first, _)| jobs.first().is_some_and(|job| job.name == *first));
        let is_in = |job: &&NewJob| tried.as_ref().is_none_or(|(_, last)| job.name <= *last);
        let most = hub.routes.most_at_once(route);
        let mut items = Vec::new();
        for job in jobs.iter().filter(is_in).take(most) {
            let Some(trigger) = read(hub, job).await? else {
                // Those before it go first.
                if items.is_empty() {
                    return Ok(deleted(1));
                }
                break;
            };
            items.push(trigger.item);
        }
        let count = fitting(&items);
        let stopping = hub.engine.closing();
        let attempt = tokio::select! {
            attempt = hub.routes.post(route, to, &owner.id, &items[..count]) => attempt,
            () = stopping.cancelled() => return Ok(Step::Later(SOON)),
        };
        let after = match attempt.outcome {
            PostOutcome::Delivered => return Ok(Step::Delivered(count)),
            PostOutcome::Refused => return Ok(Step::GivenUp(count, attempt.problem)),
            PostOutcome::Crowded => return Ok(Step::Later(SOON)),
            PostOutcome::Retry { after } => after,
        };
        Ok(self.retry(route, count, after, attempt.problem))
    }

    /// What follows from an error of the kernel.
    fn failed(&self, route: &Route, count: usize, error: &Error) -> Step {
        match error {
            _ if self.hub.engine.closing().is_cancelled() => Step::Later(SOON),
            Error::Unavailable { retry_after_ms, .. } => {
                let after = Some(Duration::from_millis(*retry_after_ms));
                self.retry(route, count, after, error.to_string())
            }
            _ => Step::GivenUp(count, error.to_string()),
        }
    }

    fn retry(&self, route: &Route, count: usize, after: Option<Duration>, problem: String) -> Step {
        let attempts = route.state.delivery().attempts + 1;
        match self.hub.routes.posts.next_attempt(attempts, after, self.now()) {
            Some(at) => Step::Waits(count, at, problem),
            None => Step::GivenUp(count, format!("{problem}, and it was the last attempt")),
        }
    }

    /// Stores what became of the first hits.
    async fn settle(&self, run: &mut Run<'_>, hits: &[NewJob], step: Step) -> Result<Option<Duration>, StoreError> {
        let (name, state, now) = (run.route.definition.name.as_str(), &run.route.state, self.now());
        let (settled, waits) = match step {
            Step::Later(wait) => (0, Some(wait)),
            Step::Delivered(delivered) => {
                run.count("delivered", delivered);
                if state.delivered(now) {
                    run.lines.push(line(now, "recovered", name, json!({})));
                }
                (delivered, None)
            }
            Step::GivenUp(given_up, problem) => {
                run.count("dropped", given_up);
                run.given_up += given_up;
                tracing::debug!(route = name, events = given_up, problem, "events of a route are given up");
                state.gave_up(now, &problem);
                (given_up, None)
            }
            Step::Waits(tried, at, problem) => {
                run.count("failed", tried);
                tracing::info!(route = name, events = tried, problem, "a route could not deliver, and tries again");
                let ends = (hits[0].name.clone(), hits[tried - 1].name.clone());
                if state.failed(now, &problem, at, ends) {
                    run.lines.push(line(now, "failing", name, json!({ "problem": run.problem() })));
                }
                (0, Some(until(now, at)))
            }
        };
        if settled > 0 {
            let removed = self.hub.parts.store.remove_jobs(names(&hits[..settled])).await?;
            if let Some(left_out) = state.settled(removed as u64, self.most()) {
                run.lines.push(line(now, "resumed", name, json!({ "leftOut": left_out })));
            }
        }
        Ok(waits)
    }

    fn most(&self) -> u64 {
        self.hub.parts.config.hub.routes.owed.get() as u64
    }

    fn now(&self) -> Timestamp {
        self.hub.parts.clock.now()
    }
}

async fn read(hub: &HubState, job: &NewJob) -> Result<Option<Trigger>, StoreError> {
    match serde_json::from_slice::<Hit>(&job.body) {
        Ok(hit) => Trigger::read(hub, &hit).await,
        Err(error) => {
            tracing::error!(job = job.name, %error, "the body of a job cannot be read");
            Ok(None)
        }
    }
}

fn deleted(count: usize) -> Step {
    Step::GivenUp(count, "the event was deleted before it was delivered (store.retention, hub.journal.keep)".to_owned())
}

pub(super) fn names(jobs: &[NewJob]) -> Vec<String> {
    jobs.iter().map(|job| job.name.clone()).collect()
}

/// Due again, with how far it has come.
fn again(route: &Route, wait: Duration) -> JobOutcome {
    let delivery = route.state.delivery();
    let progress = Progress { attempts: delivery.attempts, tried: delivery.tried };
    JobOutcome::Changed(wait, Bytes::from(serde_json::to_vec(&progress).unwrap_or_default()))
}

fn until(now: Timestamp, at: Timestamp) -> Duration {
    Duration::from_millis(u64::try_from(at.0.saturating_sub(now.0)).unwrap_or(0))
}
