//! A sum of outcomes: of a minute or an hour, of one agent, of one of its skills or callers. Sums of sums are exact.

use serde::{Deserialize, Serialize};
use switchboard_a2a::TaskState;

use super::histogram::Histogram;
use super::outcome::Outcome;

/// An agent that is this sure and fails is not calibrated.
const HIGH_CONFIDENCE: f64 = 0.8;
/// Money is added up in billionths of a dollar, because a sum of fractions depends on its order.
const NANOS: f64 = 1e9;

/// Outcomes, added up. What agents report is theirs to choose, so its sums stay at the largest number there is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Sum {
    pub(crate) outcomes: u64,
    pub(crate) successes: u64,
    /// Those that were canceled, which say nothing of how well the agent does.
    pub(crate) canceled: u64,
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
    /// Money in billionths of a dollar.
    pub(crate) nano_usd: u64,
    /// Outcomes that say what they cost, or whose tokens do.
    pub(crate) costed: u64,
    /// Of those, the ones that are tokens times their price.
    pub(crate) estimated: u64,
    /// Outcomes that say how sure their agent was, …
    pub(crate) rated: u64,
    /// … and how sure they were together, in thousandths.
    pub(crate) confidence: u64,
    /// Failures of which the agent was sure that they were none.
    pub(crate) confident_failures: u64,
    pub(crate) durations: Histogram,
    /// All durations together.
    pub(crate) duration_ms: u64,
}

impl Sum {
    pub(crate) fn add(&mut self, outcome: &Outcome) {
        self.outcomes += 1;
        self.successes += u64::from(outcome.success);
        self.canceled += u64::from(outcome.state == TaskState::Canceled);
        self.input_tokens = self.input_tokens.saturating_add(outcome.input_tokens.unwrap_or(0));
        self.output_tokens = self.output_tokens.saturating_add(outcome.output_tokens.unwrap_or(0));
        if let Some(cost) = outcome.cost_usd {
            self.costed += 1;
            self.estimated += u64::from(outcome.estimated);
            self.nano_usd = self.nano_usd.saturating_add((cost.max(0.0) * NANOS).round() as u64);
        }
        if let Some(confidence) = outcome.confidence {
            self.rated += 1;
            self.confidence += (confidence.clamp(0.0, 1.0) * 1_000.0).round() as u64;
            self.confident_failures += u64::from(outcome.has_failed() && confidence >= HIGH_CONFIDENCE);
        }
        self.durations.add(outcome.duration_ms);
        self.duration_ms = self.duration_ms.saturating_add(outcome.duration_ms);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.outcomes += other.outcomes;
        self.successes += other.successes;
        self.canceled += other.canceled;
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.nano_usd = self.nano_usd.saturating_add(other.nano_usd);
        self.costed += other.costed;
        self.estimated += other.estimated;
        self.rated += other.rated;
        self.confidence += other.confidence;
        self.confident_failures += other.confident_failures;
        self.durations.merge(&other.durations);
        self.duration_ms = self.duration_ms.saturating_add(other.duration_ms);
    }

    /// Those that have succeeded or failed.
    pub(crate) fn decided(&self) -> u64 {
        self.outcomes.saturating_sub(self.canceled)
    }

    pub(crate) fn failures(&self) -> u64 {
        self.decided().saturating_sub(self.successes)
    }

    /// The share of successes; nothing without any that succeeded or failed.
    pub(crate) fn success_rate(&self) -> Option<f64> {
        (self.decided() > 0).then(|| self.successes as f64 / self.decided() as f64)
    }

    /// The share of failures; zero without any that succeeded or failed.
    pub(crate) fn failure_rate(&self) -> f64 {
        self.failures() as f64 / self.decided().max(1) as f64
    }

    pub(crate) fn cost_usd(&self) -> f64 {
        self.nano_usd as f64 / NANOS
    }

    pub(crate) fn cost_per_success(&self) -> Option<f64> {
        (self.successes > 0 && self.costed > 0).then(|| self.cost_usd() / self.successes as f64)
    }

    pub(crate) fn average_ms(&self) -> f64 {
        self.duration_ms as f64 / self.outcomes.max(1) as f64
    }

    pub(crate) fn average_confidence(&self) -> Option<f64> {
        (self.rated > 0).then(|| self.confidence as f64 / (1_000 * self.rated) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_that_was_stored_before_cancellations_were_counted_is_read_as_it_was() {
        let stored = r#"{"outcomes": 4, "successes": 3, "nanoUsd": 5}"#;
        let sum: Sum = serde_json::from_str(stored).unwrap();
        assert_eq!((sum.success_rate(), sum.failure_rate(), sum.decided()), (Some(0.75), 0.25, 4));
        let mut both = Sum { outcomes: 2, canceled: 2, ..Sum::default() };
        assert_eq!((both.success_rate(), both.failure_rate()), (None, 0.0));
        both.merge(&sum);
        assert_eq!((both.success_rate(), both.failures(), both.outcomes), (Some(0.75), 1, 6));
    }
}
