//! Who may be called now: so many deliveries at once in all, for each caller and to each endpoint, callers in turn, and
//! none to an endpoint that keeps failing but for one try from time to time.
//!
//! What waits for an endpoint stands in lanes, one per caller, so that nobody stands behind somebody else's failures. A
//! lane in which something waits is always either among what its caller may start or blocked at its endpoint, and each end
//! of a job lets all that it may have blocked try again: no wake-up depends on another one having been put to use.
//!
//! What waits here also waits in the store. So of each lane only as much is taken in as can soon be done; a dead endpoint
//! with a hundred thousand deliveries takes the place of a few.

mod endpoint;
#[cfg(test)]
mod tests;

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use switchboard_a2a::Timestamp;
use switchboard_engine::CallerId;
use switchboard_engine::store::webhooks::{Route, WebhookKey};

use crate::Options;
use endpoint::{Endpoint, LaneState, MOST_WAITING_PAUSED};

/// So much waits in all before it is a crowd.
const CROWDED_AT: usize = 100_000;
/// Endpoints that have failed are remembered up to so many, though there is nothing to do for them now.
const MOST_REMEMBERED: usize = 10_000;
/// One caller has at most this part of the places, unless there are only a few.
const CALLER_FRACTION: usize = 4;
const UNSHARED_BELOW: usize = 32;

/// One thing to do: the next step of a webhook. One of a webhook is under way at a time.
pub(crate) type Job = WebhookKey;

/// How an attempt went, as far as its endpoint is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    /// It answers.
    Good,
    /// It does not, or not well.
    Bad,
    /// It was not asked.
    Unknown,
}

/// What a job's end changed for its endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    None,
    /// It is paused from now on, or still.
    Paused {
        until: Timestamp,
    },
    /// It answers again.
    Recovered,
}

/// A job that was started.
#[derive(Clone, Debug)]
pub(crate) struct Started {
    pub(crate) job: Job,
    pub(crate) owner: CallerId,
    pub(crate) endpoint: Arc<str>,
}

/// Where a known job is.
enum JobState {
    Waiting(Arc<str>, CallerId),
    /// With the route it is to be done once more by, if there was news meanwhile.
    Running(Option<Route>),
}

/// What a caller has under way and may start.
#[derive(Default)]
struct CallerQueue {
    running: usize,
    /// Endpoints at which something of it waits that is not blocked there, in turn.
    ready: VecDeque<Arc<str>>,
    /// It is in `turns`.
    scheduled: bool,
}

/// All endpoints that there is something to do for.
pub(crate) struct Endpoints {
    endpoints: HashMap<Arc<str>, Endpoint>,
    owners: HashMap<CallerId, CallerQueue>,
    /// Callers that may have something to start, in turn.
    round_robin: VecDeque<CallerId>,
    /// Endpoints that are paused, by the time their pause ends.
    pauses: BTreeSet<(Timestamp, Arc<str>)>,
    jobs: HashMap<Job, JobState>,
    running: usize,
    /// How much may be under way for one caller.
    caller_limit: usize,
    options: Options,
    /// Endpoints that were paused and are no longer known.
    removed: Vec<Arc<str>>,
    /// Something that is left in the store is no longer known here.
    has_more: bool,
}

impl Endpoints {
    pub(crate) fn new(options: Options) -> Self {
        let caller_limit =
            if options.parallel < UNSHARED_BELOW { options.parallel } else { options.parallel / CALLER_FRACTION };
        Self {
            endpoints: HashMap::new(),
            owners: HashMap::new(),
            round_robin: VecDeque::new(),
            pauses: BTreeSet::new(),
            jobs: HashMap::new(),
            running: 0,
            caller_limit,
            options,
            removed: Vec::new(),
            has_more: false,
        }
    }

