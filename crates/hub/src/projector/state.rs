//! What the projector keeps beside its cursor: which alerts fire, and the newest failures of each agent.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};
use switchboard_a2a::{TaskId, Timestamp};
use switchboard_engine::state_label;
use switchboard_engine::store::TaskIdentity;

use super::drift::DriftCounts;
use crate::alerts::{AlertState, AlertStates};
use crate::experiments::ExperimentCounts;
use crate::health::Outcome;

/// Failures kept of each agent, and agents of which failures are kept.
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
    pub(crate) experiments: ExperimentCounts,
    /// The last question whose caller's time was told to be over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) inbox_until: Option<(Timestamp, i64)>,
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

    /// The state in bytes, of which the consumer's row takes so many. Callers choose a part of what is in it, so what is
    /// least missed goes until it fits.
    pub(crate) fn fitted(&mut self, most: usize) -> Vec<u8> {
        loop {
            let written = serde_json::to_vec(self).unwrap_or_default();
            let excess = written.len().saturating_sub(most);
            if excess == 0 || !self.drop_least(excess) {
                return written;
            }
        }
    }

    /// Drops at least so many bytes of the kind that is least missed; whether there was anything to drop. What fires goes
    /// last, and storms of drops before all else that does.
    fn drop_least(&mut self, excess: usize) -> bool {
        let rank = |state: &AlertState| match (state.firing || state.holds, state.alert == "drop_storm") {
            (false, _) => 0,
            (true, true) => 1,
            (true, false) => 2,
        };
        let Some(least) = self.alerts.values().map(rank).min().filter(|rank| *rank < 2) else {
            return self.drop_rest();
        };
        let last_of = |state: &AlertState| state.drops.last().map_or(state.fired_at, |(at, _)| *at);
        let found = self.alerts.iter().filter(|(_, state)| rank(state) == least);
        let mut found: Vec<(Timestamp, String, usize)> =
            found.map(|(key, state)| (last_of(state), key.clone(), length(state) + key.len())).collect();
        found.sort();
        let mut dropped = 0;
        for (_, key, bytes) in found {
            if dropped >= excess {
                break;
            }
            dropped += bytes;
            self.alerts.remove(&key);
        }
        tracing::warn!(bytes = dropped, "alerts that are least missed were forgotten: there are more than can be kept");
        true
    }

    fn drop_rest(&mut self) -> bool {
        if !self.failures.is_empty() {
            self.failures.clear();
        } else if self.drift != DriftCounts::default() {
            self.drift.clear();
        } else if self.alerts.pop_first().is_none() {
            let is_left = self.experiments != ExperimentCounts::default();
            self.experiments = ExperimentCounts::default();
            return is_left;
        }
        true
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

fn length(state: &AlertState) -> usize {
    serde_json::to_vec(state).map_or(0, |written| written.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alert(alert: &str, subject: &str, firing: bool, at: i64) -> AlertState {
        AlertState {
            alert: alert.to_owned(),
            agent: None,
            subject: subject.to_owned(),
            firing,
            holds: false,
            fired_at: Timestamp(at),
            resolved_at: None,
            calm_since: None,
            drops: vec![(Timestamp(at), 1)],
            detail: serde_json::json!({ "key": subject }),
        }
    }

    #[test]
    fn what_is_least_missed_goes_until_the_state_fits() {
        let mut state = ProjectorState::default();
        let mut add = |name: &str, subject: String, firing: bool, at: i64| {
            state.alerts.insert(format!("{name}:{subject}"), alert(name, &subject, firing, at));
        };
        for number in 0..100 {
            add("drop_storm", format!("quiet-{number:03}-{}", "é".repeat(80)), false, number);
            add("drop_storm", format!("storm-{number:03}-{}", "é".repeat(80)), true, number);
        }
        add("agent_down", "far".to_owned(), true, 1);
        let whole = state.fitted(usize::MAX).len();
        assert_eq!(state.alerts.len(), 201);
        for most in [whole - 1, whole / 2, whole / 4, 4_000] {
            let written = state.fitted(most);
            assert!(written.len() <= most, "{} of {most}", written.len());
            let count = |prefix: &str, firing: bool| {
                let is = |state: &&AlertState| state.firing == firing && state.subject.starts_with(prefix);
                state.alerts.values().filter(is).count()
            };
            assert!(count("quiet", false) == 0 || count("storm", true) == 100, "quiet ones go first: {most}");
            assert!(state.alerts.contains_key("agent_down:far"), "it fires, and callers did not name it");
            assert_eq!(ProjectorState::read(&written), state);
        }
        let newest = format!("drop_storm:storm-099-{}", "é".repeat(80));
        assert!(state.alerts.keys().any(|key| *key == newest), "{:?}", state.alerts.keys());
    }
}
