//! Admission of deliveries: limits in total, per caller and per endpoint, round robin between callers, and a circuit
//! breaker per endpoint: one that keeps failing is paused but for one probe from time to time.
//!
//! Each endpoint has a lane (a FIFO) per caller, so that no caller waits behind the failures of another. A lane with
//! waiting jobs is always either in its caller's ready queue or blocked at its endpoint, and the end of each job makes
//! all lanes ready that it may have blocked: no wake-up depends on an earlier one having been used.
//!
//! The store holds everything that waits here as well, so a lane takes in only what can be started soon: a dead endpoint
//! with a hundred thousand deliveries costs the memory of a few.

mod endpoint;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use switchboard_a2a::Timestamp;
use switchboard_admission::{FairQueue, KeyedCounter, KeyedPermit};
use switchboard_engine::CallerId;
use switchboard_engine::store::webhooks::{WebhookKey, WebhookRoute};

use crate::Options;
use endpoint::{Endpoint, LaneState, MOST_WAITING_PAUSED};

/// With so many jobs waiting in total, lanes are kept short.
const CROWDED_AT: usize = 100_000;
/// Idle endpoints whose failures are remembered.
const MOST_REMEMBERED: usize = 10_000;
/// One caller may use a quarter of `parallel`, or all of it where it is smaller than [`UNSHARED_BELOW`].
const CALLER_FRACTION: usize = 4;
const UNSHARED_BELOW: usize = 32;

/// The next step of a webhook. At most one of each webhook runs at a time.
pub(crate) type Job = WebhookKey;

/// What an attempt says about its endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    Good,
    /// It did not answer, or with an error that calls for a retry.
    Bad,
    /// It was not called.
    Unknown,
}

/// What the end of a job changed for its endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    None,
    Paused { until: Timestamp },
    Recovered,
}

/// A job that was started.
#[derive(Clone, Debug)]
pub(crate) struct Started {
    pub(crate) job: Job,
    pub(crate) owner: CallerId,
    pub(crate) endpoint: Arc<str>,
}

enum JobState {
    Waiting(Arc<str>, CallerId),
    Running {
        /// The route of the run after it, if the job was added again meanwhile.
        again: Option<WebhookRoute>,
        _permit: KeyedPermit<CallerId>,
    },
}

/// All endpoints with jobs, and those that have failed.
pub(crate) struct Endpoints {
    endpoints: HashMap<Arc<str>, Endpoint>,
    /// The lanes that are not blocked, by the name of their endpoint.
    ready: FairQueue<CallerId, Arc<str>>,
    /// Paused endpoints, by the end of their pause.
    pauses: BTreeSet<(Timestamp, Arc<str>)>,
    jobs: HashMap<Job, JobState>,
    running: KeyedCounter<CallerId>,
    options: Options,
    /// Endpoints that were removed while they were paused.
    removed: Vec<Arc<str>>,
    /// A removed endpoint has more in the store.
    has_more: bool,
}

impl Endpoints {
    pub(crate) fn new(options: Options) -> Self {
        let fraction = if options.parallel < UNSHARED_BELOW { 1 } else { CALLER_FRACTION };
        Self {
            endpoints: HashMap::new(),
            ready: FairQueue::default(),
            pauses: BTreeSet::new(),
            jobs: HashMap::new(),
            running: KeyedCounter::new(options.parallel, options.parallel / fraction),
            options,
            removed: Vec::new(),
            has_more: false,
        }
    }

    /// Queues a job. One that runs is run once more afterwards; one that waits at another endpoint moves.
    pub(crate) fn add(&mut self, route: WebhookRoute) {
        let crowded = self.jobs.len() >= CROWDED_AT;
        match self.jobs.get_mut(&route.webhook) {
            Some(JobState::Running { again, .. }) => {
                *again = Some(route);
                return;
            }
            Some(JobState::Waiting(name, _)) if **name == *route.endpoint => return,
            Some(JobState::Waiting(..)) => self.unqueue(route.webhook),
            None => {}
        }
        let name: Arc<str> = match self.endpoints.get_key_value(route.endpoint.as_str()) {
            Some((name, _)) => Arc::clone(name),
            None => Arc::from(route.endpoint.as_str()),
        };
        let endpoint = self.endpoints.entry(Arc::clone(&name)).or_default();
        let capacity = endpoint.lane_capacity(crowded);
        let lane = endpoint.lanes.entry(route.owner.clone()).or_default();
        if lane.waiting.len() >= capacity {
            lane.has_more = true;
        } else {
            lane.waiting.push_back(route.webhook);
            self.jobs.insert(route.webhook, JobState::Waiting(Arc::clone(&name), route.owner.clone()));
        }
        if lane.state == LaneState::Idle {
            lane.state = LaneState::Ready;
            self.ready.push(&route.owner, name);
        }
    }