    /// Takes a job in. One that is under way is done once more after it; one that waits elsewhere moves.
    pub(crate) fn add(&mut self, route: Route) {
        let crowded = self.jobs.len() >= CROWDED_AT;
        match self.jobs.entry(route.webhook) {
            Entry::Occupied(mut jobs) => match jobs.get_mut() {
                JobState::Running(again) => {
                    *again = Some(route);
                    return;
                }
                JobState::Waiting(name, _) if **name == *route.endpoint => return,
                JobState::Waiting(..) => {
                    if let JobState::Waiting(name, owner) = jobs.remove() {
                        self.unqueue(route.webhook, &name, &owner);
                    }
                }
            },
            Entry::Vacant(_) => {}
        }
        let name: Arc<str> = match self.endpoints.get_key_value(route.endpoint.as_str()) {
            Some((name, _)) => Arc::clone(name),
            None => Arc::from(route.endpoint.as_str()),
        };
        let endpoint = self.endpoints.entry(Arc::clone(&name)).or_default();
        let room = endpoint.lane_capacity(crowded);
        let lane = endpoint.lanes.entry(route.owner.clone()).or_default();
        if lane.waiting.len() >= room {
            lane.has_more = true;
        } else {
            lane.waiting.push_back(route.webhook);
            self.jobs.insert(route.webhook, JobState::Waiting(Arc::clone(&name), route.owner.clone()));
        }
        if lane.state == LaneState::Idle {
            lane.state = LaneState::Ready;
            self.make_ready(&route.owner, name);
        }
    }

    /// A job that waited somewhere goes elsewhere.
    fn unqueue(&mut self, job: Job, name: &Arc<str>, owner: &CallerId) {
        let Some(endpoint) = self.endpoints.get_mut(name) else { return };
        if let Some(lane) = endpoint.lanes.get_mut(owner) {
            lane.waiting.retain(|waiting| *waiting != job);
        }
    }

    fn make_ready(&mut self, owner: &CallerId, name: Arc<str>) {
        self.owners.entry(owner.clone()).or_default().ready.push_back(name);
        self.schedule_caller(owner);
    }

    /// A caller that has its share gets its turn when a job of it ends.
    fn schedule_caller(&mut self, id: &CallerId) {
        let Some(owner) = self.owners.get_mut(id) else { return };
        if owner.ready.is_empty() {
            if owner.running == 0 && !owner.scheduled {
                self.owners.remove(id);
            }
        } else if !owner.scheduled && owner.running < self.caller_limit {
            owner.scheduled = true;
            self.round_robin.push_back(id.clone());
        }
    }

    /// The next job to start; none if there is none now.
    pub(crate) fn start(&mut self, now: Timestamp) -> Option<Started> {
        while self.running < self.options.parallel {
            let id = self.round_robin.pop_front()?;
            let Some(owner) = self.owners.get_mut(&id) else { continue };
            owner.scheduled = false;
            let started = if owner.running < self.caller_limit { self.start_for(&id, now) } else { None };
            self.schedule_caller(&id);
            if started.is_some() {
                return started;
            }
        }
        None
    }

    /// Starts a job of a caller at the endpoint whose turn it is, if that has one and has room for it.
    fn start_for(&mut self, id: &CallerId, now: Timestamp) -> Option<Started> {
        let owner = self.owners.get_mut(id)?;
        let name = owner.ready.pop_front()?;
        let endpoint = self.endpoints.get_mut(&name)?;
        let may_start = endpoint.may_start(now, self.options.parallel_per_endpoint);
        let lane = endpoint.lanes.get_mut(id)?;
        lane.state = LaneState::Idle;
        if lane.waiting.is_empty() {
            self.remove_if_idle(&name, id);
            return None;
        }
        if !may_start {
            lane.state = LaneState::Blocked;
            endpoint.blocked.push_back(id.clone());
            return None;
        }
        let job = lane.waiting.pop_front()?;
        if !lane.waiting.is_empty() {
            lane.state = LaneState::Ready;
            owner.ready.push_back(Arc::clone(&name));
        }
        owner.running += 1;
        endpoint.running += 1;
        if let Some(pause) = &mut endpoint.paused {
            pause.probing = true;
        }
        endpoint.remove_if_idle(id);
        self.running += 1;
        self.jobs.insert(job, JobState::Running(None));
        Some(Started { job, owner: id.clone(), endpoint: name })
    }

