//! What has ended of each experiment, and which agent that makes the winner. It is kept beside the projector's cursor.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use switchboard_a2a::Timestamp;
use switchboard_engine::event::Received;
use switchboard_engine::store::feed::JournalLine;

use super::definition::{Defined, Definition};
use crate::feed::segment;
use crate::health::Outcome;

/// An agent wins by success if its rate is better by one in so many, which is five percentage points.
const MARGIN: u128 = 20;

/// By skill.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ExperimentCounts(BTreeMap<String, Count>);

/// What has ended of one experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Count {
    /// Of the definition.
    version: u64,
    control: Arm,
    challenger: Arm,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resolved: Option<Resolution>,
}

/// The tasks of one agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Arm {
    outcomes: u64,
    successes: u64,
    /// Those that say how many tokens they have taken, …
    counted: u64,
    /// … and these tokens together.
    tokens: u64,
}

/// How an experiment has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Resolution {
    winner: String,
    by: Merit,
    at: Timestamp,
}

/// What the winner is better at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Merit {
    Success,
    Tokens,
    /// Nothing: the agent that has served the skill so far stays.
    Tie,
}

/// A task of an experiment that has ended.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    skill: String,
    version: u64,
    is_challenger: bool,
    success: bool,
    tokens: Option<u64>,
}

/// What routing has stored with a message.
#[derive(Deserialize)]
struct Routing {
    by: String,
    #[serde(default)]
    skill: String,
    #[serde(default)]
    candidates: Vec<String>,
}

impl Sample {
    /// Only messages that the experiment itself has given to an agent are comparable: a caller that names its agent, or stays
    /// with it, does not pick at random.
    pub(crate) fn of(defined: &Defined, first: &Received, outcome: &Outcome) -> Option<Self> {
        let Definition { skill, control, challenger, .. } = &defined.definition;
        let routing: Routing = first.routing.as_ref()?.read().ok()?;
        let is_picked = match routing.by.as_str() {
            "experiment" => true,
            "keyword" => routing.candidates == [control.as_str(), challenger.as_str()],
            _ => false,
        };
        let is_decided = outcome.success || outcome.has_failed();
        let is_counted = is_picked
            && is_decided
            && routing.skill == *skill
            && first.at >= defined.at
            && defined.definition.names(&outcome.agent);
        is_counted.then(|| Self {
            skill: skill.clone(),
            version: defined.version,
            is_challenger: outcome.agent.as_str() == challenger,
            success: outcome.success,
            tokens: outcome.input_tokens.zip(outcome.output_tokens).map(|(input, output)| input.saturating_add(output)),
        })
    }
}

impl ExperimentCounts {
    /// Counts tasks, forgets experiments that there are no longer, and says which have been decided now.
    pub(super) fn add(
        &mut self,
        defined: &BTreeMap<String, Defined>,
        samples: &[Sample],
        now: Timestamp,
    ) -> Vec<JournalLine> {
        self.0.retain(|skill, count| defined.get(skill).is_some_and(|defined| defined.version == count.version));
        let mut lines = Vec::new();
        for sample in samples {
            let Some(defined) = defined.get(&sample.skill).filter(|defined| defined.version == sample.version) else {
                continue;
            };
            let count = self.0.entry(sample.skill.clone()).or_default();
            count.version = defined.version;
            if count.resolved.is_some() {
                continue;
            }
            let arm = if sample.is_challenger { &mut count.challenger } else { &mut count.control };
            arm.add(sample);
            if let Some((winner, by)) = count.verdict(&defined.definition) {
                count.resolved = Some(Resolution { winner: winner.to_owned(), by, at: now });
                lines.push(count.line(&defined.definition, now));
            }
        }
        lines
    }

    /// The agent that has won.
    pub(super) fn winner(&self, defined: &Defined) -> Option<&str> {
        self.of(defined)?.resolved.as_ref().map(|resolved| resolved.winner.as_str())
    }

    /// The state of an experiment, as it is shown.
    pub(super) fn shown(&self, defined: &Defined) -> Value {
        let count = self.of(defined).cloned().unwrap_or_default();
        let counts = json!({ "control": count.control.shown(), "challenger": count.challenger.shown() });
        match &count.resolved {
            None => json!({ "state": "running", "counts": counts }),
            Some(Resolution { winner, by, at }) => {
                json!({ "state": "resolved", "counts": counts, "winner": winner, "by": by, "resolvedAt": at })
            }
        }
    }

