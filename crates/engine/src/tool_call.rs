//! Tool calls of agents: frames of the extension `tool-call-v1` on WORKING statuses.

use switchboard_a2a::TaskState;
use switchboard_a2a::card::AgentExtension;
use switchboard_a2a::extension::tool_call::ToolCall;
use switchboard_a2a::extension::{Emit, Payload};

use crate::handle::{Stopped, TaskHandle};

/// The extension's address; agents that say so in their manifest have it on their card.
pub const TOOL_CALL_URI: &str = ToolCall::URI;

impl TaskHandle {
    /// Which carriers the server wants the payloads of extensions to have; readers of v0.3 are given the older one by the
    /// server itself.
    pub fn emit(&self) -> Emit {
        self.engine.settings.emit
    }

    /// Says what a tool is doing: WORKING, with the call in its message. Nothing is kept back: what a tool was called
    /// with and what it answered can be read by the caller.
    pub async fn tool_call(&self, call: ToolCall) -> Result<(), Stopped> {
        self.wait_for_buffer(0).await?;
        self.push_status(TaskState::Working, Some(call.message(self.emit())), None).map(drop)
    }
}

/// The extension of agents that tell of their tool calls.
pub(crate) fn tool_call_extension() -> AgentExtension {
    let description = "Tool calls as they happen, in the metadata of status messages".to_owned();
    AgentExtension { uri: TOOL_CALL_URI.to_owned(), description: Some(description), ..AgentExtension::default() }
}
