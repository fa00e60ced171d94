//! Requests as calls of REST: method, path, query and body.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::{check, list_status, send, written_history_length};
use crate::encode::encode_push_config;
use crate::request::{EncodeError, ListRequest, PushRequest, Request};
use crate::write_json::Object;
use crate::{Dialect, Operation, PushConfig};

/// One call, to be made below the URL of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestCall {
    /// `GET`, `POST` or `DELETE`.
    pub method: &'static str,
    /// Begins with a slash; ids are escaped. The tenant stands in front where the request names one.
    pub path: String,
    /// Names and values, not yet escaped.
    pub query: Vec<(&'static str, String)>,
    /// JSON.
    pub body: Option<Vec<u8>>,
    /// The same call in the form that other peers want.
    pub fallback: Option<RestFallback>,
}

/// What to send to a peer that refuses the usual form: one without the route (404, 405), or one that reads another body
/// (400). Path and query stay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestFallback {
    /// `GET` or `POST`.
    pub method: &'static str,
    /// JSON.
    pub body: Option<Vec<u8>>,
}

impl RestCall {
    /// Path and query, escaped.
    pub fn target(&self) -> String {
        let mut target = self.path.clone();
        for (index, (name, value)) in self.query.iter().enumerate() {
            target.push(if index == 0 { '?' } else { '&' });
            target.push_str(name);
            target.push('=');
            target.extend(utf8_percent_encode(value, RESERVED));
        }
        target
    }
}

/// Writes a request as a call of REST. See [`super::encode_params`] about a history length of zero.
pub fn encode_rest(dialect: Dialect, operation: Operation, request: &Request) -> Result<RestCall, EncodeError> {
    if dialect == Dialect::V03Rpc || operation == Operation::GetCard {
        return Err(EncodeError::Operation { operation, dialect });
    }
    check(dialect, operation, request)?;
    let paths = Paths { dialect, tenant: request.tenant() };
    let get = |path: String| RestCall { method: "GET", path, query: Vec::new(), body: None, fallback: None };
    let post = |path: String, body: Vec<u8>| RestCall { method: "POST", body: Some(body), ..get(path) };
    match request {
        Request::Send(request) => {
            let verb = if operation.is_streaming() { "/message:stream" } else { "/message:send" };
            Ok(post(paths.to(verb)?, send::body(dialect, request)))
        }
        Request::Get { id, history_length, .. } => {
            let history_length = written_history_length(dialect, *history_length);
            Ok(RestCall { query: numbers([("historyLength", history_length)]), ..get(paths.task(id)?) })
        }
        Request::List(request) => Ok(RestCall { query: list_query(dialect, request), ..get(paths.to("/tasks")?) }),
        Request::Cancel { id, metadata, tenant } => {
            let body = match dialect {
                Dialect::V1 => Object::default()
                    .optional("tenant", tenant.as_ref())
                    .member("id", id)
                    .optional("metadata", metadata.as_ref()),
                _ => Object::default().member("name", &format!("tasks/{id}")),
            };
            Ok(post(paths.task(id)? + ":cancel", body.end()))
        }
        // The specification says POST and its protocol buffers say GET; more servers have POST.
        Request::Subscribe { id, .. } => Ok(RestCall {
            method: "POST",
            fallback: Some(RestFallback { method: "GET", body: None }),
            ..get(paths.task(id)? + ":subscribe")
        }),
        Request::Push(PushRequest::Create(config)) => create(dialect, config, &paths, post),
        Request::Push(PushRequest::Get { task_id, id, .. }) => {
            Ok(get(paths.config(task_id, id.as_deref().unwrap_or_default())?))
        }
        Request::Push(PushRequest::List { task_id, page_size, page_token, .. }) => {
            let mut query = numbers([("pageSize", *page_size)]);
            query.extend(page_token.clone().map(|token| ("pageToken", token)));
            Ok(RestCall { query, ..get(paths.configs(task_id)?) })
        }
        Request::Push(PushRequest::Delete { task_id, id, .. }) => {
            Ok(RestCall { method: "DELETE", ..get(paths.config(task_id, id)?) })
        }
        Request::ExtendedCard { .. } => {
            Ok(get(paths.to(if dialect == Dialect::V1 { "/extendedAgentCard" } else { "/card" })?))
        }
    }
}

