//! Requests of our own, written for a peer: the parameters of JSON-RPC here, the calls of REST in `rest`.
//!
//! v0.3 peers get nothing outside their schema, because some answer any unknown key with an error.

mod rest;
mod send;

use super::unsupported::EncodeError;
use super::{ListRequest, PushRequest, Request};
use crate::encode::encode_push_config;
use crate::write_json::Object;
use crate::{Dialect, Operation, TaskId, TaskState, v03};

pub use rest::{RestCall, RestFallback, encode_rest};

/// The `params` of a JSON-RPC request; empty where the method has none. The method is [`Operation::method`].
///
/// A v0.3 peer takes a history length of zero for no limit, so a caller that wants none must drop the history itself.
pub fn encode_params(dialect: Dialect, operation: Operation, request: &Request) -> Result<Vec<u8>, EncodeError> {
    if dialect == Dialect::V03Rest || operation.method(dialect.version()).is_empty() {
        return Err(EncodeError::Operation { operation, dialect });
    }
    check(dialect, operation, request)?;
    let object = Object::default().optional("tenant", request.tenant());
    let object = match request {
        Request::Send(request) => return Ok(send::body(dialect, request)),
        Request::Push(PushRequest::Create(config)) => return Ok(encode_push_config(dialect, config)),
        Request::ExtendedCard { .. } if dialect == Dialect::V03Rpc => return Ok(Vec::new()),
        Request::ExtendedCard { .. } => object,
        Request::Get { id, history_length, .. } => {
            object.member("id", id).optional("historyLength", history_length.as_ref())
        }
        Request::Cancel { id, metadata, .. } => object.member("id", id).optional("metadata", metadata.as_ref()),
        Request::Subscribe { id, .. } => object.member("id", id),
        Request::List(request) => list(dialect, request, object),
        Request::Push(PushRequest::List { task_id, page_size, page_token, .. }) => object
            .member(task_name(dialect), task_id)
            .optional("pageSize", page_size.as_ref())
            .optional("pageToken", page_token.as_ref()),
        Request::Push(PushRequest::Get { task_id, id, .. }) => {
            object.member(task_name(dialect), task_id).optional(config_name(dialect), id.as_ref())
        }
        Request::Push(PushRequest::Delete { task_id, id, .. }) => {
            object.member(task_name(dialect), task_id).member(config_name(dialect), id)
        }
    };
    Ok(object.end())
}

/// v0.3 calls the task of a webhook just `id`.
fn task_name(dialect: Dialect) -> &'static str {
    if dialect == Dialect::V1 { "taskId" } else { "id" }
}

fn config_name(dialect: Dialect) -> &'static str {
    if dialect == Dialect::V1 { "id" } else { "pushNotificationConfigId" }
}

/// No v0.3 schema has this request. The peers that serve it read the names of v1.0.
fn list(dialect: Dialect, request: &ListRequest, object: Object) -> Object {
    let status = list_status(dialect, request);
    object
        .optional("contextId", request.context_id.as_ref())
        .optional("status", status.as_ref())
        .optional("pageSize", request.page_size.as_ref())
        .optional("pageToken", request.page_token.as_ref())
        .optional("historyLength", request.history_length.as_ref())
        .optional("statusTimestampAfter", request.status_timestamp_after.as_ref())
        .optional("includeArtifacts", request.include_artifacts.then_some(&true))
}

/// The state to list, as the dialect spells it; an unspecified one would list everything anyway.
fn list_status(dialect: Dialect, request: &ListRequest) -> Option<&'static str> {
    let state = request.status.filter(|state| *state != TaskState::Unspecified)?;
    Some(v03::state(dialect, state))
}

/// Validates a request, for either binding.
fn check(dialect: Dialect, operation: Operation, request: &Request) -> Result<(), EncodeError> {
    if !is_for_operation(operation, request) {
        return Err(EncodeError::Mismatch { operation });
    }
    if let Some(field) = request.unsupported_fields(dialect).first() {
        return Err(EncodeError::Field { field, dialect });
    }
    let need = |field: &'static str, text: Option<&str>| match text {
        None | Some("") => Err(EncodeError::Missing { field, dialect }),
        Some(_) => Ok(()),
    };
    let need_task = |field: &'static str, id: &TaskId| need(field, Some(id.as_str()));
    match request {
        Request::Get { id, .. } | Request::Cancel { id, .. } | Request::Subscribe { id, .. } => need_task("id", id),
        Request::Push(PushRequest::Create(config)) => {
            need("taskId", config.task_id.as_deref())?;
            // Its resource name is made of both ids.
            if dialect == Dialect::V03Rest { need("id", config.id.as_deref()) } else { Ok(()) }
        }
        Request::Push(PushRequest::List { task_id, .. }) => need_task("taskId", task_id),
        Request::Push(PushRequest::Get { task_id, id, .. }) => {
            need_task("taskId", task_id)?;
            if dialect == Dialect::V03Rpc { Ok(()) } else { need("id", id.as_deref()) }
        }
        Request::Push(PushRequest::Delete { task_id, id, .. }) => {
            need_task("taskId", task_id)?;
            need("id", Some(id))
        }
        Request::Send(_) | Request::List(_) | Request::ExtendedCard { .. } => Ok(()),
    }
}

fn is_for_operation(operation: Operation, request: &Request) -> bool {
    matches!(
        (operation, request),
        (Operation::SendMessage | Operation::SendStreamingMessage, Request::Send(_))
            | (Operation::GetTask, Request::Get { .. })
            | (Operation::ListTasks, Request::List(_))
            | (Operation::CancelTask, Request::Cancel { .. })
            | (Operation::SubscribeToTask, Request::Subscribe { .. })
            | (Operation::CreatePushConfig, Request::Push(PushRequest::Create(_)))
            | (Operation::GetPushConfig, Request::Push(PushRequest::Get { .. }))
            | (Operation::ListPushConfigs, Request::Push(PushRequest::List { .. }))
            | (Operation::DeletePushConfig, Request::Push(PushRequest::Delete { .. }))
            | (Operation::GetExtendedCard | Operation::GetCard, Request::ExtendedCard { .. })
    )
}

/// The history length as it is written: v0.3 REST has no presence for numbers, so zero is left out there.
fn written_history_length(dialect: Dialect, history_length: Option<u32>) -> Option<u32> {
    history_length.filter(|length| *length != 0 || dialect != Dialect::V03Rest)
}
