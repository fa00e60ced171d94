//! Tool calls of agents: frames of the extension `tool-call-v1` on WORKING statuses.

use switchboard_a2a::TaskState;
use switchboard_a2a::card::AgentExtension;
use switchboard_a2a::extension::Payload;
use switchboard_a2a::extension::tool_call::ToolCall;

use crate::handle::{Stopped, TaskHandle};

/// The extension's address; agents that say so in their manifest have it on their card.
pub const TOOL_CALL_URI: &str = ToolCall::URI;

impl TaskHandle {
    /// Says what a tool is doing: WORKING, with the call in its message. Nothing is kept back: what a tool was called
    /// with and what it answered can be read by the caller.
    pub async fn tool_call(&self, call: ToolCall) -> Result<(), Stopped> {
        self.wait_for_buffer(0).await?;
        self.push_status(TaskState::Working, Some(call.message()), None).map(drop)
    }
}

/// The extension of agents that tell of their tool calls.
pub(crate) fn tool_call_extension() -> AgentExtension {
    let description = "Tool calls as they happen, in the metadata of status messages".to_owned();
    AgentExtension { uri: TOOL_CALL_URI.to_owned(), description: Some(description), ..AgentExtension::default() }
}
