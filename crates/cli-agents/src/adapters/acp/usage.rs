//! Usage of a turn.
//!
//! Tokens come with the answer to the prompt and count this turn, which is this run. Money comes in updates and counts
//! from the beginning of the conversation; so it is reported only in a session that began in this run.

use serde_json::Value;

use crate::adapters::dialogue::Steps;
use crate::adapters::event::{Event, Scope, Usage};

#[derive(Default)]
pub(super) struct UsageCounter {
    usage: Usage,
    /// Whether money spent in earlier runs is in what the agent says.
    resumed: bool,
}

impl UsageCounter {
    pub(super) fn new(resumed: bool) -> Self {
        Self { resumed, ..Self::default() }
    }

    /// An update about the context and the money.
    pub(super) fn update(&mut self, update: &Value, steps: &mut Steps) {
        let cost = &update["cost"];
        let in_dollars = cost.get("currency").and_then(Value::as_str) == Some("USD");
        let amount = cost.get("amount").and_then(Value::as_f64).filter(|amount| *amount >= 0.0);
        if let Some(amount) = amount
            && in_dollars
            && !self.resumed
        {
            self.usage.cost_usd = Some(amount);
            self.emit(steps);
        }
    }

    /// The answer to the prompt. Where an agent counts twice, the whole with its side calls is in the money only.
    pub(super) fn close(&mut self, result: &Value, steps: &mut Steps) {
        let count = |from: &Value, name: &str| from.get(name).and_then(Value::as_u64).unwrap_or_default();
        if let Some(usage) = result.get("usage").filter(|usage| usage.is_object()) {
            // The counts do not overlap: their sum is the total.
            let (read, written) = (count(usage, "cachedReadTokens"), count(usage, "cachedWriteTokens"));
            let thought = count(usage, "thoughtTokens");
            self.usage.input_tokens = count(usage, "inputTokens").saturating_add(read).saturating_add(written);
            self.usage.cached_tokens = read;
            self.usage.output_tokens = count(usage, "outputTokens").saturating_add(thought);
            self.usage.reasoning_tokens = thought;
        } else if let Some(usage) = result.pointer("/_meta/quota/token_count") {
            self.usage.input_tokens = count(usage, "input_tokens");
            self.usage.output_tokens = count(usage, "output_tokens");
        }
        self.emit(steps);
    }

    /// Zeros are not reported: a cancelled turn comes with zeros although tokens were spent.
    fn emit(&self, steps: &mut Steps) {
        let Usage { input_tokens, output_tokens, cost_usd, .. } = self.usage;
        if input_tokens > 0 || output_tokens > 0 || cost_usd.is_some_and(|cost| cost > 0.0) {
            steps.event(Event::Usage(Usage { scope: Scope::Run, ..self.usage }));
        }
    }
}