    /// Takes a waiting job out of its lane.
    fn unqueue(&mut self, job: Job) {
        let Some(JobState::Waiting(name, owner)) = self.jobs.remove(&job) else { return };
        if let Some(lane) = self.endpoints.get_mut(&name).and_then(|endpoint| endpoint.lanes.get_mut(&owner)) {
            lane.waiting.retain(|waiting| *waiting != job);
        }
    }

    /// The next job that may start now.
    pub(crate) fn start(&mut self, now: Timestamp) -> Option<Started> {
        while self.running.held() < self.options.parallel {
            let mut permit = None;
            let (caller, name) = self.ready.pop(|caller, _| {
                permit = self.running.try_acquire(caller).ok();
                permit.is_some()
            })?;
            if let Some(started) = self.start_at(&caller, name, now) {
                self.jobs.insert(started.job, JobState::Running { again: None, _permit: permit? });
                return Some(started);
            }
        }
        None
    }

    /// Starts the first job of a lane, if there is one and its endpoint admits it.
    fn start_at(&mut self, caller: &CallerId, name: Arc<str>, now: Timestamp) -> Option<Started> {
        let endpoint = self.endpoints.get_mut(&name)?;
        let may_start = endpoint.may_start(now, self.options.parallel_per_endpoint);
        let lane = endpoint.lanes.get_mut(caller)?;
        lane.state = LaneState::Idle;
        if lane.waiting.is_empty() {
            self.remove_if_idle(&name, caller);
            return None;
        }
        if !may_start {
            lane.state = LaneState::Blocked;
            endpoint.blocked.push_back(caller.clone());
            return None;
        }
        let job = lane.waiting.pop_front()?;
        if !lane.waiting.is_empty() {
            lane.state = LaneState::Ready;
            self.ready.push(caller, Arc::clone(&name));
        }
        endpoint.running += 1;
        if let Some(pause) = &mut endpoint.paused {
            pause.probing = true;
        }
        endpoint.remove_lane_if_idle(caller);
        Some(Started { job, owner: caller.clone(), endpoint: name })
    }

    /// Ends a job, and queues it again if there is more to do for it.
    pub(crate) fn end(&mut self, started: &Started, health: Health, more: bool, now: Timestamp) -> Change {
        let Started { job, owner: caller, endpoint: name } = started;
        let again = match self.jobs.remove(job) {
            Some(JobState::Running { again, .. }) => again,
            _ => None,
        };
        let mut change = Change::None;
        if let Some(endpoint) = self.endpoints.get_mut(name) {
            endpoint.running = endpoint.running.saturating_sub(1);
            change = endpoint.record(health, &self.options, now);
        }
        if let Change::Paused { .. } = change {
            self.trim_lanes(name);
        }
        let same = || WebhookRoute { webhook: *job, owner: caller.clone(), endpoint: name.to_string() };
        if let Some(route) = again.or_else(|| more.then(same)) {
            self.add(route);
        }
        match self.endpoints.get(name).map(|endpoint| endpoint.paused) {
            Some(Some(pause)) if !pause.probing => drop(self.pauses.insert((pause.until, Arc::clone(name)))),
            Some(None) => self.unblock(name),
            _ => {}
        }
        self.remove_if_idle(name, caller);
        change
    }

    /// Makes the blocked lanes of an endpoint ready.
    fn unblock(&mut self, name: &Arc<str>) {
        let Some(endpoint) = self.endpoints.get_mut(name) else { return };
        for caller in std::mem::take(&mut endpoint.blocked) {
            if let Some(lane) = endpoint.lanes.get_mut(&caller) {
                lane.state = LaneState::Ready;
                self.ready.push(&caller, Arc::clone(name));
            }
        }
    }

