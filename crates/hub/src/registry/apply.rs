//! Makes a new roster of what files and registrations say. An agent whose definition is the same stays as it is; one that
//! has changed keeps its name and its counters, and its next turn runs the new one; one that is gone drains.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use switchboard_engine::{AgentName, CallerId, Hosted, Served};
use switchboard_fleet::config::agent_files::AgentListing;
use switchboard_fleet::config::agents::Entry;
use switchboard_fleet::config::remote_agent::RemoteAgent;
use tokio_util::sync::CancellationToken;

use super::breaker::{BreakerSettings, BreakerState, CircuitBreaker};
use super::card_policies::{CardSkills, declared};
use super::file_definitions::StoredDefinitions;
use super::first_served::KnownServed;
use super::remote_state::{KnownCard, Observed, RemoteState};
use super::roster::{Draining, EntrySource, Roster, RosterEntry, RosterProblem};
use super::{Registry, default_agent, first_probe_in};

/// What files and registrations say.
#[derive(Default)]
pub(super) struct Definitions {
    pub(super) files: AgentListing,
    pub(super) registrations: BTreeMap<String, Registered>,
    /// The versions of rows of agents that are gone, which stay while tasks or jobs name them.
    pub(super) tombstones: BTreeMap<String, u64>,
    /// The last good card of each remote agent.
    pub(super) cards: BTreeMap<String, KnownCard>,
    /// The agents elsewhere that the files have served, once they are read.
    pub(super) served: Option<KnownServed>,
    /// The items of the files as the next process will know them.
    pub(super) stored: StoredDefinitions,
}

/// A registered agent.
#[derive(Clone, Debug)]
pub(super) struct Registered {
    pub(super) version: u64,
    pub(super) owner: CallerId,
    pub(super) agent: RemoteAgent,
    /// As it was written, for a tombstone.
    pub(super) item: Value,
}

