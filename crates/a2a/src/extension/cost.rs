//! `cost-v1`: what a task has used: tokens, time and money, as its agent reports it on the last artifact.

use serde::Serialize;

use super::members::{Members, optional_integral};
use super::payload::Payload;
use crate::Json;
use crate::card::AgentExtension;

/// What a task has used.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cost {
    /// The tokens, if they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
    /// How long it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// What it cost, if the agent knows.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "optional_integral")]
    pub cost_usd: Option<f64>,
    /// The model that was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Whether the agent counts the task as a success.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub success: Option<bool>,
}

/// Tokens, under the names that language models report them by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TokenUsage {
    /// Read by the model.
    pub input_tokens: u64,
    /// Written by it.
    pub output_tokens: u64,
    /// Of the input, those written to a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_creation_input_tokens: Option<u64>,
    /// Of the input, those read from a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read_input_tokens: Option<u64>,
    /// The sum as the agent gives it; it may be all that it gives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
}

impl Cost {
    /// The extension for a card: of an agent that says what its tasks have used.
    pub fn extension() -> AgentExtension {
        let description = "What a task has used, in the metadata of its last artifact".to_owned();
        AgentExtension { uri: Self::URI.to_owned(), description: Some(description), ..AgentExtension::default() }
    }
}

impl TokenUsage {
    /// The sum, computed if it is not given.
    pub fn total(&self) -> u64 {
        self.total_tokens.unwrap_or_else(|| self.input_tokens.saturating_add(self.output_tokens))
    }

    fn read(usage: &Members) -> Option<Self> {
        let input = usage.count(&["input_tokens", "inputTokens", "prompt_tokens"]);
        let output = usage.count(&["output_tokens", "outputTokens", "completion_tokens"]);
        let total_tokens = usage.count(&["total_tokens", "totalTokens"]);
        input.or(output).or(total_tokens)?;
        Some(Self {
            input_tokens: input.unwrap_or_default(),
            output_tokens: output.unwrap_or_default(),
            cache_creation_input_tokens: usage.count(&["cache_creation_input_tokens", "cacheCreationInputTokens"]),
            cache_read_input_tokens: usage.count(&["cache_read_input_tokens", "cacheReadInputTokens"]),
            total_tokens,
        })
    }
}

impl Payload for Cost {
    const URI: &'static str = "https://proto-labs.ai/a2a/ext/cost-v1";
    const MEDIA_TYPES: &'static [&'static str] = &["application/vnd.protolabs.cost-v1+json"];

    fn read(payload: &Json) -> Option<Self> {
        let members = Members::of(payload)?;
        let cost = Self {
            usage: members.object(&["usage"]).and_then(|usage| TokenUsage::read(&usage)),
            duration_ms: members.count(&["durationMs", "duration_ms"]),
            cost_usd: members.amount(&["costUsd", "cost_usd"]),
            model: members.text(&["model"]),
            success: members.flag(&["success"]),
        };
        (cost != Self::default()).then_some(cost)
    }
}
