//! What an agent's tools do while it works, as frames of the extension `tool-call-v1`.
//!
//! Three generations of readers are about, and one WORKING status serves them all: the newest look in the message's
//! metadata under the extension's address, the older ones for a data part whose metadata names the media type, and
//! people read the text.

use serde::Serialize;
use switchboard_a2a::card::AgentExtension;
use switchboard_a2a::{Json, Message, Part, Role, TaskState};

use crate::handle::{Stopped, TaskHandle};
use crate::reason::metadata_of;

/// The extension's address; agents that say so in their manifest have it on their card.
pub const TOOL_CALL_URI: &str = "https://proto-labs.ai/a2a/ext/tool-call-v1";
/// Arguments longer than this many characters of JSON are given as a text of this length.
const ARGUMENT_CHARACTERS: usize = 200;
/// The same for results and errors.
const RESULT_CHARACTERS: usize = 300;

/// The media type older readers look for, in the data part's `metadata.mimeType`.
const TOOL_CALL_MEDIA_TYPE: &str = "application/vnd.protolabs.tool-call-v1+json";

/// One step in the life of a tool call. Those of one call share its id.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    tool_call_id: String,
    name: String,
    phase: Phase,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Json>,
    /// What people read instead of the usual words.
    #[serde(skip)]
    words: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Phase {
    Started,
    Completed,
    Failed,
}

impl ToolCall {
    /// The tool has been called.
    pub fn started(id: impl Into<String>, name: impl Into<String>) -> Self {
        Self::new(id, name, Phase::Started)
    }

    /// It has answered.
    pub fn completed(id: impl Into<String>, name: impl Into<String>) -> Self {
        Self::new(id, name, Phase::Completed)
    }

    /// It has failed.
    pub fn failed(id: impl Into<String>, name: impl Into<String>, error: impl AsRef<str>) -> Self {
        let error = preview(error.as_ref(), RESULT_CHARACTERS);
        Self { error, ..Self::new(id, name, Phase::Failed) }
    }

    fn new(id: impl Into<String>, name: impl Into<String>, phase: Phase) -> Self {
        Self { tool_call_id: id.into(), name: name.into(), phase, args: None, result: None, error: None, words: None }
    }

    /// What it was called with; if that is long, the beginning of its JSON as a text.
    #[must_use]
    pub fn args(mut self, args: &(impl Serialize + ?Sized)) -> Self {
        self.args = preview(args, ARGUMENT_CHARACTERS);
        self
    }

    /// What it answered; if that is long, its beginning as a text.
    #[must_use]
    pub fn result(mut self, result: &(impl Serialize + ?Sized)) -> Self {
        self.result = preview(result, RESULT_CHARACTERS);
        self
    }

    /// What people read of it, where the usual words will not do.
    #[must_use]
    pub fn saying(mut self, words: impl Into<String>) -> Self {
        self.words = Some(words.into());
        self
    }

    /// The call in a few words.
    fn text(&self) -> String {
        if let Some(words) = &self.words {
            return words.clone();
        }
        let shown = |value: &Option<Json>| {
            value.as_ref().map(|value| value.as_text().unwrap_or_else(|| value.as_str().to_owned()))
        };
        let (what, detail) = match self.phase {
            Phase::Started => ("calling", shown(&self.args)),
            Phase::Completed => ("done", shown(&self.result)),
            Phase::Failed => ("failed", shown(&self.error)),
        };
        match detail {
            Some(detail) => format!("{} {what}: {detail}", self.name),
            None => format!("{} {what}", self.name),
        }
    }

    fn message(&self) -> Result<Message, serde_json::Error> {
        let payload = Json::from_serialize(self)?;
        let data = Part {
            metadata: metadata_of("mimeType", TOOL_CALL_MEDIA_TYPE),
            media_type: Some("application/json".to_owned()),
            ..Part::data(payload.clone())
        };
        let mut message = Message::text(Role::Agent, self.text());
        message.parts.push(data);
        message.metadata = metadata_of(TOOL_CALL_URI, &payload);
        message.extensions = vec![TOOL_CALL_URI.to_owned()];
        Ok(message)
    }
}

/// A value, or the beginning of its text if it is longer than that. What cannot be JSON is left out.
fn preview(value: &(impl Serialize + ?Sized), most: usize) -> Option<Json> {
    let json = Json::from_serialize(value).ok()?;
    // A text is measured without its quotes and escapes.
    let text = json.as_text().unwrap_or_else(|| json.as_str().to_owned());
    if text.char_indices().nth(most).is_none() {
        return Some(json);
    }
    let mut beginning: String = text.chars().take(most - 1).collect();
    beginning.push('…');
    Json::from_serialize(&beginning).ok()
}

impl TaskHandle {
    /// Says what a tool is doing: WORKING, with the call in its message. Nothing is kept back: what a tool was called
    /// with and what it answered can be read by the caller.
    pub async fn tool_call(&self, call: ToolCall) -> Result<(), Stopped> {
        self.wait_for_buffer(0).await?;
        let message = call.message().unwrap_or_else(|_| Message::text(Role::Agent, call.text()));
        self.push_status(TaskState::Working, Some(message), None).map(drop)
    }
}

/// The extension of agents that tell of their tool calls.
pub(crate) fn tool_call_extension() -> AgentExtension {
    let description = "Tool calls as they happen, in the metadata of status messages".to_owned();
    AgentExtension { uri: TOOL_CALL_URI.to_owned(), description: Some(description), ..AgentExtension::default() }
}
