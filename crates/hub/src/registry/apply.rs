//! Makes a new roster of what files and registrations say. An agent whose definition is the same stays as it is; one that
//! has changed keeps its name and its counters, and its next turn runs the new one; one that is gone drains.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use switchboard_engine::{AgentName, CallerId, Hosted, Served};
use switchboard_fleet::config::agent_files::AgentListing;
use switchboard_fleet::config::agents::Entry;
use switchboard_fleet::config::remote_agent::RemoteAgent;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::breaker::{BreakerSettings, BreakerState, CircuitBreaker};
use super::remote_state::{KnownCard, Observed, RemoteState};
use super::roster::{EntrySource, Roster, RosterEntry};
use super::{Registry, default_agent};

/// What files and registrations say.
#[derive(Default)]
pub(super) struct Definitions {
    pub(super) files: AgentListing,
    pub(super) registrations: BTreeMap<String, Registered>,
    /// The versions of registrations that were removed with live tasks.
    pub(super) tombstones: BTreeMap<String, u64>,
    /// The last good card of each remote agent.
    pub(super) cards: BTreeMap<String, KnownCard>,
}

/// A registered agent.
#[derive(Clone, Debug)]
pub(super) struct Registered {
    pub(super) version: u64,
    pub(super) owner: CallerId,
    pub(super) agent: RemoteAgent,
}

/// A change of the roster: its word in topics, and the agent.
pub(super) type RosterChange = (&'static str, AgentName);

impl Registry {
    /// Applies them and says what has changed.
    pub(super) fn apply(self: &Arc<Self>, definitions: &Definitions) -> Vec<RosterChange> {
        let before = self.roster();
        let mut problems: Vec<String> = definitions.files.problems.iter().map(ToString::to_string).collect();
        let (mut entries, mut changes) = (Vec::new(), Vec::new());
        let mut draining = before.draining.clone();
        for (definition, source, shadows_registration) in definitions.wanted() {
            let name = AgentName::from(definition.name().as_str());
            let known = before.entry(name.as_str());
            if let Some(known) = known.filter(|known| known.definition.is_same(&definition)) {
                let entry = RosterEntry { definition, source, shadows_registration, ..(**known).clone() };
                entries.push(Arc::new(entry));
                continue;
            }
            let (served, remote) = match self.build(&name, &definition, known, definitions) {
                Ok(built) => built,
                Err(problem) => {
                    problems.push(format!("{}: agent {name}: {problem}", definition.origin()));
                    entries.extend(known.cloned());
                    continue;
                }
            };
            let hosted = served.map(|served| {
                let drained = || draining.iter().find(|hosted| hosted.name == name).cloned();
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
                if hosted.is_none() {
                    draining.extend(known.hosted.clone());
                }
            }
            changes.push((if known.is_some() { "changed" } else { "added" }, name.clone()));
            let entry = RosterEntry { name, definition, source, shadows_registration, hosted, remote };
            let entry = Arc::new(entry);
            self.start_probes(&entry);
            entries.push(entry);
        }
        for gone in &before.entries {
            if entries.iter().all(|entry| entry.name != gone.name) {
                self.retire(gone, true);
                draining.extend(gone.hosted.clone());
                changes.push(("removed", gone.name.clone()));
            }
        }
        draining.retain(|hosted| entries.iter().all(|entry| entry.hosted.is_none() || entry.name != hosted.name));
        let roster = Roster::new(entries, draining, &self.own, default_agent(&self.parts), problems);
        *self.roster.write() = Arc::new(roster);
        changes
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
        known: Option<&Arc<RosterEntry>>,
        definitions: &Definitions,
    ) -> Result<(Option<Served>, Option<Arc<RemoteState>>), String> {
        match definition {
            Entry::Hosted(agent) => {
                let served = switchboard_fleet::served(agent, &self.programs).map_err(|error| error.to_string())?;
                Ok((Some(served), None))
            }
            Entry::Remote(agent) => {
                let known = known.and_then(|known| known.remote.as_ref()?.observed.lock().card.clone());
                let card = known.or_else(|| definitions.cards.get(name.as_str()).cloned());
                let remote = self.remote_state(name, agent, card)?;
                let served = agent.serving.serve.then(|| (self.serve_remote)(&remote));
                Ok((served, Some(remote)))
            }
        }
    }

    pub(super) fn remote_state(
        self: &Arc<Self>,
        name: &AgentName,
        agent: &RemoteAgent,
        card: Option<KnownCard>,
    ) -> Result<Arc<RemoteState>, String> {
        let client = self.clients.client(agent).map_err(|error| error.to_string())?;
        let settings = &self.parts.config.hub.breaker;
        let settings = BreakerSettings {
            failures: u32::try_from(settings.failures.get()).unwrap_or(u32::MAX),
            open: settings.open.duration(),
        };
        let (registry, agent_name) = (Arc::downgrade(self), name.clone());
        let listener = move |state: BreakerState| {
            if let Some(registry) = registry.upgrade() {
                registry.breaker_changed(&agent_name, state);
            }
        };
        let breaker = CircuitBreaker::new(settings, Arc::clone(&self.parts.clock), listener);
        Ok(Arc::new(RemoteState {
            definition: agent.clone(),
            client,
            breaker: Arc::new(breaker),
            observed: Mutex::new(Observed { card, ..Observed::default() }),
            probe_now: Notify::new(),
            removed: CancellationToken::new(),
        }))
    }
}

impl Definitions {
    /// The agents in their order; whether a file has one that is registered too, which has no effect then.
    fn wanted(&self) -> Vec<(Entry, EntrySource, bool)> {
        let files = self.files.entries.iter().map(|entry| {
            let is_registered = self.registrations.contains_key(entry.name().as_str());
            (entry.clone(), EntrySource::File, is_registered)
        });
        let is_free = |name: &str| self.files.entries.iter().all(|entry| entry.name().as_str() != name);
        let registered = self.registrations.iter().filter(|(name, _)| is_free(name)).map(|(_, registered)| {
            let source = EntrySource::Registration { version: registered.version, owner: registered.owner.clone() };
            (Entry::Remote(Box::new(registered.agent.clone())), source, false)
        });
        files.chain(registered).collect()
    }
}