/// v0.3 servers disagree whether the body is the whole request or only its configuration, and none reads both.
fn create(
    dialect: Dialect,
    config: &PushConfig,
    paths: &Paths<'_>,
    post: impl Fn(String, Vec<u8>) -> RestCall,
) -> Result<RestCall, EncodeError> {
    let (task, id) = (config.task_id.as_deref().unwrap_or_default(), config.id.as_deref().unwrap_or_default());
    let body = encode_push_config(dialect, config);
    if dialect == Dialect::V1 {
        return Ok(post(paths.configs(task)?, body));
    }
    // The id stands in the resource name, where the rules for paths hold too.
    push_segment(&mut String::new(), dialect, "id", id)?;
    let whole = Object::default()
        .member("parent", &format!("tasks/{task}"))
        .member("configId", id)
        .encoded("config", &body)
        .end();
    let fallback = Some(RestFallback { method: "POST", body: Some(body) });
    Ok(RestCall { fallback, ..post(paths.configs(task)?, whole) })
}

fn list_query(dialect: Dialect, request: &ListRequest) -> Vec<(&'static str, String)> {
    let texts = [
        ("contextId", request.context_id.as_ref().map(ToString::to_string)),
        ("status", list_status(dialect, request).map(str::to_owned)),
        ("pageToken", request.page_token.clone()),
        ("statusTimestampAfter", request.status_timestamp_after.map(|time| time.to_string())),
        ("includeArtifacts", request.include_artifacts.then(|| "true".to_owned())),
    ];
    let mut query = numbers([
        ("pageSize", request.page_size),
        ("historyLength", written_history_length(dialect, request.history_length)),
    ]);
    query.extend(texts.into_iter().filter_map(|(name, value)| Some((name, value?))));
    query
}

fn numbers<const N: usize>(named: [(&'static str, Option<u32>); N]) -> Vec<(&'static str, String)> {
    named.into_iter().filter_map(|(name, number)| Some((name, number?.to_string()))).collect()
}

/// The paths of a dialect, below the tenant.
struct Paths<'a> {
    dialect: Dialect,
    tenant: Option<&'a str>,
}

impl Paths<'_> {
    fn to(&self, rest: &str) -> Result<String, EncodeError> {
        let mut path = if self.dialect == Dialect::V1 { String::new() } else { "/v1".to_owned() };
        if let Some(tenant) = self.tenant {
            push_segment(&mut path, self.dialect, "tenant", tenant)?;
        }
        path.push_str(rest);
        Ok(path)
    }

    fn task(&self, id: impl AsRef<str>) -> Result<String, EncodeError> {
        let mut path = self.to("/tasks")?;
        push_segment(&mut path, self.dialect, "id", id.as_ref())?;
        Ok(path)
    }

    fn configs(&self, task: impl AsRef<str>) -> Result<String, EncodeError> {
        let mut path = self.to("/tasks")?;
        push_segment(&mut path, self.dialect, "taskId", task.as_ref())?;
        path.push_str("/pushNotificationConfigs");
        Ok(path)
    }

    fn config(&self, task: impl AsRef<str>, id: &str) -> Result<String, EncodeError> {
        let mut path = self.configs(task)?;
        push_segment(&mut path, self.dialect, "id", id)?;
        Ok(path)
    }
}

/// Everything but the unreserved characters of RFC 3986 is escaped.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Adds a segment. An id that a URL parser would take for a step to another folder, or a resource name of v0.3 for two
/// ids, is refused.
fn push_segment(path: &mut String, dialect: Dialect, field: &'static str, id: &str) -> Result<(), EncodeError> {
    if matches!(id, "" | "." | "..") || (dialect == Dialect::V03Rest && id.contains('/')) {
        return Err(EncodeError::Segment { field, id: id.to_owned(), dialect });
    }
    path.push('/');
    path.extend(utf8_percent_encode(id, RESERVED));
    Ok(())
}
