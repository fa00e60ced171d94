//! Who may be called now: so many deliveries at once in all, for each caller and to each endpoint, endpoints in turn, and
//! none to an endpoint that keeps failing but for one try from time to time.
//!
//! What waits here also waits in the store. So of each endpoint only as much is taken in as it can soon be called with;
//! a dead endpoint with a hundred thousand deliveries takes the place of a few.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use switchboard_a2a::Timestamp;
use switchboard_engine::CallerId;
use switchboard_engine::clock::later;
use switchboard_engine::store::webhooks::{Route, WebhookKey};

use crate::Options;

/// What waits at one endpoint in memory: usually, while very much waits in all, and while it is paused.
const MOST_WAITING: usize = 10_000;
const MOST_WAITING_IN_A_CROWD: usize = 64;
const MOST_WAITING_PAUSED: usize = 16;
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

#[derive(Default)]
struct Endpoint {
    waiting: VecDeque<(Job, CallerId)>,
    running: usize,
    failures: u32,
    paused: Option<Pause>,
    /// It is in `turns`.
    has_turn: bool,
    /// Something was left in the store.
    has_more: bool,
}

#[derive(Clone, Copy)]
struct Pause {
    until: Timestamp,
    length: Duration,
    /// The one try is under way.
    probing: bool,
}

/// Where a known job is.
enum Known {
    Waiting(Arc<str>),
    /// With the route it is to be done once more by, if there was news meanwhile.
    Running(Option<Route>),
}

/// All endpoints that there is something to do for.
pub(crate) struct Endpoints {
    endpoints: HashMap<Arc<str>, Endpoint>,
    /// Endpoints that may have something to start, in turn.
    turns: VecDeque<Arc<str>>,
    /// Endpoints that are paused and have something to do, by the time their pause ends.
    pauses: BTreeSet<(Timestamp, Arc<str>)>,
    known: HashMap<Job, Known>,
    /// How much is under way for each caller.
    owners: HashMap<CallerId, usize>,
    /// Endpoints that had their turn while their next caller had all its places.
    held_up: HashMap<CallerId, Vec<Arc<str>>>,
    running: usize,
    options: Options,
}

