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
use endpoint::{Endpoint, MOST_WAITING_PAUSED, Place};

/// So much waits in all before it is a crowd.
const CROWD: usize = 100_000;
/// Endpoints that have failed are remembered up to so many, though there is nothing to do for them now.
const MOST_REMEMBERED: usize = 10_000;
/// One caller has at most this part of the places, unless there are only a few.
const SHARE: usize = 4;
const FEW: usize = 32;

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
enum Known {
    Waiting(Arc<str>, CallerId),
    /// With the route it is to be done once more by, if there was news meanwhile.
    Running(Option<Route>),
}

/// What a caller has under way and may start.
#[derive(Default)]
struct Owner {
    running: usize,
    /// Endpoints at which something of it waits that is not blocked there, in turn.
    ready: VecDeque<Arc<str>>,
    /// It is in `turns`.
    has_turn: bool,
}

/// All endpoints that there is something to do for.
pub(crate) struct Endpoints {
    endpoints: HashMap<Arc<str>, Endpoint>,
    owners: HashMap<CallerId, Owner>,
    /// Callers that may have something to start, in turn.
    turns: VecDeque<CallerId>,
    /// Endpoints that are paused, by the time their pause ends.
    pauses: BTreeSet<(Timestamp, Arc<str>)>,
    known: HashMap<Job, Known>,
    running: usize,
    /// How much may be under way for one caller.
    share: usize,
    options: Options,
    /// Endpoints that were paused and are no longer known.
    forgotten: Vec<Arc<str>>,
    /// Something that is left in the store is no longer known here.
    has_more: bool,
}

impl Endpoints {
    pub(crate) fn new(options: Options) -> Self {
        let share = if options.parallel < FEW { options.parallel } else { options.parallel / SHARE };
        Self {
            endpoints: HashMap::new(),
            owners: HashMap::new(),
            turns: VecDeque::new(),
            pauses: BTreeSet::new(),
            known: HashMap::new(),
            running: 0,
            share,
            options,
            forgotten: Vec::new(),
            has_more: false,
        }
    }