    fn of(&self, defined: &Defined) -> Option<&Count> {
        self.0.get(&defined.definition.skill).filter(|count| count.version == defined.version)
    }
}

impl Arm {
    fn add(&mut self, sample: &Sample) {
        self.outcomes += 1;
        self.successes += u64::from(sample.success);
        if let Some(tokens) = sample.tokens {
            self.counted += 1;
            self.tokens = self.tokens.saturating_add(tokens);
        }
    }

    fn shown(&self) -> Value {
        json!({ "outcomes": self.outcomes, "successes": self.successes, "tokens": self.tokens })
    }
}

impl Count {
    /// Who has won, once enough tasks of both have ended.
    fn verdict<'a>(&self, definition: &'a Definition) -> Option<(&'a str, Merit)> {
        let (control, challenger) = (&self.control, &self.challenger);
        if control.outcomes.min(challenger.outcomes) < definition.n {
            return None;
        }
        // Rates with the same denominator: a float could miss the margin by its last digit.
        let cross = |one: u64, other: u64| u128::from(one) * u128::from(other);
        let (old, new) = (cross(control.successes, challenger.outcomes), cross(challenger.successes, control.outcomes));
        if old.abs_diff(new) * MARGIN >= cross(control.outcomes, challenger.outcomes) {
            let winner = if new > old { &definition.challenger } else { &definition.control };
            return Some((winner, Merit::Success));
        }
        // Where one of them says nothing of tokens there is nothing to compare.
        let (old, new) = (cross(control.tokens, challenger.counted), cross(challenger.tokens, control.counted));
        if control.counted == 0 || challenger.counted == 0 || old == new {
            return Some((&definition.control, Merit::Tie));
        }
        let winner = if new < old { &definition.challenger } else { &definition.control };
        Some((winner, Merit::Tokens))
    }

    fn line(&self, definition: &Definition, now: Timestamp) -> JournalLine {
        let resolved = self.resolved.as_ref();
        let payload = json!({
            "skill": definition.skill,
            "control": definition.control,
            "challenger": definition.challenger,
            "counts": { "control": self.control.shown(), "challenger": self.challenger.shown() },
            "winner": resolved.map(|resolved| &resolved.winner),
            "by": resolved.map(|resolved| resolved.by),
        });
        JournalLine {
            at: now,
            owner: None,
            task: None,
            topic: format!("hub.experiment.resolved.{}", segment(&definition.skill)),
            payload: Bytes::from(payload.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Arm, Count, Definition, Merit};

    fn verdict(control: [u64; 3], challenger: [u64; 3]) -> Option<(&'static str, Merit)> {
        let arm = |[outcomes, successes, tokens]: [u64; 3]| {
            let counted = if tokens == 0 { 0 } else { outcomes };
            Arm { outcomes, successes, counted, tokens }
        };
        let count = Count { control: arm(control), challenger: arm(challenger), ..Count::default() };
        let definition = Definition { skill: "s".into(), control: "old".into(), challenger: "new".into(), n: 20 };
        count.verdict(&definition).map(|(winner, by)| (if winner == "new" { "new" } else { "old" }, by))
    }

    #[test]
    fn five_points_of_success_decide_and_else_tokens_do() {
        assert_eq!(verdict([19, 19, 0], [500, 0, 0]), None, "each needs its twenty");
        assert_eq!(verdict([20, 18, 100], [20, 19, 999]), Some(("new", Merit::Success)), "five points exactly");
        assert_eq!(verdict([20, 20, 999], [20, 19, 100]), Some(("old", Merit::Success)));
        assert_eq!(verdict([21, 19, 210], [20, 19, 199]), Some(("new", Merit::Tokens)), "4.5 points are too few");
        assert_eq!(verdict([40, 20, 400], [20, 10, 201]), Some(("old", Merit::Tokens)), "tokens of a task, not of all");
        assert_eq!(verdict([20, 5, 0], [20, 5, 0]), Some(("old", Merit::Tie)), "nothing is known of tokens");
        assert_eq!(verdict([20, 5, 0], [20, 5, 7]), Some(("old", Merit::Tie)), "nor of one agent's");
        assert_eq!(verdict([20, 0, 20], [20, 0, 20]), Some(("old", Merit::Tie)));
    }
}
