//! What agents have changed outside of their tasks, as they observed it: a line of the journal each, and an alert if it
//! keeps contradicting what the skill declares.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use switchboard_a2a::Timestamp;
use switchboard_a2a::card::AgentExtension;
use switchboard_a2a::extension::Payload;
use switchboard_a2a::extension::effect_domain::{self, Effect};
use switchboard_a2a::extension::worldstate_delta::{Delta, WorldstateDelta};
use switchboard_engine::Seq;
use switchboard_engine::event::Event;
use switchboard_engine::store::feed::{JOURNAL_LINE_BYTES, JournalLine};
use switchboard_engine::store::{EventRow, TaskIdentity};
use switchboard_host::redact;

use crate::alerts::{Condition, shortened_name};

/// Skills whose observations are counted: they have to fit the consumer's row.
const SKILLS: usize = 512;

/// What was observed of a skill's declared effects.
#[derive(Clone, Debug)]
pub(crate) struct Observation {
    agent: String,
    skill: String,
    agrees: bool,
}

/// By `agent/skill`: how often in a row observations agreed, below zero if they contradicted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct DriftCounts(BTreeMap<String, i32>);

impl DriftCounts {
    /// Counts an observation; what follows for the alert, if there were enough of them in a row.
    pub(crate) fn count(&mut self, observed: &Observation, enough: usize) -> Option<Condition> {
        let subject = format!("{}/{}", observed.agent, observed.skill);
        let count = self.0.entry(subject.clone()).or_default();
        *count = match observed.agrees {
            true => (*count).max(0).saturating_add(1),
            false => (*count).min(0).saturating_sub(1),
        };
        let count = *count;
        if self.0.len() > SKILLS {
            // Those that agree are not missed.
            let least = self.0.iter().max_by_key(|(_, count)| **count).map(|(subject, _)| subject.clone());
            least.and_then(|subject| self.0.remove(&subject));
        }
        (count.unsigned_abs() as usize >= enough).then(|| Condition {
            alert: "effect_drift",
            agent: Some(observed.agent.clone()),
            detail: json!({ "skill": observed.skill, "inARow": count.abs() }),
            subject,
            holds: count < 0,
        })
    }

    /// Forgets an agent that is gone.
    pub(crate) fn forget(&mut self, agent: &str) {
        self.0.retain(|subject, _| subject.split_once('/').is_none_or(|(of, _)| of != agent));
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Whether an extension of a card says that its agent reports changes.
pub(crate) fn declares(extension: &AgentExtension) -> bool {
    extension.uri == effect_domain::URI || extension.uri == WorldstateDelta::URI
}

/// The changes that the events of a row report, after a number. A row is read once, so each change counts once.
pub(crate) fn reported(row: &EventRow, after: Seq) -> Vec<Delta> {
    let mut found = Vec::new();
    for (_, line) in row.lines().filter(|(seq, line)| *seq > after && mentions_deltas(line)) {
        match Event::decode(line) {
            Ok(Event::ArtifactUpdate(update)) => found.extend(WorldstateDelta::in_artifact(&update.artifact)),
            Ok(Event::StatusUpdate(update)) => {
                found.extend(update.status.message.iter().flat_map(WorldstateDelta::in_message));
                found.extend(WorldstateDelta::in_metadata(update.metadata.as_ref()));
            }
            _ => {}
        }
    }
    found.into_iter().flat_map(|reported| reported.deltas).collect()
}

fn mentions_deltas(line: &[u8]) -> bool {
    let mark = b"worldstate-delta";
    line.windows(mark.len()).any(|window| window == mark)
}

/// Whether changes agree with what a skill declares; nothing if they are about other values.
pub(crate) fn observe(task: &TaskIdentity, skill: &str, effects: &[Effect], deltas: &[Delta]) -> Option<Observation> {
    let mut agrees = None;
    for delta in deltas {
        let Some(increment) = delta.increment().filter(|increment| *increment != 0.0) else { continue };
        let declared = effects.iter().filter(|effect| effect.domain == delta.domain && effect.path == delta.path);
        for effect in declared {
            let is_same = (effect.delta > 0.0) == (increment > 0.0);
            agrees = Some(agrees.unwrap_or(true) && is_same);
        }
    }
    Some(Observation { agent: task.agent.to_string(), skill: shortened_name(skill), agrees: agrees? })
}

/// The line `world.state.delta`.
pub(crate) fn line(task: &TaskIdentity, skill: Option<&str>, deltas: &[Delta], at: Timestamp) -> Option<JournalLine> {
    let too_long = |bytes: usize| tracing::warn!(task = %task.id, bytes, "its changes are too long for the journal");
    // A value that is longer than a line is not even read.
    let bytes: usize = deltas.iter().map(|delta| delta.value.as_str().len()).sum();
    if bytes > JOURNAL_LINE_BYTES {
        too_long(bytes);
        return None;
    }
    let deltas: Vec<Value> = deltas.iter().map(shown).collect();
    let mut payload =
        json!({ "agent": task.agent.as_str(), "source": task.agent.as_str(), "skill": skill, "deltas": deltas });
    redact::json(&mut payload);
    let payload = Bytes::from(payload.to_string());
    if payload.len() > JOURNAL_LINE_BYTES {
        too_long(payload.len());
        return None;
    }
    let (owner, id) = (Some(task.owner.clone()), Some(task.id.clone()));
    Some(JournalLine { at, owner, task: id, topic: "world.state.delta".to_owned(), payload })
}

/// A change as its line has it. The value is JSON as the agent wrote it, and not all of that is a [`Value`]: a number may
/// be too large for one, a text may have a lone surrogate. What cannot be read cannot be redacted, so it is left out.
fn shown(delta: &Delta) -> Value {
    let mut shown = json!({ "domain": delta.domain, "path": delta.path, "op": delta.op });
    if let Ok(value) = delta.value.read::<Value>() {
        shown["value"] = value;
    }
    shown
}

#[cfg(test)]
mod tests {
    use switchboard_a2a::Json;
    use switchboard_a2a::extension::worldstate_delta::DeltaOp;

    use super::*;

    #[test]
    fn a_value_that_cannot_be_read_is_left_out_of_its_change() {
        let digits = "9".repeat(500);
        for value in ["1e400", r#""\ud800""#, &digits, r#"{"$serde_json::private::RawValue":"{"}"#, "[[1e400]]"] {
            let value = Json::parse(value).expect("it is JSON");
            let delta = Delta { domain: "board".into(), path: "open".into(), op: DeltaOp::Set, value };
            assert_eq!(shown(&delta), json!({ "domain": "board", "path": "open", "op": "set" }));
        }
        let value = Json::parse("[1]").expect("it is JSON");
        let delta = Delta { domain: "board".into(), path: "open".into(), op: DeltaOp::Push, value };
        assert_eq!(shown(&delta), json!({ "domain": "board", "path": "open", "op": "push", "value": [1] }));
    }
}
