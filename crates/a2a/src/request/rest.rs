//! Requests from REST: ids from the path, the rest from query or body.

use serde_json::value::RawValue;

use super::{PushRequest, Request, params};
use crate::lenient::snake_case;
use crate::{Dialect, Error, ErrorKind, Json, Metadata, Operation, TaskId};

/// The pieces of a REST request, already percent-decoded.
#[derive(Clone, Copy, Debug, Default)]
pub struct RestParts<'a> {
    /// The task of the path.
    pub task_id: Option<&'a str>,
    /// The webhook of the path.
    pub config_id: Option<&'a str>,
    /// The tenant of the path.
    pub tenant: Option<&'a str>,
    /// The query, in order.
    pub query: &'a [(String, String)],
    /// The body; empty and `null` are the same.
    pub body: &'a [u8],
}

/// Reads a REST request. What the path says wins; a tenant elsewhere must agree with it.
pub fn decode_rest(dialect: Dialect, operation: Operation, parts: RestParts<'_>) -> Result<Request, Error> {
    let body = body_object(parts.body)?;
    let is_send = matches!(operation, Operation::SendMessage | Operation::SendStreamingMessage);
    let mut request = if is_send {
        let Some(body) = body else {
            return Err(Error::invalid_field("message", "is missing"));
        };
        params::from_object(dialect, operation, Some(body.get()))?
    } else {
        let members = members(parts, body, operation)?;
        let object = Json::from_serialize(&members).map_err(|error| Error::invalid_field("", error.to_string()))?;
        params::from_object(dialect, operation, Some(object.as_str()))?
    };
    set_path_ids(&mut request, parts);
    let named = [parts.tenant, query_value(parts.query, "tenant")];
    for tenant in named.into_iter().flatten().filter(|tenant| !tenant.is_empty()) {
        set_tenant(&mut request, tenant)?;
    }
    Ok(request)
}

/// The first query value under a camelCase name or its snake_case twin.
fn query_value<'a>(query: &'a [(String, String)], name: &str) -> Option<&'a str> {
    query.iter().find(|(key, _)| key == name || *key == snake_case(name)).map(|(_, value)| value.as_str())
}

fn body_object(body: &[u8]) -> Result<Option<&RawValue>, Error> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
    }
    let raw: &RawValue = serde_json::from_slice(body).map_err(|error| {
        Error::with_message(ErrorKind::Parse, format!("{}: {error}", ErrorKind::Parse.entry().message))
    })?;
    match raw.get() {
        "null" => Ok(None),
        text if text.starts_with('{') => Ok(Some(raw)),
        _ => Err(Error::invalid_field("", "the body must be a JSON object")),
    }
}

/// The members of body, query and path as one object, so that every binding goes through the same readers.
fn members(parts: RestParts<'_>, body: Option<&RawValue>, operation: Operation) -> Result<Metadata, Error> {
    let unreadable = |error: serde_json::Error| Error::invalid_field("", error.to_string());
    let mut members: Metadata = match body {
        Some(body) => serde_json::from_str(body.get()).map_err(unreadable)?,
        None => Metadata::default(),
    };
    let quoted = |text: &str| Json::from_serialize(text).map_err(unreadable);
    for name in
        ["contextId", "status", "pageSize", "pageToken", "historyLength", "statusTimestampAfter", "includeArtifacts"]
    {
        if let Some(value) = query_value(parts.query, name) {
            members.remove(&snake_case(name));
            members.insert(name, quoted(value)?);
        }
    }
    let is_push = matches!(
        operation,
        Operation::CreatePushConfig
            | Operation::GetPushConfig
            | Operation::ListPushConfigs
            | Operation::DeletePushConfig
    );
    if let Some(task_id) = parts.task_id {
        for other in ["taskId", "task_id", "parent"] {
            members.remove(other);
        }
        // The name of a new webhook also holds its id.
        if operation != Operation::CreatePushConfig {
            members.remove("name");
        }
        if !is_push {
            members.remove("id");
        }
        members.insert("taskId", quoted(task_id)?);
    }
    if let Some(config_id) = parts.config_id {
        for other in ["pushNotificationConfigId", "push_notification_config_id", "configId", "config_id"] {
            members.remove(other);
        }
        members.insert("id", quoted(config_id)?);
    }
    Ok(members)
}

/// A nested v0.3 configuration may repeat the task under another id; the path is right.
fn set_path_ids(request: &mut Request, parts: RestParts<'_>) {
    let Some(path_task) = parts.task_id else { return };
    match request {
        Request::Push(PushRequest::Create(config)) => config.task_id = Some(path_task.to_owned()),
        Request::Push(
            PushRequest::Get { task_id, .. } | PushRequest::List { task_id, .. } | PushRequest::Delete { task_id, .. },
        ) => *task_id = TaskId::from(path_task),
        _ => {}
    }
}

fn set_tenant(request: &mut Request, named: &str) -> Result<(), Error> {
    let slot = request.tenant_mut();
    match slot {
        Some(given) if given != named => {
            Err(Error::invalid_field("tenant", format!("{given:?} contradicts the tenant {named:?} of the address")))
        }
        Some(_) => Ok(()),
        None => {
            *slot = Some(named.to_owned());
            Ok(())
        }
    }
}