impl Endpoints {
    pub(crate) fn new(options: Options) -> Self {
        Self {
            endpoints: HashMap::new(),
            turns: VecDeque::new(),
            pauses: BTreeSet::new(),
            known: HashMap::new(),
            owners: HashMap::new(),
            held_up: HashMap::new(),
            running: 0,
            options,
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
                Known::Waiting(name) if **name == *route.endpoint => return,
                Known::Waiting(name) => {
                    if let Some(endpoint) = self.endpoints.get_mut(name) {
                        endpoint.waiting.retain(|(job, _)| *job != route.webhook);
                    }
                    known.remove();
                }
            },
            Entry::Vacant(_) => {}
        }
        let name: Arc<str> = match self.endpoints.get_key_value(route.endpoint.as_str()) {
            Some((name, _)) => Arc::clone(name),
            None => Arc::from(route.endpoint.as_str()),
        };
        let endpoint = self.endpoints.entry(Arc::clone(&name)).or_default();
        if endpoint.waiting.len() >= endpoint.room(crowded) {
            endpoint.has_more = true;
            return;
        }
        endpoint.waiting.push_back((route.webhook, route.owner));
        self.known.insert(route.webhook, Known::Waiting(Arc::clone(&name)));
        match endpoint.paused {
            Some(pause) if !pause.probing => drop(self.pauses.insert((pause.until, name))),
            _ => self.give_turn(&name),
        }
    }

    fn give_turn(&mut self, name: &Arc<str>) {
        let Some(endpoint) = self.endpoints.get_mut(name) else { return };
        if !endpoint.has_turn && !endpoint.waiting.is_empty() {
            endpoint.has_turn = true;
            self.turns.push_back(Arc::clone(name));
        }
    }

    /// The next job to start; none if there is none now.
    pub(crate) fn start(&mut self, now: Timestamp) -> Option<Started> {
        let parallel = self.options.parallel;
        let share = if parallel < FEW { parallel } else { parallel / SHARE };
        while self.running < self.options.parallel {
            let name = self.turns.pop_front()?;
            let Some(endpoint) = self.endpoints.get_mut(&name) else { continue };
            endpoint.has_turn = false;
            // Its turn comes back when a job of it ends or its pause does.
            if !endpoint.has_room(now, self.options.parallel_per_endpoint) {
                continue;
            }
            let Some((job, owner)) = endpoint.waiting.pop_front() else { continue };
            let places = self.owners.entry(owner.clone()).or_default();
            if *places >= share {
                endpoint.waiting.push_front((job, owner.clone()));
                self.held_up.entry(owner).or_default().push(name);
                continue;
            }
            *places += 1;
            endpoint.running += 1;
            if let Some(pause) = &mut endpoint.paused {
                pause.probing = true;
                self.pauses.remove(&(pause.until, Arc::clone(&name)));
            }
            self.running += 1;
            self.known.insert(job, Known::Running(None));
            self.give_turn(&name);
            return Some(Started { job, owner, endpoint: name });
        }
        None
    }

    /// A job has ended. If there is more to do for it, it stands in line again.
    pub(crate) fn end(&mut self, started: &Started, health: Health, more: bool, now: Timestamp) -> Change {
        let Started { job, owner, endpoint: name } = started;
        self.running = self.running.saturating_sub(1);
        self.free_place(owner);
        let again = match self.known.remove(job) {
            Some(Known::Running(again)) => again,
            _ => None,
        };
        let Some(endpoint) = self.endpoints.get_mut(name) else { return Change::None };
        endpoint.running = endpoint.running.saturating_sub(1);
        let change = endpoint.judge(health, &self.options, now);
        if let Change::Paused { .. } = change {
            self.leave_to_the_store(name);
        }
        let same = || Route { webhook: *job, owner: owner.clone(), endpoint: name.to_string() };
        if let Some(route) = again.or_else(|| more.then(same)) {
            self.add(route);
        }
        let too_many = self.endpoints.len() > MOST_REMEMBERED;
        let Some(endpoint) = self.endpoints.get_mut(name) else { return change };
        if endpoint.is_idle() && (endpoint.failures == 0 || too_many) {
            self.endpoints.remove(name);
            return change;
        }
        match endpoint.paused {
            Some(pause) if !pause.probing && !endpoint.waiting.is_empty() => {
                self.pauses.insert((pause.until, Arc::clone(name)));
            }
            _ => self.give_turn(name),
        }
        change
    }

    fn free_place(&mut self, owner: &CallerId) {
        if let Entry::Occupied(mut places) = self.owners.entry(owner.clone()) {
            *places.get_mut() = places.get().saturating_sub(1);
            if *places.get() == 0 {
                places.remove();
            }
        }
        let Some(mut held_up) = self.held_up.remove(owner) else { return };
        let name = held_up.pop();
        if !held_up.is_empty() {
            self.held_up.insert(owner.clone(), held_up);
        }
        if let Some(name) = name {
            self.give_turn(&name);
        }
    }

    /// Of what waits at an endpoint that is paused from now on, a few are enough to try it with.
    fn leave_to_the_store(&mut self, name: &Arc<str>) {
        let Some(endpoint) = self.endpoints.get_mut(name) else { return };
        while endpoint.waiting.len() > MOST_WAITING_PAUSED {
            endpoint.has_more = true;
            if let Some((job, _)) = endpoint.waiting.pop_back() {
                self.known.remove(&job);
            }
        }
    }

    /// When the next pause ends that something waits for. Endpoints whose pause is over are given their turn.
    pub(crate) fn next_try(&mut self, now: Timestamp) -> Option<Timestamp> {
        while let Some((until, name)) = self.pauses.first().cloned() {
            if until > now {
                return Some(until);
            }
            self.pauses.pop_first();
            self.give_turn(&name);
        }
        None
    }

    /// Whether an endpoint has little left to do here while more of it is in the store.
    pub(crate) fn wants_more(&mut self, name: &str) -> bool {
        let Some(endpoint) = self.endpoints.get_mut(name) else { return false };
        let low = endpoint.paused.is_none() && endpoint.waiting.len() <= MOST_WAITING_PAUSED;
        low && std::mem::take(&mut endpoint.has_more)
    }
}

impl Endpoint {
    /// How many may wait.
    fn room(&self, crowded: bool) -> usize {
        match (self.paused, crowded) {
            (Some(_), _) => MOST_WAITING_PAUSED,
            (None, true) => MOST_WAITING_IN_A_CROWD,
            (None, false) => MOST_WAITING,
        }
    }

    fn has_room(&self, now: Timestamp, most: usize) -> bool {
        match self.paused {
            Some(pause) => pause.until <= now && !pause.probing,
            None => self.running < most,
        }
    }