/// A change of the roster: its word in topics, and the agent.
pub(super) type RosterChange = (&'static str, AgentName);

impl Registry {
    /// Applies them and says what has changed.
    pub(super) fn apply(self: &Arc<Self>, definitions: &Definitions) -> Vec<RosterChange> {
        let before = self.roster();
        let has_started = self.engine.read().is_some();
        let mut problems: Vec<_> = definitions.files.problems.iter().map(RosterProblem::of_file).collect();
        let (mut entries, mut changes, mut to_probe) = (Vec::new(), Vec::new(), Vec::new());
        let mut draining = before.draining.clone();
        let drained: HashMap<AgentName, Option<Arc<Hosted>>> =
            draining.iter().map(|draining| (draining.name.clone(), draining.hosted.clone())).collect();
        for (definition, source, shadows_registration) in definitions.wanted() {
            let name = AgentName::from(definition.name().as_str());
            let known = before.entry(name.as_str());
            if let Some(known) = known.filter(|known| known.definition.is_same(&definition)) {
                let entry = RosterEntry { definition, source, shadows_registration, ..(**known).clone() };
                entries.push(Arc::new(entry));
                continue;
            }
            let is_registered = matches!(source, EntrySource::Registration { .. });
            let built = self.build(&name, &definition, is_registered, known, definitions);
            let (served, remote) = match built {
                Ok(built) => built,
                Err(problem) => {
                    let problem = format!("{}: agent {name}: {problem}", definition.origin());
                    problems.push(RosterProblem::of_agent(&name, problem));
                    entries.extend(known.cloned());
                    continue;
                }
            };
            let hosted = served.map(|served| {
                let drained = || drained.get(&name)?.clone();
                match known.and_then(|known| known.hosted.clone()).or_else(drained) {
                    Some(hosted) => {
                        hosted.replace(served);
                        hosted
                    }
                    None => Arc::new(Hosted::serving(name.clone(), served)),
                }
            });
            if let Some(known) = known {
                self.retire(known, matches!(definition, Entry::Remote(_)));
                self.retire_breaker(known, remote.as_ref());
                if hosted.is_none() || remote.is_none() {
                    self.drain(&mut draining, Draining::of(known));
                }
            }
            // One that is not served any more may have tasks from before.
            if let (false, None, None, Some(remote)) = (has_started, known, &hosted, &remote) {
                let before = Hosted::serving(name.clone(), (self.serve_remote)(remote));
                let (hosted, remote) = (Some(Arc::new(before)), Some(Arc::clone(remote)));
                if !drained.contains_key(&name) {
                    draining.push(Draining { name: name.clone(), was_served: false, hosted, remote });
                }
            }
            let first_probe = first_probe_in(changes.len());
            changes.push((if known.is_some() { "changed" } else { "added" }, name.clone()));
            let entry = RosterEntry { name, definition, source, shadows_registration, hosted, remote };
            let entry = Arc::new(entry);
            to_probe.push((Arc::clone(&entry), first_probe));
            entries.push(entry);
        }
        let by_name: HashMap<AgentName, Arc<RosterEntry>> =
            entries.iter().map(|entry| (entry.name.clone(), Arc::clone(entry))).collect();
        if !has_started {
            self.serve_shadowed(definitions, &by_name, &mut draining);
        }
        for gone in &before.entries {
            if !by_name.contains_key(&gone.name) {
                self.retire(gone, true);
                self.retire_breaker(gone, None);
                self.drain(&mut draining, Draining::of(gone));
                changes.push(("removed", gone.name.clone()));
            }
        }
        // What is served under the name again takes its tasks over; remote tasks only if it is elsewhere too.
        let takes_over = |entry: &RosterEntry, draining: &Draining| {
            entry.hosted.is_some() && (entry.remote.is_some() || draining.remote.is_none())
        };
        draining.retain(|draining| by_name.get(&draining.name).is_none_or(|entry| !takes_over(entry, draining)));
        let roster = Roster::new(entries, draining, &self.own, default_agent(&self.parts), problems);
        *self.roster.write() = Arc::new(roster);
        // Only now: what a probe finds counts for what is served.
        for (entry, first_probe) in &to_probe {
            self.start_probes(entry, *first_probe);
        }
        changes
    }

    /// Adds an agent to those that drain, in place of an earlier one of its name.
    pub(super) fn drain(&self, all: &mut Vec<Draining>, mut draining: Draining) {
        // It may have got tasks since one of its name last drained.
        self.ended_by.lock().remove(&draining.name);
        if let Some(index) = all.iter().position(|other| other.name == draining.name) {
            let before = all.swap_remove(index);
            draining.was_served |= before.was_served;
            draining.hosted = draining.hosted.or(before.hosted);
            draining.remote = draining.remote.or(before.remote);
        }
        all.push(draining);
    }

    /// A registration may have left tasks elsewhere before a file gave its name to an agent of this machine.
    fn serve_shadowed(
        self: &Arc<Self>,
        definitions: &Definitions,
        by_name: &HashMap<AgentName, Arc<RosterEntry>>,
        draining: &mut Vec<Draining>,
    ) {
        for (name, registered) in &definitions.registrations {
            let entry = by_name.get(&AgentName::from(name.as_str()));
            let Some(entry) = entry.filter(|entry| entry.remote.is_none()) else { continue };
            let card = definitions.cards.get(name).cloned();
            match self.remote_state(&entry.name, &registered.agent, true, card, None) {
                Ok(remote) => {
                    let (name, hosted) = (entry.name.clone(), entry.hosted.clone());
                    let remote = Some(remote);
                    self.drain(draining, Draining { name, was_served: false, hosted, remote });
                }
                Err(problem) => {
                    tracing::error!(agent = name, problem, "what a registration has left elsewhere cannot be canceled");
                }
            }
        }
    }

    /// Ends what runs beside the tasks of an agent that is gone or replaced.
    fn retire(&self, entry: &RosterEntry, is_program_gone: bool) {
        if let Some(remote) = &entry.remote {
            remote.removed.cancel();
        }
        if is_program_gone {
            self.programs.remove(entry.name.as_str());
        }
    }

    fn build(
        self: &Arc<Self>,
        name: &AgentName,
        definition: &Entry,
        is_registered: bool,
        known: Option<&Arc<RosterEntry>>,
        definitions: &Definitions,
    ) -> Result<(Option<Served>, Option<Arc<RemoteState>>), String> {
        match definition {
            Entry::Hosted(agent) => {
                let served = self.serve_hosted(agent).map_err(|error| error.to_string())?;
                Ok((Some(served), None))
            }
            Entry::Remote(agent) => {
                let known = known.and_then(|known| known.remote.as_ref());
                let card = match known {
                    Some(_) => None,
                    None => definitions.cards.get(name.as_str()).cloned(),
                };
                let remote = self.remote_state(name, agent, is_registered, card, known)?;
                let served = agent.serving.serve.then(|| (self.serve_remote)(&remote));
                Ok((served, Some(remote)))
            }
        }
    }

    /// What is known of an agent elsewhere. Another definition of the same address changes nothing of it; of another one
    /// only that it was down.
    pub(super) fn remote_state(
        self: &Arc<Self>,
        name: &AgentName,
        agent: &RemoteAgent,
        is_registered: bool,
        card: Option<KnownCard>,
        known: Option<&Arc<RemoteState>>,
    ) -> Result<Arc<RemoteState>, String> {
        let client = match is_registered {
            true => self.clients.permitted(agent, &self.variables.permit()),
            false => self.clients.client(agent),
        };
        let client = client.map_err(|error| error.to_string())?;
        if let Some(known) = known.filter(|known| known.definition.url == agent.url) {
            let observed = known.observed.lock();
            let observed = Observed {
                card: observed.card.clone().or_else(|| card.clone()),
                held: observed.held.clone(),
                counted: observed.counted.clone().or_else(|| card_counted(card.as_ref())),
                reachability: observed.reachability.clone(),
            };
            return Ok(Arc::new(RemoteState {
                definition: agent.clone(),
                client,
                breaker: Arc::clone(&known.breaker),
                observed: Mutex::new(observed),
                removed: CancellationToken::new(),
                breaker_retired: known.breaker_retired.clone(),
            }));
        }
        let settings = &self.parts.config.hub.breaker;
        let settings = BreakerSettings {
            failures: u32::try_from(settings.failures.get()).unwrap_or(u32::MAX),
            open: settings.open.duration(),
        };
        let (registry, agent_name) = (Arc::downgrade(self), name.clone());
        let breaker_retired = CancellationToken::new();
        let retired = breaker_retired.clone();
        let listener = move |state: BreakerState| {
            if let Some(registry) = registry.upgrade().filter(|_| !retired.is_cancelled()) {
                registry.breaker_changed(&agent_name, state);
            }
        };
        let breaker = CircuitBreaker::new(settings, Arc::clone(&self.parts.clock), listener);
        let reachability = known.map(|known| known.observed.lock().reachability.moved()).unwrap_or_default();
        Ok(Arc::new(RemoteState {
            definition: agent.clone(),
            client,
            breaker: Arc::new(breaker),
            observed: Mutex::new(Observed { counted: card_counted(card.as_ref()), card, held: None, reachability }),
            removed: CancellationToken::new(),
            breaker_retired,
        }))
    }
}

/// What counts of the cards of an agent of which this one is known.
fn card_counted(card: Option<&KnownCard>) -> Option<CardSkills> {
    card.map(|known| known.counted.clone().unwrap_or_else(|| declared(&known.card)))
}

impl Draining {
    fn of(entry: &RosterEntry) -> Self {
        let (hosted, remote) = (entry.hosted.clone(), entry.remote.clone());
        Self { name: entry.name.clone(), was_served: hosted.is_some(), hosted, remote }
    }
}

impl Definitions {
    /// The agents in their order; whether a file has one that is registered too, which has no effect then.
    fn wanted(&self) -> Vec<(Entry, EntrySource, bool)> {
        let files = self.files.entries.iter().map(|entry| {
            let is_registered = self.registrations.contains_key(entry.name().as_str());
            (entry.clone(), EntrySource::File, is_registered)
        });
        let in_files: HashSet<&str> = self.files.entries.iter().map(|entry| entry.name().as_str()).collect();
        let registered = self.registrations.iter().filter(|(name, _)| !in_files.contains(name.as_str()));
        let registered = registered.map(|(_, registered)| {
            let source = EntrySource::Registration { version: registered.version, owner: registered.owner.clone() };
            (Entry::Remote(Box::new(registered.agent.clone())), source, false)
        });
        files.chain(registered).collect()
    }
}
