//! Who may be called now: so many deliveries at once in all and to each endpoint, endpoints in turn, and none to an
//! endpoint that keeps failing but for one try from time to time.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use switchboard_a2a::Timestamp;
use switchboard_engine::clock::later;
use switchboard_engine::store::webhooks::{DeliveryKey, WebhookKey};

use crate::Options;

/// How many jobs are known at once; those beyond wait in the store.
pub(crate) const MOST_JOBS: usize = 100_000;
/// Endpoints that have failed are remembered up to so many, though there is nothing to do for them now.
const MOST_REMEMBERED: usize = 10_000;

/// One thing to do: the next step of a webhook, or a delivery that an operator sends once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Job {
    Next(WebhookKey),
    Replay(DeliveryKey),
}

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

#[derive(Default)]
struct Endpoint {
    waiting: VecDeque<Job>,
    running: usize,
    failures: u32,
    paused: Option<Pause>,
    /// It is in `turns`.
    has_turn: bool,
}

#[derive(Clone, Copy)]
struct Pause {
    until: Timestamp,
    length: Duration,
    /// The one try is under way.
    probing: bool,
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

/// All endpoints that there is something to do for.
pub(crate) struct Endpoints {
    endpoints: HashMap<Arc<str>, Endpoint>,
    /// Endpoints that may have something to start, in turn.
    turns: VecDeque<Arc<str>>,
    /// Endpoints that are paused, by the time their pause ends.
    pauses: BTreeSet<(Timestamp, Arc<str>)>,
    /// Waiting or running.
    known: HashSet<Job>,
    /// Running ones that got news meanwhile.
    again: HashSet<Job>,
    running: usize,
    options: Options,
}

impl Endpoints {
    pub(crate) fn new(options: Options) -> Self {
        Self {
            endpoints: HashMap::new(),
            turns: VecDeque::new(),
            pauses: BTreeSet::new(),
            known: HashSet::new(),
            again: HashSet::new(),
            running: 0,
            options,
        }
    }

    /// Whether more can be taken in.
    pub(crate) fn is_full(&self) -> bool {
        self.known.len() >= MOST_JOBS
    }

    /// Whether a job waits or runs.
    pub(crate) fn knows(&self, job: Job) -> bool {
        self.known.contains(&job)
    }

    /// Takes a job in. One that is known already is done once more after it is done.
    pub(crate) fn add(&mut self, job: Job, endpoint: &str) {
        if !self.known.insert(job) {
            self.again.insert(job);
            return;
        }
        let name: Arc<str> = match self.endpoints.get_key_value(endpoint) {
            Some((name, _)) => Arc::clone(name),
            None => Arc::from(endpoint),
        };
        let known = self.endpoints.entry(Arc::clone(&name)).or_default();
        known.waiting.push_back(job);
        if !known.has_turn {
            known.has_turn = true;
            self.turns.push_back(name);
        }
    }

    /// The next job to start; none if there is none now.
    pub(crate) fn start(&mut self, now: Timestamp) -> Option<(Job, Arc<str>)> {
        if self.running >= self.options.parallel {
            return None;
        }
        for _ in 0..self.turns.len() {
            let name = self.turns.pop_front()?;
            let Some(endpoint) = self.endpoints.get_mut(&name) else { continue };
            if !endpoint.has_room(now, self.options.parallel_per_endpoint) {
                // Its turn comes back when a job of it ends or its pause does.
                endpoint.has_turn = false;
                continue;
            }
            let Some(job) = endpoint.waiting.pop_front() else {
                endpoint.has_turn = false;
                continue;
            };
            endpoint.running += 1;
            if let Some(pause) = &mut endpoint.paused {
                pause.probing = true;
            }
            self.running += 1;
            self.turns.push_back(Arc::clone(&name));
            return Some((job, name));
        }
        None
    }

    /// A job has ended. If there is more to do for it, it stands in line again.
    pub(crate) fn end(&mut self, job: Job, name: &Arc<str>, health: Health, more: bool, now: Timestamp) -> Change {
        self.running = self.running.saturating_sub(1);
        self.known.remove(&job);
        let again = self.again.remove(&job) || more;
        let Some(endpoint) = self.endpoints.get_mut(name) else { return Change::None };
        endpoint.running = endpoint.running.saturating_sub(1);
        let paused_until = endpoint.paused.map(|pause| pause.until);
        let change = endpoint.judge(health, &self.options, now);
        if change != Change::None
            && let Some(until) = paused_until
        {
            self.pauses.remove(&(until, Arc::clone(name)));
        }
        if let Change::Paused { until } = change {
            self.pauses.insert((until, Arc::clone(name)));
        }
        if again {
            self.add(job, name);
        }
        let too_many = self.endpoints.len() > MOST_REMEMBERED;
        let Some(endpoint) = self.endpoints.get_mut(name) else { return change };
        if endpoint.is_idle() && (endpoint.failures == 0 || too_many) {
            self.forget(name);
        } else if !endpoint.has_turn && !endpoint.waiting.is_empty() {
            endpoint.has_turn = true;
            self.turns.push_back(Arc::clone(name));
        }
        change
    }

    fn forget(&mut self, name: &Arc<str>) {
        if let Some(Endpoint { paused: Some(pause), .. }) = self.endpoints.remove(name) {
            self.pauses.remove(&(pause.until, Arc::clone(name)));
        }
    }

    /// When the next pause ends. Endpoints whose pause is over and that something waits for are given their turn.
    pub(crate) fn next_try(&mut self, now: Timestamp) -> Option<Timestamp> {
        for (until, name) in &self.pauses {
            if *until > now {
                return Some(*until);
            }
            let Some(endpoint) = self.endpoints.get_mut(name) else { continue };
            if !endpoint.waiting.is_empty() && !endpoint.has_turn {
                endpoint.has_turn = true;
                self.turns.push_back(Arc::clone(name));
            }
        }
        None
    }

    /// Endpoints that are paused, and until when.
    pub(crate) fn paused(&self) -> Vec<(String, Timestamp)> {
        self.pauses.iter().map(|(until, name)| (name.to_string(), *until)).collect()
    }
}

impl Endpoint {
    fn has_room(&self, now: Timestamp, most: usize) -> bool {
        match self.paused {
            Some(pause) => pause.until <= now && !pause.probing,
            None => self.running < most,
        }
    }

    /// There is nothing to do for it.
    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.running == 0
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