    /// Takes a job in. One that is under way is done once more after it; one that waits elsewhere moves.
    pub(crate) fn add(&mut self, route: Route) {
        let crowded = self.known.len() >= CROWD;
        match self.known.entry(route.webhook) {
            Entry::Occupied(mut known) => match known.get_mut() {
                Known::Running(again) => {
                    *again = Some(route);
                    return;
                }
                Known::Waiting(name, _) if **name == *route.endpoint => return,
                Known::Waiting(..) => {
                    if let Known::Waiting(name, owner) = known.remove() {
                        self.take_out(route.webhook, &name, &owner);
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
        let room = endpoint.lane_room(crowded);
        let lane = endpoint.lanes.entry(route.owner.clone()).or_default();
        if lane.waiting.len() >= room {
            lane.has_more = true;
        } else {
            lane.waiting.push_back(route.webhook);
            self.known.insert(route.webhook, Known::Waiting(Arc::clone(&name), route.owner.clone()));
        }
        if lane.place == Place::Nowhere {
            lane.place = Place::Ready;
            self.make_ready(&route.owner, name);
        }
    }

    /// A job that waited somewhere goes elsewhere.
    fn take_out(&mut self, job: Job, name: &Arc<str>, owner: &CallerId) {
        let Some(endpoint) = self.endpoints.get_mut(name) else { return };
        if let Some(lane) = endpoint.lanes.get_mut(owner) {
            lane.waiting.retain(|waiting| *waiting != job);
        }
    }

    fn make_ready(&mut self, owner: &CallerId, name: Arc<str>) {
        self.owners.entry(owner.clone()).or_default().ready.push_back(name);
        self.give_turn(owner);
    }

    /// A caller that has its share gets its turn when a job of it ends.
    fn give_turn(&mut self, id: &CallerId) {
        let Some(owner) = self.owners.get_mut(id) else { return };
        if owner.ready.is_empty() {
            if owner.running == 0 && !owner.has_turn {
                self.owners.remove(id);
            }
        } else if !owner.has_turn && owner.running < self.share {
            owner.has_turn = true;
            self.turns.push_back(id.clone());
        }
    }

    /// The next job to start; none if there is none now.
    pub(crate) fn start(&mut self, now: Timestamp) -> Option<Started> {
        while self.running < self.options.parallel {
            let id = self.turns.pop_front()?;
            let Some(owner) = self.owners.get_mut(&id) else { continue };
            owner.has_turn = false;
            let started = if owner.running < self.share { self.start_for(&id, now) } else { None };
            self.give_turn(&id);
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
        let has_room = endpoint.has_room(now, self.options.parallel_per_endpoint);
        let lane = endpoint.lanes.get_mut(id)?;
        lane.place = Place::Nowhere;
        if lane.waiting.is_empty() {
            self.tidy(&name, id);
            return None;
        }
        if !has_room {
            lane.place = Place::Blocked;
            endpoint.blocked.push_back(id.clone());
            return None;
        }
        let job = lane.waiting.pop_front()?;
        if !lane.waiting.is_empty() {
            lane.place = Place::Ready;
            owner.ready.push_back(Arc::clone(&name));
        }
        owner.running += 1;
        endpoint.running += 1;
        if let Some(pause) = &mut endpoint.paused {
            pause.probing = true;
        }
        endpoint.tidy(id);
        self.running += 1;
        self.known.insert(job, Known::Running(None));
        Some(Started { job, owner: id.clone(), endpoint: name })
    }

    /// A job has ended. If there is more to do for it, it stands in line again.
    pub(crate) fn end(&mut self, started: &Started, health: Health, more: bool, now: Timestamp) -> Change {
        let Started { job, owner: id, endpoint: name } = started;
        self.running = self.running.saturating_sub(1);
        if let Some(owner) = self.owners.get_mut(id) {
            owner.running = owner.running.saturating_sub(1);
        }
        let again = match self.known.remove(job) {
            Some(Known::Running(again)) => again,
            _ => None,
        };
        let mut change = Change::None;
        if let Some(endpoint) = self.endpoints.get_mut(name) {
            endpoint.running = endpoint.running.saturating_sub(1);
            change = endpoint.judge(health, &self.options, now);
        }
        if let Change::Paused { .. } = change {
            self.leave_to_the_store(name);
        }
        let same = || Route { webhook: *job, owner: id.clone(), endpoint: name.to_string() };
        if let Some(route) = again.or_else(|| more.then(same)) {
            self.add(route);
        }
        self.wake(name);
        self.tidy(name, id);
        self.give_turn(id);
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
            lane.place = Place::Ready;
            self.make_ready(&id, Arc::clone(name));
        }
    }

    /// Forgets what there is nothing to do for. Failures are remembered for a while, so that they add up.
    fn tidy(&mut self, name: &Arc<str>, owner: &CallerId) {
        let too_many = self.endpoints.len() > MOST_REMEMBERED;
        let Some(endpoint) = self.endpoints.get_mut(name) else { return };
        endpoint.tidy(owner);
        if endpoint.is_idle() && (endpoint.failures == 0 || too_many) {
            self.forget(name);
        }
    }

    fn forget(&mut self, name: &Arc<str>) {
        if let Some(Endpoint { paused: Some(pause), .. }) = self.endpoints.remove(name) {
            self.pauses.remove(&(pause.until, Arc::clone(name)));
            self.forgotten.push(Arc::clone(name));
        }
    }

    /// Of what waits at an endpoint that is paused from now on, a few of each caller are enough to try it with.
    fn leave_to_the_store(&mut self, name: &Arc<str>) {
        let Some(endpoint) = self.endpoints.get_mut(name) else { return };
        for lane in endpoint.lanes.values_mut() {
            while lane.waiting.len() > MOST_WAITING_PAUSED {
                lane.has_more = true;
                if let Some(job) = lane.waiting.pop_back() {
                    self.known.remove(&job);
                }
            }
        }
    }

    /// When the next pause ends. Endpoints whose pause is over are tried if something waits for them, and forgotten if not.
    pub(crate) fn next_try(&mut self, now: Timestamp) -> Option<Timestamp> {
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
                let is_empty = lane.waiting.is_empty() && lane.place == Place::Nowhere;
                self.has_more |= is_empty && lane.has_more;
                !is_empty
            });
            if endpoint.is_idle() {
                self.forget(&name);
            }
        }
        None
    }

    /// Puts a job before all others, and ends its endpoint's pause: it is the try.
    pub(crate) fn try_now(&mut self, route: Route, now: Timestamp) {
        let Route { webhook: job, owner: id, endpoint: name } = route.clone();
        match self.known.remove(&job) {
            Some(Known::Running(_)) => {
                self.known.insert(job, Known::Running(Some(route)));
                return;
            }
            Some(Known::Waiting(name, owner)) => self.take_out(job, &name, &owner),
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
        lane.place = Place::Ready;
        self.known.insert(job, Known::Waiting(Arc::clone(&name), id.clone()));
        let owner = self.owners.entry(id.clone()).or_default();
        owner.ready.retain(|ready| *ready != name);
        owner.ready.push_front(name);
        self.give_turn(&id);
        // To the front, if it has a turn at all.
        let turns = self.turns.len();
        self.turns.retain(|turn| *turn != id);
        if self.turns.len() < turns {
            self.turns.push_front(id);
        }
    }

    /// Endpoints that were paused and are no longer known, and whether something was left in the store for any.
    pub(crate) fn forgotten(&mut self) -> (Vec<Arc<str>>, bool) {
        (std::mem::take(&mut self.forgotten), std::mem::take(&mut self.has_more))
    }

    /// Whether a caller has little left to do at an endpoint while more of it is in the store.
    pub(crate) fn wants_more(&mut self, name: &str, owner: &CallerId) -> bool {
        let Some((name, endpoint)) = self.endpoints.get_key_value(name) else { return false };
        let is_paused = endpoint.paused.is_some();
        let name = Arc::clone(name);
        let lane = self.endpoints.get_mut(&name).and_then(|endpoint| endpoint.lanes.get_mut(owner));
        let Some(lane) = lane else { return false };
        let low = !is_paused && lane.waiting.len() <= MOST_WAITING_PAUSED;
        let wants = low && std::mem::take(&mut lane.has_more);
        self.tidy(&name, owner);
        wants
    }
}
