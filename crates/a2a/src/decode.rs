//! What peers answer, read into the model. One lenient reader serves v1.0 and v0.3 JSON-RPC; v0.3 REST needs its
//! doubly nested data parts undone.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::lenient::{object_from_slice, or_default};
use crate::v03::part_data;
use crate::{Dialect, ListResponse, Message, PushConfig, SendResponse, StreamResponse, Task, VisitParts};

/// A bare task.
pub fn decode_task(dialect: Dialect, json: &[u8]) -> Result<Task, serde_json::Error> {
    decode(dialect, json)
}

/// A bare message.
pub fn decode_message(dialect: Dialect, json: &[u8]) -> Result<Message, serde_json::Error> {
    decode(dialect, json)
}

/// The answer to a sent message.
pub fn decode_send(dialect: Dialect, json: &[u8]) -> Result<SendResponse, serde_json::Error> {
    decode(dialect, json)
}

/// One stream frame.
pub fn decode_stream(dialect: Dialect, json: &[u8]) -> Result<StreamResponse, serde_json::Error> {
    decode(dialect, json)
}

/// A page of tasks. v0.3 means a bare array, though few peers list at all.
pub fn decode_list(dialect: Dialect, json: &[u8]) -> Result<ListResponse, serde_json::Error> {
    if !is_array(json) {
        return decode(dialect, json);
    }
    let tasks: Vec<Task> = serde_json::from_slice(json)?;
    let total = u32::try_from(tasks.len()).unwrap_or(u32::MAX);
    let page = ListResponse { tasks, next_page_token: String::new(), page_size: total, total_size: total.into() };
    Ok(without_nesting(dialect, page))
}

/// A task's webhooks and the token of the next page: a bare array on v0.3 JSON-RPC, an object elsewhere.
pub fn decode_push_list(json: &[u8]) -> Result<(Vec<PushConfig>, String), serde_json::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Page {
        #[serde(default, deserialize_with = "or_default")]
        configs: Vec<PushConfig>,
        #[serde(default, alias = "next_page_token", deserialize_with = "or_default")]
        next_page_token: String,
    }
    if is_array(json) {
        return Ok((serde_json::from_slice(json)?, String::new()));
    }
    let page: Page = object_from_slice(json)?;
    Ok((page.configs, page.next_page_token))
}

fn is_array(json: &[u8]) -> bool {
    json.trim_ascii_start().starts_with(b"[")
}

fn decode<T: DeserializeOwned + VisitParts>(dialect: Dialect, json: &[u8]) -> Result<T, serde_json::Error> {
    object_from_slice(json).map(|value| without_nesting(dialect, value))
}

fn without_nesting<T: VisitParts>(dialect: Dialect, mut value: T) -> T {
    if dialect == Dialect::V03Rest {
        part_data::unwrap_nested(&mut value);
    }
    value
}
