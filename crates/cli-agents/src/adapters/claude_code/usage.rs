//! Usage of a run.
//!
//! A run that resumes a session goes on counting where the run before it ended, unless that one was killed. Only the
//! numbers since the last result belong to this run for certain.

use serde_json::Value;

use super::json::number;
use crate::adapters::event::{Scope, Usage};

/// Adds the usage of a result to that of the run.
pub(super) fn add(usage: &mut Usage, result: &Value) {
    let models = |member| result.get(member).and_then(Value::as_object);
    if let Some(models) = models("model_usage_since_last_result") {
        models.values().for_each(|model| add_model(usage, model));
    } else if let Some(models) = models("modelUsage").filter(|models| !models.is_empty()) {
        *usage = Usage::default();
        models.values().for_each(|model| add_model(usage, model));
        usage.cost_usd = result.get("total_cost_usd").and_then(Value::as_f64).or(usage.cost_usd);
    } else if let Some(turn) = result.get("usage") {
        let tokens = |member| number(turn, member);
        let more = Usage {
            scope: Scope::Run,
            input_tokens: tokens("input_tokens")
                .saturating_add(tokens("cache_read_input_tokens"))
                .saturating_add(tokens("cache_creation_input_tokens")),
            cached_tokens: tokens("cache_read_input_tokens"),
            output_tokens: tokens("output_tokens"),
            reasoning_tokens: turn.get("output_tokens_details").map_or(0, |details| number(details, "thinking_tokens")),
            cost_usd: None,
        };
        usage.add(&more);
        usage.cost_usd = result.get("total_cost_usd").and_then(Value::as_f64).or(usage.cost_usd);
    }
}

fn add_model(usage: &mut Usage, model: &Value) {
    let tokens = |member| number(model, member);
    let more = Usage {
        scope: Scope::Run,
        input_tokens: tokens("inputTokens")
            .saturating_add(tokens("cacheReadInputTokens"))
            .saturating_add(tokens("cacheCreationInputTokens")),
        cached_tokens: tokens("cacheReadInputTokens"),
        output_tokens: tokens("outputTokens"),
        reasoning_tokens: tokens("thinkingTokens"),
        cost_usd: model.get("costUSD").and_then(Value::as_f64),
    };
    usage.add(&more);
}
