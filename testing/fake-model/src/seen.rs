//! What the endpoint remembers of a request.

use std::time::SystemTime;

use crate::wire::Wire;

/// One request, as it came.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Seen {
    /// When its body was there.
    pub at: SystemTime,
    /// None for what no wire has: a stray call, which was answered with 404.
    pub wire: Option<Wire>,
    /// `POST`, for every request of a wire.
    pub method: String,
    /// With the query.
    pub path: String,
    /// The key that came with it, as any of the wires sends it.
    pub key: Option<String>,
    /// The model that was asked for.
    pub model: String,
    /// Whether the agent asked for itself, for a title say. Such a question follows no directive.
    pub is_side: bool,
    /// What the user said last, with its directives.
    pub prompt: String,
    /// How many prompts the conversation has.
    pub prompts: usize,
    /// How many answers of tools came since the last prompt.
    pub tool_results: usize,
    /// The names of the tools that were offered.
    pub tools: Vec<String>,
}
