//! What the projector keeps beside its cursor: which alerts fire, and the newest failures of each agent.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};
use switchboard_a2a::{TaskId, Timestamp};
use switchboard_engine::state_label;
use switchboard_engine::store::TaskIdentity;

use super::drift::DriftCounts;
use crate::alerts::AlertStates;
use crate::health::Outcome;

/// Failures kept of each agent, and agents of which failures are kept: together they fit into the consumer's row.
const FAILURES: usize = 10;
const AGENTS: usize = 64;

/// What is kept beside the cursor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ProjectorState {
    pub(crate) alerts: AlertStates,
    /// Newest first.
    pub(crate) failures: BTreeMap<String, VecDeque<Failure>>,
    /// Of each skill with declared effects.
    pub(crate) drift: DriftCounts,
}

/// A task that did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Failure {
    pub(crate) task_id: TaskId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) skill: Option<String>,
    pub(crate) state: String,
    pub(crate) at: Timestamp,
}

impl Failure {
    pub(crate) fn of(task: &TaskIdentity, outcome: &Outcome) -> Self {
        let skill = outcome.skill.as_ref().map(|skill| skill.chars().take(80).collect());
        Self { task_id: task.id.clone(), skill, state: state_label(outcome.state).to_owned(), at: outcome.at }
    }
}

impl ProjectorState {
    /// Reads what was written; what cannot be read begins anew.
    pub(crate) fn read(written: &[u8]) -> Self {
        if written.is_empty() {
            return Self::default();
        }
        serde_json::from_slice(written).unwrap_or_else(|error| {
            tracing::error!(%error, "the state of the projector cannot be read, alerts begin anew");
            Self::default()
        })
    }

    pub(crate) fn written(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    pub(crate) fn remember(&mut self, agent: &str, failure: Failure) {
        let failures = self.failures.entry(agent.to_owned()).or_default();
        failures.push_front(failure);
        failures.truncate(FAILURES);
        if self.failures.len() > AGENTS {
            let newest = |failures: &VecDeque<Failure>| failures.front().map(|failure| failure.at);
            let oldest = self.failures.iter().min_by_key(|(_, failures)| newest(failures));
            if let Some(agent) = oldest.map(|(agent, _)| agent.clone()) {
                self.failures.remove(&agent);
            }
        }
    }
}