    /// A job has ended. If there is more to do for it, it stands in line again.
    pub(crate) fn end(&mut self, started: &Started, health: Health, more: bool, now: Timestamp) -> Change {
        let Started { job, owner: id, endpoint: name } = started;
        self.running = self.running.saturating_sub(1);
        if let Some(owner) = self.owners.get_mut(id) {
            owner.running = owner.running.saturating_sub(1);
        }
        let again = match self.jobs.remove(job) {
            Some(JobState::Running(again)) => again,
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
        let same = || Route { webhook: *job, owner: id.clone(), endpoint: name.to_string() };
        if let Some(route) = again.or_else(|| more.then(same)) {
            self.add(route);
        }
        self.wake(name);
        self.remove_if_idle(name, id);
        self.schedule_caller(id);
        change
    }

    /// Lets what is blocked at an endpoint try again, now or at the end of its pause.
    fn wake(&mut self, name: &Arc<str>) {
        let Some(endpoint) = self.endpoints.get_mut(name) else { return };
        match endpoint.paused {
            Some(pause) if pause.probing => {}
            Some(pause) => drop(self.pauses.insert((pause.until, Arc::clone(name)))),
            None => self.unblock(name),
        }
    }

    fn unblock(&mut self, name: &Arc<str>) {
        let Some(endpoint) = self.endpoints.get_mut(name) else { return };
        for id in std::mem::take(&mut endpoint.blocked) {
            let Some(lane) = self.endpoints.get_mut(name).and_then(|endpoint| endpoint.lanes.get_mut(&id)) else {
                continue;
            };
            lane.state = LaneState::Ready;
            self.make_ready(&id, Arc::clone(name));
        }
    }

    /// Forgets what there is nothing to do for. Failures are remembered for a while, so that they add up.
    fn remove_if_idle(&mut self, name: &Arc<str>, owner: &CallerId) {
        let too_many = self.endpoints.len() > MOST_REMEMBERED;
        let Some(endpoint) = self.endpoints.get_mut(name) else { return };
        endpoint.remove_if_idle(owner);
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

    /// Of what waits at an endpoint that is paused from now on, a few of each caller are enough to try it with.
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

    /// When the next pause ends. Endpoints whose pause is over are tried if something waits for them, and forgotten if not.
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

    /// Puts a job before all others, and ends its endpoint's pause: it is the try.
    pub(crate) fn try_now(&mut self, route: Route, now: Timestamp) {
        let Route { webhook: job, owner: id, endpoint: name } = route.clone();
        match self.jobs.remove(&job) {
            Some(JobState::Running(_)) => {
                self.jobs.insert(job, JobState::Running(Some(route)));
                return;
            }
            Some(JobState::Waiting(name, owner)) => self.unqueue(job, &name, &owner),
            None => {}
        }
        let name: Arc<str> = Arc::from(name);
        let endpoint = self.endpoints.entry(Arc::clone(&name)).or_default();
        if let Some(pause) = &mut endpoint.paused {
            self.pauses.remove(&(pause.until, Arc::clone(&name)));
            pause.until = pause.until.min(now);
        }
        self.unblock(&name);
        let lane = self.endpoints.entry(Arc::clone(&name)).or_default().lanes.entry(id.clone()).or_default();
        lane.waiting.push_front(job);
        lane.state = LaneState::Ready;
        self.jobs.insert(job, JobState::Waiting(Arc::clone(&name), id.clone()));
        let owner = self.owners.entry(id.clone()).or_default();
        owner.ready.retain(|ready| *ready != name);
        owner.ready.push_front(name);
        self.schedule_caller(&id);
        // To the front, if it has a turn at all.
        let round_robin = self.round_robin.len();
        self.round_robin.retain(|turn| *turn != id);
        if self.round_robin.len() < round_robin {
            self.round_robin.push_front(id);
        }
    }

    /// Endpoints that were paused and are no longer known, and whether something was left in the store for any.
    pub(crate) fn take_removed(&mut self) -> (Vec<Arc<str>>, bool) {
        (std::mem::take(&mut self.removed), std::mem::take(&mut self.has_more))
    }

    /// Whether a caller has little left to do at an endpoint while more of it is in the store.
    pub(crate) fn needs_refill(&mut self, name: &str, owner: &CallerId) -> bool {
        let Some((name, endpoint)) = self.endpoints.get_key_value(name) else { return false };
        let is_paused = endpoint.paused.is_some();
        let name = Arc::clone(name);
        let lane = self.endpoints.get_mut(&name).and_then(|endpoint| endpoint.lanes.get_mut(owner));
        let Some(lane) = lane else { return false };
        let low = !is_paused && lane.waiting.len() <= MOST_WAITING_PAUSED;
        let wants = low && std::mem::take(&mut lane.has_more);
        self.remove_if_idle(&name, owner);
        wants
    }
}
