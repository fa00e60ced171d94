//! The planner: which skills are expected to change a value in the wanted direction, the most promising first.
//!
//! What a skill declares counts until there are enough outcomes of it; then what was observed does.

use serde::Serialize;
use switchboard_a2a::extension::effect_domain::Effect;
use switchboard_engine::store::hub::HealthBy;
use switchboard_engine::{AgentName, Caller, Directory};

use crate::feed::is_own;
use crate::health::{Sum, Sums, Window};
use crate::routing::{AgentSignals, Availability};

/// Outcomes of a day from which on the observed trust counts.
const ENOUGH_SAMPLES: u64 = 5;
const MINUTE_MS: f64 = 60_000.0;

/// Which way a value should go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    Up,
    Down,
}

impl Want {
    fn fits(self, delta: f64) -> bool {
        match self {
            Self::Up => delta > 0.0,
            Self::Down => delta < 0.0,
        }
    }
}

/// A value of the world, and which way it should go.
#[derive(Clone, Debug)]
pub(crate) struct Goal {
    pub(crate) domain: String,
    pub(crate) path: String,
    pub(crate) want: Want,
}

/// A skill that is expected to help.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Candidate {
    pub(crate) agent: String,
    pub(crate) skill: String,
    /// The declared change times the trust in it.
    pub(crate) score: f64,
    pub(crate) delta: f64,
    pub(crate) trust: f64,
    /// Outcomes of a day.
    pub(crate) samples: u64,
}

/// The skills of agents that a caller may call and that fit a goal, best first.
pub(crate) fn candidates(
    directory: &dyn Directory,
    caller: &Caller,
    goal: &Goal,
    sums: &Sums,
    now: switchboard_a2a::Timestamp,
) -> Vec<Candidate> {
    let observed = sums.window(now, Window::Day, HealthBy::Skill);
    let mut found = Vec::new();
    for hosted in directory.agents() {
        if is_own(&hosted.name) || !caller.scopes.agents.allows(&hosted.name) {
            continue;
        }
        for skill in &hosted.served().manifest.skills {
            let fitting = skill.effects.iter().filter(|effect| {
                effect.domain == goal.domain && effect.path == goal.path && goal.want.fits(effect.delta)
            });
            let Some(effect) = fitting.max_by(|one, other| expected(one).total_cmp(&expected(other))) else { continue };
            let sum = observed.get(&(hosted.name.to_string(), skill.id.clone()));
            let trust = trust(effect.confidence, sum);
            found.push(Candidate {
                agent: hosted.name.to_string(),
                skill: skill.id.clone(),
                score: effect.delta.abs() * trust,
                delta: effect.delta,
                trust,
                samples: sum.map_or(0, Sum::decided),
            });
        }
    }
    let names = |candidate: &Candidate| (candidate.agent.clone(), candidate.skill.clone());
    found.sort_by(|one, other| other.score.total_cmp(&one.score).then_with(|| names(one).cmp(&names(other))));
    found
}

fn expected(effect: &Effect) -> f64 {
    effect.delta.abs() * effect.confidence
}

/// The best of them that can be reached; the best one if none can.
pub(crate) fn to_call<'a>(candidates: &'a [Candidate], signals: &dyn AgentSignals) -> Option<&'a Candidate> {
    let is_up =
        |candidate: &&Candidate| signals.availability(&AgentName::from(candidate.agent.as_str())) != Availability::Down;
    candidates.iter().find(is_up).or_else(|| candidates.first())
}

/// How much a declared effect is believed: as declared, until there are enough outcomes of the skill.
fn trust(declared: f64, observed: Option<&Sum>) -> f64 {
    let Some(sum) = observed.filter(|sum| sum.decided() >= ENOUGH_SAMPLES) else { return declared };
    let success = sum.success_rate().unwrap_or(0.0);
    let confidence = sum.average_confidence().unwrap_or(declared);
    let minutes = (sum.average_ms() / MINUTE_MS).clamp(0.0, 2.0);
    ((2.0 * success + 0.5 * confidence - 0.3 * minutes) / 2.5).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::{Sum, trust};

    #[test]
    fn observations_replace_the_declared_confidence_from_the_fifth_outcome_on() {
        let mut sum = Sum { outcomes: 4, successes: 0, ..Sum::default() };
        assert_eq!(trust(0.8, Some(&sum)), 0.8);
        sum = Sum { outcomes: 5, successes: 4, rated: 5, confidence: 4_500, duration_ms: 5 * 30_000, ..sum };
        let expected = (2.0 * 0.8 + 0.5 * 0.9 - 0.3 * 0.5) / 2.5;
        assert!((trust(0.1, Some(&sum)) - expected).abs() < 1e-9);
        // Time beyond two minutes costs no more, and trust is never below nothing.
        sum = Sum { outcomes: 5, duration_ms: 5 * 3_600_000, ..Sum::default() };
        assert_eq!(trust(0.1, Some(&sum)), 0.0);
    }
}
