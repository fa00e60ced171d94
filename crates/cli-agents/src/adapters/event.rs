//! The events of a turn, the same for every program.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One event.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    /// The program is ready. It may say so more than once.
    Init {
        /// Its name for the conversation, with which it can be taken up again.
        #[serde(skip_serializing_if = "Option::is_none")]
        session: Option<String>,
        /// The model it uses.
        #[serde(skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
    /// A part of a message to the caller. Parts are never repeated.
    Text {
        /// To be appended to the message so far.
        text: String,
    },
    /// The message is complete; the next text begins another.
    TextEnd,
    /// A part of its reasoning.
    Reasoning {
        /// To be appended to the reasoning so far.
        text: String,
    },
    /// It has called a tool.
    ToolUse {
        /// The same in the result.
        id: String,
        /// The tool's name, as permissions name it.
        tool: String,
        /// What it is called with.
        input: Value,
    },
    ToolResult {
        /// The same as in the call.
        id: String,
        tool: String,
        output: String,
        /// Whether it failed or was refused.
        is_error: bool,
    },
    /// It requests approval of a tool call, and waits.
    ApprovalRequired(Approval),
    /// It withdrew a request; no answer may be written.
    ApprovalWithdrawn { request: String },
    /// What the work has cost so far. The last one counts.
    Usage(Usage),
    /// Files it says it has changed.
    FilesChanged { paths: Vec<String> },
    /// Something people may want to know while they wait: a retry, a warning.
    Notice { text: String },
}

/// A request to approve one tool call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Approval {
    /// The program's id of the request, unique within its run. It may be `"0"`.
    pub request: String,
    /// The tool's name, as permissions name it.
    pub tool: String,
    /// What it would be called with.
    pub input: Value,
    /// What would be done, for people: `Run cargo test`.
    pub prompt: String,
    /// Answers of its own that the program takes besides allow and deny; most have none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Choice>,
    /// Whether the program takes no plain yes: [`Decision::Allow`] would not do what it says, and is not to be offered.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_plain_yes: bool,
    /// Whether the reason of a [`Decision::Deny`] reaches the program. Else the approver is not asked for one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub takes_reason: bool,
}

/// One answer that a program offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Choice {
    pub id: String,
    pub label: String,
    pub kind: ChoiceKind,
}

/// What an offered answer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChoiceKind {
    /// Yes, this time.
    AllowOnce,
    /// Yes, and do not ask again.
    AllowAlways,
    /// No, this time.
    RejectOnce,
    /// No, and do not ask again.
    RejectAlways,
    Other,
}

/// The answer to an [`Approval`]. An approval for the rest of a task is remembered outside the adapter, and each later
/// request is answered with [`Decision::Allow`]: what programs offer to remember reaches further than that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Go ahead, this once.
    Allow,
    Deny {
        /// Why; passed to the model where [`Approval::takes_reason`] says so.
        reason: Option<String>,
    },
    /// One of the program's own answers, by its id.
    Choose(String),
}

/// Tokens and money spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Usage {
    /// Since when it was counted.
    pub scope: Scope,
    /// Tokens read, cached ones included.
    pub input_tokens: u64,
    /// Of these, tokens read from a cache.
    pub cached_tokens: u64,
    /// Tokens written, reasoning included.
    pub output_tokens: u64,
    /// Of these, tokens spent on reasoning.
    pub reasoning_tokens: u64,
    /// Money, in US dollars, where the program says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

impl Usage {
    /// Adds what else was spent. Programs say what they like: a sum stays the greatest number there is, and nothing
    /// is ever paid back.
    pub(crate) fn add(&mut self, more: &Self) {
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        add(&mut self.input_tokens, more.input_tokens);
        add(&mut self.cached_tokens, more.cached_tokens);
        add(&mut self.output_tokens, more.output_tokens);
        add(&mut self.reasoning_tokens, more.reasoning_tokens);
        if let Some(cost) = more.cost_usd.filter(|cost| *cost >= 0.0) {
            self.cost_usd = Some((self.cost_usd.unwrap_or_default() + cost).clamp(0.0, f64::MAX));
        }
    }
}

/// Since when a [`Usage`] was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Since this run of the program began.
    #[default]
    Run,
    /// Since the conversation began, in earlier runs too.
    Session,
}
