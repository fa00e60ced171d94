//! Usage of a run.
//!
//! A run that resumes a session goes on counting where the run before it ended, unless that one was killed. Only the
//! numbers since the last result belong to this run for certain.

use serde_json::Value;

use crate::adapters::event::{Scope, Usage};
use crate::adapters::json::number;

pub(super) fn add(usage: &mut Usage, result: &Value) {
    let models = |member| result.get(member).and_then(Value::as_object);
    if let Some(models) = models("model_usage_since_last_result") {
        models.values().for_each(|model| add_model(usage, model));
    } else if let Some(models) = models("modelUsage").filter(|models| !models.is_empty()) {
        *usage = Usage::default();
        models.values().for_each(|model| add_model(usage, model));
        usage.cost_usd = result.get("total_cost_usd").and_then(Value::as_f64).or(usage.cost_usd);
    } else if let Some(turn) = result.get("usage") {
        let reasoning = turn.get("output_tokens_details").map_or(0, |details| number(details, "thinking_tokens"));
        let names = ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens"];
        usage.add(&counts(turn, names, reasoning));
        usage.cost_usd = result.get("total_cost_usd").and_then(Value::as_f64).or(usage.cost_usd);
    }
}

fn add_model(usage: &mut Usage, model: &Value) {
    let names = ["inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens", "outputTokens"];
    let cost_usd = model.get("costUSD").and_then(Value::as_f64);
    usage.add(&Usage { cost_usd, ..counts(model, names, number(model, "thinkingTokens")) });
}

/// The token counts under these names. Those of the cache are not among the input tokens.
fn counts(holder: &Value, names: [&str; 4], reasoning_tokens: u64) -> Usage {
    let [input, read, created, output_tokens] = names.map(|name| number(holder, name));
    Usage {
        scope: Scope::Run,
        input_tokens: input.saturating_add(read).saturating_add(created),
        cached_tokens: read,
        output_tokens,
        reasoning_tokens,
        cost_usd: None,
    }
}
