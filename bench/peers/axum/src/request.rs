//! The part of a JSON-RPC request that a reply depends on, parsed into types as a real server would.

use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
pub(crate) struct Request {
    #[serde(default)]
    pub(crate) id: serde_json::Value,
    method: String,
    #[serde(default)]
    params: Params,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Params {
    message: Option<Message>,
}

#[derive(Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Message {
    message_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) context_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) task_id: Option<String>,
    role: String,
    parts: Vec<Part>,
}

#[derive(Clone, Deserialize, Serialize)]
struct Part {
    text: String,
}

impl Message {
    pub(crate) fn text(&self) -> &str {
        self.parts.first().map_or("", |part| part.text.as_str())
    }
}

/// What a request asks for.
pub(crate) enum Call<'a> {
    Send(&'a Message),
    Stream(&'a Message),
    Subscribe,
    Unknown,
}

impl<'a> Call<'a> {
    pub(crate) fn of(request: &'a Request) -> Self {
        match (request.method.as_str(), &request.params.message) {
            ("SendMessage", Some(message)) => Call::Send(message),
            ("SendStreamingMessage", Some(message)) => Call::Stream(message),
            ("SubscribeToTask", _) => Call::Subscribe,
            _ => Call::Unknown,
        }
    }
}
