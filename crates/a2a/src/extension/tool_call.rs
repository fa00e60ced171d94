//! `tool-call-v1`: what an agent's tools do while it works, one frame per step on the messages of WORKING statuses.
//!
//! People read the text of such a message, programs the payload.

use serde::{Deserialize, Serialize};

use super::payload::{Emit, Payload};
use crate::{Json, Message, Role};

/// Arguments longer than this many characters of JSON are given as a text of this length.
const ARGUMENT_CHARACTERS: usize = 200;
/// The same for results and errors.
const RESULT_CHARACTERS: usize = 300;

/// One step in the life of a tool call. Those of one call share its id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    #[serde(alias = "tool_call_id")]
    tool_call_id: String,
    name: String,
    phase: Phase,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    args: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    result: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<Json>,
    /// What people read instead of the usual words.
    #[serde(skip)]
    words: Option<String>,
}

/// How far a tool call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// The tool has been called.
    Started,
    /// It has answered.
    Completed,
    /// It has failed.
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

    /// The id that the steps of one call share.
    pub fn id(&self) -> &str {
        &self.tool_call_id
    }

    /// The tool.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How far the call is.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The call in a few words.
    pub fn text(&self) -> String {
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

    /// The message of a WORKING status.
    pub fn message(&self, emit: Emit) -> Message {
        let mut message = Message::text(Role::Agent, self.text());
        self.write_to_message(&mut message, emit);
        message
    }
}

impl Payload for ToolCall {
    const URI: &'static str = "https://proto-labs.ai/a2a/ext/tool-call-v1";
    const MEDIA_TYPES: &'static [&'static str] = &["application/vnd.protolabs.tool-call-v1+json"];

    fn read(payload: &Json) -> Option<Self> {
        payload.read().ok()
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