    /// There is nothing to do for it.
    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.running == 0 && !self.has_more
    }

    fn judge(&mut self, health: Health, options: &Options, now: Timestamp) -> Change {
        match health {
            Health::Unknown => {
                if let Some(pause) = &mut self.paused {
                    pause.probing = false;
                }
                Change::None
            }
            Health::Good => {
                self.failures = 0;
                match self.paused.take() {
                    Some(_) => Change::Recovered,
                    None => Change::None,
                }
            }
            Health::Bad => {
                self.failures = self.failures.saturating_add(1);
                let length = match self.paused {
                    // Others that were under way when it was paused tell nothing new.
                    Some(pause) if !pause.probing => return Change::None,
                    Some(pause) => (pause.length * 2).min(options.max_pause),
                    None if self.failures >= options.pause_after => options.pause,
                    None => return Change::None,
                };
                let until = later(now, length);
                self.paused = Some(Pause { until, length, probing: false });
                Change::Paused { until }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(webhook: i64, owner: &str, endpoint: &str) -> Route {
        Route { webhook: WebhookKey(webhook), owner: owner.into(), endpoint: endpoint.to_owned() }
    }

    fn all_started(endpoints: &mut Endpoints, now: Timestamp) -> Vec<Started> {
        std::iter::from_fn(|| endpoints.start(now)).collect()
    }

    #[test]
    fn one_caller_with_many_endpoints_leaves_places_for_others() {
        let mut endpoints = Endpoints::new(Options { parallel: 64, ..Options::default() });
        for number in 0..1_000 {
            endpoints.add(route(number, "hog", &format!("http://{number}.test")));
        }
        let now = Timestamp(0);
        let hogs = all_started(&mut endpoints, now);
        assert_eq!(hogs.len(), 16);
        endpoints.add(route(5_000, "ann", "http://ann.test"));
        let ann = all_started(&mut endpoints, now);
        assert_eq!((ann.len(), ann[0].job), (1, WebhookKey(5_000)));
        // Each that ends makes room for one more of the same caller, until all have had their turn.
        let mut running: VecDeque<_> = hogs.into();
        let mut done = 0;
        while let Some(started) = running.pop_front() {
            endpoints.end(&started, Health::Good, false, now);
            done += 1;
            running.extend(all_started(&mut endpoints, now));
            assert!(running.len() <= 16);
        }
        assert_eq!(done, 1_000);
        endpoints.end(&ann[0], Health::Good, false, now);
        assert!(endpoints.endpoints.is_empty() && endpoints.known.is_empty() && endpoints.owners.is_empty());
    }

    #[test]
    fn a_dead_endpoint_takes_the_place_of_a_few() {
        let mut endpoints = Endpoints::new(Options { pause_after: 1, ..Options::default() });
        let now = Timestamp(0);
        for number in 0..50_000 {
            endpoints.add(route(number, "ann", "http://dead.test"));
        }
        assert_eq!(endpoints.known.len(), MOST_WAITING);
        let started = all_started(&mut endpoints, now);
        assert_eq!(started.len(), endpoints.options.parallel_per_endpoint);
        for started in &started {
            endpoints.end(started, Health::Bad, false, now);
        }
        assert_eq!(endpoints.known.len(), MOST_WAITING_PAUSED);
        assert!(!endpoints.wants_more("http://dead.test"), "not while it is paused");
        let until = endpoints.next_try(now).unwrap();
        assert!(endpoints.start(now).is_none());
        assert_eq!(endpoints.next_try(until), None);
        let probe = all_started(&mut endpoints, until);
        assert_eq!(probe.len(), 1, "one try");
        assert_eq!(endpoints.end(&probe[0], Health::Good, false, until), Change::Recovered);
        assert!(endpoints.wants_more("http://dead.test"));
    }

    #[test]
    fn news_of_what_is_under_way_is_not_lost_and_what_moves_waits_at_its_new_endpoint() {
        let mut endpoints = Endpoints::new(Options::default());
        let now = Timestamp(0);
        endpoints.add(route(1, "ann", "http://a.test"));
        let started = endpoints.start(now).unwrap();
        endpoints.add(route(1, "ann", "http://b.test"));
        assert!(endpoints.start(now).is_none(), "one at a time");
        endpoints.end(&started, Health::Good, false, now);
        assert_eq!(&*endpoints.start(now).unwrap().endpoint, "http://b.test");
        endpoints.add(route(2, "ann", "http://a.test"));
        endpoints.add(route(2, "ann", "http://c.test"));
        let moved = all_started(&mut endpoints, now);
        assert_eq!((moved.len(), &*moved[0].endpoint), (1, "http://c.test"));
    }
}
