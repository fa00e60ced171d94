//! What peers answer, read into the model. One lenient reader serves v1.0 and v0.3 JSON-RPC; v0.3 REST needs its
//! doubly nested data parts undone.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::lenient::or_default;
use crate::v03::rest_data;
use crate::{Dialect, ListResponse, Message, PushConfig, SendResponse, StreamResponse, Task};

/// A bare task.
pub fn decode_task(dialect: Dialect, json: &[u8]) -> Result<Task, serde_json::Error> {
    let mut task: Task = object(json)?;
    if dialect == Dialect::V03Rest {
        rest_data::unwrap_nested(&mut task);
    }
    Ok(task)
}

/// A bare message.
pub fn decode_message(dialect: Dialect, json: &[u8]) -> Result<Message, serde_json::Error> {
    let mut message: Message = object(json)?;
    if dialect == Dialect::V03Rest {
        rest_data::unwrap_nested(&mut message);
    }
    Ok(message)
}

/// The answer to a sent message.
pub fn decode_send(dialect: Dialect, json: &[u8]) -> Result<SendResponse, serde_json::Error> {
    let mut answer: SendResponse = object(json)?;
    if dialect == Dialect::V03Rest {
        rest_data::unwrap_nested(&mut answer);
    }
    Ok(answer)
}

/// One stream frame.
pub fn decode_stream(dialect: Dialect, json: &[u8]) -> Result<StreamResponse, serde_json::Error> {
    let mut frame: StreamResponse = object(json)?;
    if dialect == Dialect::V03Rest {
        rest_data::unwrap_nested(&mut frame);
    }
    Ok(frame)
}

/// A page of tasks. v0.3 means a bare array, though few peers list at all.
pub fn decode_list(dialect: Dialect, json: &[u8]) -> Result<ListResponse, serde_json::Error> {
    let mut page: ListResponse = if is_array(json) {
        let tasks: Vec<Task> = serde_json::from_slice(json)?;
        let total = u32::try_from(tasks.len()).unwrap_or(u32::MAX);
        ListResponse { tasks, next_page_token: String::new(), page_size: total, total_size: total.into() }
    } else {
        object(json)?
    };
    if dialect == Dialect::V03Rest {
        rest_data::unwrap_nested(&mut page);
    }
    Ok(page)
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
    let page: Page = object(json)?;
    Ok((page.configs, page.next_page_token))
}

fn is_array(json: &[u8]) -> bool {
    json.trim_ascii_start().starts_with(b"[")
}

fn object<T: DeserializeOwned>(json: &[u8]) -> Result<T, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let value = crate::lenient::object(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}
