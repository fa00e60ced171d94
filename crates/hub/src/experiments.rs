//! Experiments: two agents share the conversations that ask for a skill, until enough of their tasks have ended to say which
//! of them does better. The definition is a registration; what has ended is counted by the projector with its cursor, so
//! that each task counts once, whatever process reads it.

mod counts;
mod definition;

use std::collections::BTreeMap;

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::{Value, json};
use switchboard_a2a::Timestamp;
use switchboard_engine::event::Event;
use switchboard_engine::ids::TaskKey;
use switchboard_engine::store::feed::JournalLine;
use switchboard_engine::store::hub::PutRegistration;
use switchboard_engine::store::{EventRow, ServerStore, StoreError};
use switchboard_engine::{AgentName, Seq};
use switchboard_host::serve::ServerParts;

pub(crate) use self::counts::{ExperimentCounts, Sample};
pub(crate) use self::definition::{Defined, Definition};
use crate::audit::{Act, Actor};
use crate::health::Outcome;
use crate::registry::all_registrations;
use crate::routing::{Experiment, RoutingSignals};

/// The kind of a registration that is an experiment.
const KIND: &str = "experiment";
/// As many there are at most: their counts share the projector's row with its alerts.
pub(crate) const MAX: usize = 64;

/// The experiments of a server.
#[derive(Debug, Default)]
pub(crate) struct Experiments {
    known: Mutex<Known>,
    /// Held while one is begun or ended, from the check to what routing is told.
    changing: tokio::sync::Mutex<()>,
}

/// Both under one lock, so that routing is never told of counts without their definition.
#[derive(Debug, Default)]
struct Known {
    /// By skill.
    defined: BTreeMap<String, Defined>,
    /// As the projector has committed them.
    counts: ExperimentCounts,
}

/// Why an experiment is not begun or ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExperimentError {
    #[error("there is an experiment with skill {0} already: delete it first")]
    Exists(String),
    #[error("there are {MAX} experiments already: delete one first")]
    TooMany,
    #[error("there is no experiment with skill {0}")]
    NotFound(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Experiments {
    /// Reads what earlier processes have stored.
    pub(crate) async fn load(store: &dyn ServerStore) -> Result<Self, StoreError> {
        let mut known = Known::default();
        for row in all_registrations(store, KIND).await? {
            match Defined::read(&row) {
                Some(defined) => known.defined.insert(row.name, defined),
                None => {
                    tracing::error!(skill = row.name, "its experiment cannot be read and is left out");
                    continue;
                }
            };
        }
        Ok(Self { known: Mutex::new(known), ..Self::default() })
    }

    /// Begins an experiment.
    pub(crate) async fn add(
        &self,
        parts: &ServerParts,
        signals: &RoutingSignals,
        actor: &Actor,
        definition: Definition,
    ) -> Result<Defined, ExperimentError> {
        let skill = definition.skill.clone();
        let _changing = self.changing.lock().await;
        {
            let known = self.known.lock();
            if known.defined.contains_key(&skill) {
                return Err(ExperimentError::Exists(skill));
            }
            if known.defined.len() >= MAX {
                return Err(ExperimentError::TooMany);
            }
        }
        let now = parts.clock.now();
        let after = json!(definition);
        let line = actor.did(now, act("experiments.add", &skill, Value::Null, after.clone()));
        let put = PutRegistration {
            kind: KIND.to_owned(),
            name: skill.clone(),
            expected_version: 0,
            owner: actor.caller.id.clone(),
            at: now,
            body: Some(Bytes::from(after.to_string())),
            job: None,
            journal: vec![line],
        };
        let version = match parts.store.put_registration(put).await {
            Err(StoreError::VersionConflict { .. }) => return Err(ExperimentError::Exists(skill)),
            stored => stored?,
        };
        let defined = Defined { definition, version, owner: actor.caller.id.clone(), at: now };
        let mut known = self.known.lock();
        known.defined.insert(skill, defined.clone());
        known.tell(signals);
        Ok(defined)
    }

    /// Ends an experiment, and forgets what it has found.
    pub(crate) async fn remove(
        &self,
        parts: &ServerParts,
        signals: &RoutingSignals,
        actor: &Actor,
        skill: &str,
    ) -> Result<(), ExperimentError> {
        let missing = || ExperimentError::NotFound(skill.to_owned());
        let _changing = self.changing.lock().await;
        let defined = self.find(skill).ok_or_else(missing)?;
        let now = parts.clock.now();
        let line = actor.did(now, act("experiments.remove", skill, json!(defined.definition), Value::Null));
        let put = PutRegistration {
            kind: KIND.to_owned(),
            name: skill.to_owned(),
            expected_version: defined.version,
            owner: actor.caller.id.clone(),
            at: now,
            body: None,
            job: None,
            journal: vec![line],
        };
        match parts.store.put_registration(put).await {
            Err(StoreError::VersionConflict { .. }) => return Err(missing()),
            stored => stored?,
        };
        let mut known = self.known.lock();
        known.defined.remove(skill);
        known.tell(signals);
        Ok(())
    }

    fn find(&self, skill: &str) -> Option<Defined> {
        self.known.lock().defined.get(skill).cloned()
    }

    /// All of them by skill, and what was counted of each.
    pub(crate) fn all(&self) -> Vec<(Defined, Value)> {
        let known = self.known.lock();
        known.defined.values().map(|defined| (defined.clone(), known.counts.shown(defined))).collect()
    }

    /// What the end of a task says, if an experiment has picked its agent.
    pub(crate) async fn sample(
        &self,
        store: &dyn ServerStore,
        key: TaskKey,
        row: &EventRow,
        outcome: &Outcome,
    ) -> Result<Option<Sample>, StoreError> {
        if !self.known.lock().defined.values().any(|defined| defined.definition.names(&outcome.agent)) {
            return Ok(None);
        }
        let first = match row.line(Seq(1)).map(Event::decode) {
            Some(first) => Some(first),
            // A log begins with the task's first message.
            None => store.read(key, Seq(0), 1).await?.first().and_then(|row| row.line(Seq(1))).map(Event::decode),
        };
        let Some(Ok(Event::Received(first))) = first else { return Ok(None) };
        let known = self.known.lock();
        Ok(known.defined.values().find_map(|defined| Sample::of(defined, &first, outcome)))
    }

    /// Counts the tasks of a page; the lines say which experiments that has decided.
    pub(crate) fn count(&self, counts: &mut ExperimentCounts, samples: &[Sample], now: Timestamp) -> Vec<JournalLine> {
        counts.add(&self.known.lock().defined, samples, now)
    }

    /// Takes over what the projector has committed.
    pub(crate) fn committed(&self, counts: &ExperimentCounts, signals: &RoutingSignals) {
        let mut known = self.known.lock();
        known.counts.clone_from(counts);
        known.tell(signals);
    }
}

impl Known {
    /// Routing sends to both agents, or to the winner alone.
    fn tell(&self, signals: &RoutingSignals) {
        let experiment = |defined: &Defined| {
            let Definition { skill, control, challenger, .. } = &defined.definition;
            Experiment {
                skill: skill.clone(),
                control: AgentName::from(control.as_str()),
                challenger: AgentName::from(challenger.as_str()),
                winner: self.counts.winner(defined).map(AgentName::from),
            }
        };
        signals.set_experiments(self.defined.values().map(experiment).collect());
    }
}

/// A change of an experiment, which concerns two agents: only keys for all agents see it.
fn act<'a>(name: &'a str, skill: &'a str, before: Value, after: Value) -> Act<'a> {
    Act { name, subject: skill, agent: None, task: None, before, after }
}
