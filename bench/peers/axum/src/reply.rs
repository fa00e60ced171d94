//! The replies, built as typed values and encoded, so that the ceiling pays for encoding like the others.

use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use crate::request::Message;

#[derive(Serialize)]
struct Success<'a, T> {
    jsonrpc: &'static str,
    id: &'a Value,
    result: T,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Event<'a> {
    Task(Task<'a>),
    StatusUpdate(StatusUpdate<'a>),
    ArtifactUpdate(ArtifactUpdate<'a>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Task<'a> {
    pub(crate) id: &'a str,
    pub(crate) context_id: &'a str,
    pub(crate) status: Status,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) artifacts: Vec<Artifact>,
    pub(crate) history: Vec<Message>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StatusUpdate<'a> {
    pub(crate) task_id: &'a str,
    pub(crate) context_id: &'a str,
    pub(crate) status: Status,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ArtifactUpdate<'a> {
    pub(crate) task_id: &'a str,
    pub(crate) context_id: &'a str,
    pub(crate) artifact: Artifact,
    pub(crate) append: bool,
    pub(crate) last_chunk: bool,
}

#[derive(Serialize)]
pub(crate) struct Status {
    state: &'static str,
    timestamp: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Artifact {
    artifact_id: &'static str,
    parts: [Text; 1],
}

#[derive(Serialize)]
struct Text {
    text: String,
}

impl Status {
    pub(crate) fn now(state: &'static str) -> Self {
        Self { state, timestamp: format!("{:.3}", jiff::Timestamp::now()) }
    }
}

impl Artifact {
    pub(crate) fn text(text: String) -> Self {
        Self { artifact_id: "answer", parts: [Text { text }] }
    }
}

/// The ids of one task, made by the server as a real one would.
pub(crate) struct Ids {
    pub(crate) task: String,
    pub(crate) context: String,
}

impl Ids {
    pub(crate) fn new() -> Self {
        Self { task: Uuid::now_v7().to_string(), context: Uuid::now_v7().to_string() }
    }

    /// The message as the task's history shows it.
    pub(crate) fn placed(&self, message: &Message) -> Message {
        let mut placed = message.clone();
        placed.task_id = Some(self.task.clone());
        placed.context_id = Some(self.context.clone());
        placed
    }
}

/// For clients that look for one before they call.
pub(crate) fn card() -> Vec<u8> {
    let card = serde_json::json!({
        "name": "axum", "description": "Plain axum", "version": "1",
        "supportedInterfaces": [{"url": "/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities": {"streaming": true},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"], "skills": [],
    });
    card.to_string().into_bytes()
}

/// A finished task with one artifact.
pub(crate) fn completed(id: &Value, message: &Message) -> Vec<u8> {
    let ids = Ids::new();
    let task = Task {
        id: &ids.task,
        context_id: &ids.context,
        status: Status::now("TASK_STATE_COMPLETED"),
        artifacts: vec![Artifact::text(message.text().to_owned())],
        history: vec![ids.placed(message)],
    };
    encode(id, &Event::Task(task))
}

pub(crate) fn method_not_found(id: &Value) -> Vec<u8> {
    let body =
        serde_json::json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "method not found"}});
    body.to_string().into_bytes()
}

/// One event in its JSON-RPC envelope.
pub(crate) fn encode(id: &Value, event: &Event<'_>) -> Vec<u8> {
    // Encoding strings and numbers into memory cannot fail; an empty reply would fail the load's checks.
    serde_json::to_vec(&Success { jsonrpc: "2.0", id, result: event }).unwrap_or_default()
}
