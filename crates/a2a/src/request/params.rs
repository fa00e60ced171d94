//! Requests from JSON-RPC parameters; REST bodies go through the same readers.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::read_object::read_object;
use super::{ListRequest, Request, push, send};
use crate::lenient::{count, flag, non_empty};
use crate::model::resource_name;
use crate::{ContextId, Dialect, Error, Json, Metadata, Operation, TaskId, TaskState, Timestamp, Version};

/// Reads the parameters of an operation.
pub fn decode_params(dialect: Dialect, operation: Operation, params: Option<&RawValue>) -> Result<Request, Error> {
    from_object(dialect, operation, params.map(RawValue::get))
}

/// The ids a REST path gives override those of the body.
pub(super) fn from_object(dialect: Dialect, operation: Operation, json: Option<&str>) -> Result<Request, Error> {
    let needs_params = !matches!(operation, Operation::ListTasks | Operation::GetExtendedCard | Operation::GetCard);
    let json = match json {
        Some(json) => json,
        None if needs_params => return Err(Error::invalid_field("params", "is missing")),
        None => "{}",
    };
    match operation {
        Operation::SendMessage | Operation::SendStreamingMessage => send::decode(dialect, json).map(Request::Send),
        Operation::GetTask => {
            let wire: TaskWire = read_object(json)?;
            let history_length = history_length(dialect, wire.history_length);
            Ok(Request::Get { history_length, id: wire.task()?, tenant: wire.tenant })
        }
        Operation::CancelTask => {
            let wire: TaskWire = read_object(json)?;
            Ok(Request::Cancel { id: wire.task()?, metadata: wire.metadata, tenant: wire.tenant })
        }
        Operation::SubscribeToTask => {
            let wire: TaskWire = read_object(json)?;
            Ok(Request::Subscribe { id: wire.task()?, tenant: wire.tenant })
        }
        Operation::ListTasks => list(dialect, json).map(Request::List),
        Operation::GetExtendedCard | Operation::GetCard => {
            let wire: TaskWire = read_object(json)?;
            Ok(Request::ExtendedCard { tenant: wire.tenant })
        }
        Operation::CreatePushConfig
        | Operation::GetPushConfig
        | Operation::ListPushConfigs
        | Operation::DeletePushConfig => push::decode(dialect, operation, json).map(Request::Push),
    }
}

/// v0.3 has no presence for this number: zero is unset there.
pub(super) fn history_length(dialect: Dialect, given: Option<u32>) -> Option<u32> {
    match dialect.version() {
        Version::V1 => given,
        Version::V03 => given.filter(|length| *length != 0),
    }
}

/// 1 to 100; every other value has the same error.
pub(super) fn page_size(given: Option<&Json>) -> Result<Option<u32>, Error> {
    let Some(given) = given else { return Ok(None) };
    match count(&mut serde_json::Deserializer::from_str(given.as_str())) {
        Ok(size) if size.is_none_or(|size| (1..=100).contains(&size)) => Ok(size),
        _ => {
            // A query has only text, and there it stands without quotes.
            let shown = given.as_str().trim_matches('"');
            Err(Error::invalid_field("pageSize", format!("{shown} is out of range: use 1 to 100")))
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TaskWire {
    #[serde(default, deserialize_with = "non_empty")]
    id: Option<String>,
    #[serde(default, alias = "task_id", deserialize_with = "non_empty")]
    task_id: Option<String>,
    /// `tasks/{id}`, on v0.3 REST.
    #[serde(default, deserialize_with = "non_empty")]
    name: Option<String>,
    #[serde(default, alias = "history_length", deserialize_with = "count")]
    history_length: Option<u32>,
    #[serde(default)]
    metadata: Option<Metadata>,
    #[serde(default, deserialize_with = "non_empty")]
    tenant: Option<String>,
}

impl TaskWire {
    fn task(&self) -> Result<TaskId, Error> {
        let named = self.name.as_deref().and_then(resource_name).map(|(task, _)| task);
        match (self.id.as_deref(), self.task_id.as_deref()) {
            (Some(id), Some(task_id)) if id != task_id => {
                Err(Error::invalid_field("taskId", format!("{task_id:?} contradicts id {id:?}: send one of them")))
            }
            (id, task_id) => match id.or(task_id).or(named) {
                Some(id) => Ok(TaskId::from(id)),
                None => Err(Error::invalid_field("id", "is missing")),
            },
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListWire {
    #[serde(default, alias = "context_id", deserialize_with = "non_empty")]
    context_id: Option<ContextId>,
    #[serde(default)]
    status: Option<Json>,
    #[serde(default, alias = "page_size")]
    page_size: Option<Json>,
    #[serde(default, alias = "page_token", deserialize_with = "non_empty")]
    page_token: Option<String>,
    #[serde(default, alias = "history_length", deserialize_with = "count")]
    history_length: Option<u32>,
    #[serde(default, alias = "status_timestamp_after")]
    status_timestamp_after: Option<Json>,
    #[serde(default, alias = "include_artifacts", deserialize_with = "flag")]
    include_artifacts: bool,
    #[serde(default, deserialize_with = "non_empty")]
    tenant: Option<String>,
}

fn list(dialect: Dialect, json: &str) -> Result<ListRequest, Error> {
    let wire: ListWire = read_object(json)?;
    Ok(ListRequest {
        context_id: wire.context_id,
        status: wire.status.as_ref().map(status).transpose()?.flatten(),
        page_size: page_size(wire.page_size.as_ref())?,
        page_token: wire.page_token,
        history_length: history_length(dialect, wire.history_length),
        status_timestamp_after: wire.status_timestamp_after.as_ref().map(timestamp).transpose()?.flatten(),
        include_artifacts: wire.include_artifacts,
        tenant: wire.tenant,
    })
}

/// A filter must name a state we know: an unknown one would silently list everything.
fn status(value: &Json) -> Result<Option<TaskState>, Error> {
    let state = match value.read::<serde_json::Value>() {
        Ok(serde_json::Value::Null) => Some(TaskState::Unspecified),
        Ok(serde_json::Value::String(text)) if text.is_empty() => Some(TaskState::Unspecified),
        Ok(serde_json::Value::String(text)) => TaskState::from_wire(&text),
        Ok(serde_json::Value::Number(number)) => number.as_u64().and_then(TaskState::from_number),
        _ => None,
    };
    match state {
        Some(state) => Ok((state != TaskState::Unspecified).then_some(state)),
        None => Err(Error::invalid_field(
            "status",
            format!("{value:?} is no task state: use TASK_STATE_WORKING or the like"),
        )),
    }
}

fn timestamp(value: &Json) -> Result<Option<Timestamp>, Error> {
    if matches!(value.as_str(), "null" | "\"\"") {
        return Ok(None);
    }
    value.read().map(Some).map_err(|_| {
        Error::invalid_field("statusTimestampAfter", format!("{value:?} is no time: use 2026-01-02T03:04:05.678Z"))
    })
}