    /// Removes an idle lane and an idle endpoint. Failures are remembered for a while, so that they add up.
    fn remove_if_idle(&mut self, name: &Arc<str>, owner: &CallerId) {
        let too_many = self.endpoints.len() > MOST_REMEMBERED;
        let Some(endpoint) = self.endpoints.get_mut(name) else { return };
        endpoint.remove_lane_if_idle(owner);
        if endpoint.is_idle() && (endpoint.failures == 0 || too_many) {
            self.remove(name);
        }
    }

    fn remove(&mut self, name: &Arc<str>) {
        if let Some(Endpoint { paused: Some(pause), .. }) = self.endpoints.remove(name) {
            self.pauses.remove(&(pause.until, Arc::clone(name)));
            self.removed.push(Arc::clone(name));
        }
    }

    /// Leaves a few jobs of each caller at a paused endpoint, enough to probe it with, and the rest to the store.
    fn trim_lanes(&mut self, name: &Arc<str>) {
        let Some(endpoint) = self.endpoints.get_mut(name) else { return };
        for lane in endpoint.lanes.values_mut() {
            while lane.waiting.len() > MOST_WAITING_PAUSED {
                lane.has_more = true;
                if let Some(job) = lane.waiting.pop_back() {
                    self.jobs.remove(&job);
                }
            }
        }
    }

    /// Ends the pauses that are over and returns when the next one will be. Endpoints without waiting jobs are removed.
    pub(crate) fn end_pauses(&mut self, now: Timestamp) -> Option<Timestamp> {
        while let Some((until, name)) = self.pauses.first().cloned() {
            let pause = self.endpoints.get(&name).and_then(|endpoint| endpoint.paused);
            let pause = pause.filter(|pause| pause.until == until);
            if pause.is_some_and(|pause| !pause.is_over(now)) {
                return Some(until);
            }
            self.pauses.pop_first();
            if pause.is_none() {
                continue;
            }
            self.unblock(&name);
            let Some(endpoint) = self.endpoints.get_mut(&name) else { continue };
            endpoint.lanes.retain(|_, lane| {
                let is_empty = lane.waiting.is_empty() && lane.state == LaneState::Idle;
                self.has_more |= is_empty && lane.has_more;
                !is_empty
            });
            if endpoint.is_idle() {
                self.remove(&name);
            }
        }
        None
    }

    /// Queues a job before all others and ends its endpoint's pause: the job is the probe.
    pub(crate) fn try_now(&mut self, route: WebhookRoute, now: Timestamp) {
        if let Some(JobState::Running { again, .. }) = self.jobs.get_mut(&route.webhook) {
            *again = Some(route);
            return;
        }
        self.unqueue(route.webhook);
        let WebhookRoute { webhook: job, owner: caller, endpoint } = route;
        let name: Arc<str> = Arc::from(endpoint);
        let endpoint = self.endpoints.entry(Arc::clone(&name)).or_default();
        if let Some(pause) = &mut endpoint.paused {
            self.pauses.remove(&(pause.until, Arc::clone(&name)));
            pause.until = pause.until.min(now);
        }
        self.unblock(&name);
        let lane = self.endpoints.entry(Arc::clone(&name)).or_default().lanes.entry(caller.clone()).or_default();
        lane.waiting.push_front(job);
        lane.state = LaneState::Ready;
        self.jobs.insert(job, JobState::Waiting(Arc::clone(&name), caller.clone()));
        self.ready.remove(&caller, |ready| *ready == name);
        self.ready.push_front(&caller, name);
    }

    /// The paused endpoints that were removed since the last call, and whether any has more in the store.
    pub(crate) fn take_removed(&mut self) -> (Vec<Arc<str>>, bool) {
        (std::mem::take(&mut self.removed), std::mem::take(&mut self.has_more))
    }

    /// Whether a lane runs low while the store has more for it.
    pub(crate) fn needs_refill(&mut self, name: &str, owner: &CallerId) -> bool {
        let Some((name, _)) = self.endpoints.get_key_value(name) else { return false };
        let name = Arc::clone(name);
        let Some(endpoint) = self.endpoints.get_mut(&name) else { return false };
        let Some(lane) = endpoint.lanes.get_mut(owner) else { return false };
        let is_low = endpoint.paused.is_none() && lane.waiting.len() <= MOST_WAITING_PAUSED;
        let needs_refill = is_low && std::mem::take(&mut lane.has_more);
        self.remove_if_idle(&name, owner);
        needs_refill
    }
}
