//! The lines of JSON-RPC: what comes in is sorted, what goes out is wrapped.

use agent_client_protocol_schema::rpc::{JsonRpcMessage, Notification};
use agent_client_protocol_schema::v1::{Error, Request, RequestId, Response};
use serde::Serialize;
use serde_json::Value;

use crate::adapters::dialogue::{FailureKind, Steps};
use crate::adapters::json::{parse, text};

pub(super) enum Incoming {
    Request { id: RequestId, method: String, params: Value },
    Notification { method: String, params: Value },
    Answer { id: RequestId, outcome: Result<Value, Error> },
}

impl Incoming {
    /// Reads a line; nothing if it is no message. The member `jsonrpc` is not asked for: some leave it out.
    pub(super) fn read(line: &str) -> Option<Self> {
        let Some(Value::Object(mut message)) = parse(line) else {
            return None;
        };
        let id = match message.remove("id") {
            None | Some(Value::Null) => None,
            Some(id) => Some(serde_json::from_value(id).ok()?),
        };
        if let Some(Value::String(method)) = message.remove("method") {
            let params = message.remove("params").unwrap_or_default();
            return Some(match id {
                Some(id) => Self::Request { id, method, params },
                None => Self::Notification { method, params },
            });
        }
        let outcome = match message.remove("error") {
            None | Some(Value::Null) => Ok(message.remove("result").unwrap_or_default()),
            Some(error) => Err(read_error(error)),
        };
        Some(Self::Answer { id: id?, outcome })
    }
}

/// An error object, whatever is missing or odd in it.
fn read_error(mut error: Value) -> Error {
    let code = error.get("code").and_then(Value::as_i64).and_then(|code| i32::try_from(code).ok());
    let message = text(&error, "message").to_owned();
    let data = error.get_mut("data").map(Value::take).filter(|data| !data.is_null());
    Error::new(code.unwrap_or_default(), message).data(data)
}

pub(super) fn request(steps: &mut Steps, id: i64, method: &str, params: impl Serialize) {
    send(steps, Request { id: RequestId::Number(id), method: method.into(), params: Some(params) });
}

pub(super) fn notification(steps: &mut Steps, method: &str, params: impl Serialize) {
    send(steps, Notification { method: method.into(), params: Some(params) });
}

pub(super) fn answer(steps: &mut Steps, id: RequestId, outcome: Result<impl Serialize, Error>) {
    send(steps, Response::new(id, outcome));
}

fn send(steps: &mut Steps, message: impl Serialize) {
    match serde_json::to_string(&JsonRpcMessage::wrap(message)) {
        Ok(line) => steps.write(line),
        Err(error) => steps.fail(FailureKind::Reported, format!("a message to the agent cannot be written: {error}")),
    }
}
