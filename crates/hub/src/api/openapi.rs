//! The hub's part of `/openapi.json`, made from the table of routes, so that what is described is what is served.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use switchboard_engine::CallerRole;
use switchboard_server::{Authorization, BodyRule};

use super::route::{Header, Parameter, Route, Style, Takes};

/// What a message may be refused with that is routed and sent as one that comes over A2A.
const SENDING: &[(u16, &str)] = &[
    (400, "SKILL_NOT_OFFERED, UNSUPPORTED_OPERATION"),
    (403, "FORBIDDEN"),
    (404, "NOT_FOUND"),
    (409, "IDEMPOTENCY_KEY_REUSED"),
    (429, "COOLDOWN"),
];
/// Stands for members that are described elsewhere; the handler refuses those that are not.
const OTHER_MEMBERS: &str = "…";

pub(crate) fn describe(routes: &[Route]) -> Value {
    let mut paths = Map::new();
    for route in routes {
        let item = paths.entry(route.path).or_insert_with(|| json!({}));
        if let Some(item) = item.as_object_mut() {
            item.insert(route.method.as_str().to_ascii_lowercase(), operation(route));
        }
    }
    let tag = json!({ "name": "hub", "description": "What happens between agents: feed, health, alerts." });
    json!({ "tags": [tag], "paths": paths })
}

fn operation(route: &Route) -> Value {
    let variables = route.path.split('{').skip(1).filter_map(|rest| rest.split('}').next());
    let in_path = |name: &str| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string", "minLength": 1 } });
    let in_query = |parameter: &Parameter| {
        let one = match parameter.takes {
            Takes::Anything => schema(Takes::Text),
            takes => schema(takes),
        };
        let schema = if parameter.repeats { json!({ "type": "array", "items": one }) } else { one };
        let (name, about, required) = (parameter.name, parameter.about, parameter.is_required());
        json!({ "name": name, "in": "query", "required": required, "description": about, "schema": schema })
    };
    let mut parameters: Vec<Value> = variables.map(in_path).chain(route.parameters.iter().map(in_query)).collect();
    parameters.extend(route.headers.iter().flat_map(|header| in_header(*header)));
    let mut operation = json!({
        "operationId": operation_id(route),
        "tags": ["hub"],
        "summary": route.summary,
        "description": needs(route),
        "parameters": parameters,
        "responses": responses(route),
    });
    if let (BodyRule::Json, Some(operation)) = (route.access.body, operation.as_object_mut()) {
        operation.insert("requestBody".to_owned(), body(route.members));
    }
    operation
}

/// The body, which may be left out if nothing has to be in it.
fn body(members: &[Parameter]) -> Value {
    let (other, named): (Vec<_>, Vec<_>) = members.iter().partition(|member| member.name == OTHER_MEMBERS);
    let required: Vec<&str> = named.iter().filter(|member| member.is_required()).map(|member| member.name).collect();
    let members: Map<String, Value> = named
        .into_iter()
        .map(|member| {
            let mut described = schema(member.takes);
            described["description"] = member.about.into();
            (member.name.to_owned(), described)
        })
        .collect();
    let is_needed = !members.is_empty();
    let mut schema = json!({ "type": "object", "properties": members, "additionalProperties": false });
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    if let Some(other) = other.first() {
        schema["additionalProperties"] = json!({ "description": other.about });
    }
    json!({ "required": is_needed, "content": { "application/json": { "schema": schema } } })
}

/// The answer, and its refusals by status with their codes.
fn responses(route: &Route) -> Map<String, Value> {
    let json = json!({ "schema": { "type": "object" } });
    let mut content = json!({ "application/json": json });
    if route.streams {
        content["text/event-stream"] = json!({ "schema": { "type": "string" } });
    }
    let mut responses = Map::new();
    let done = match route.access.websocket {
        true => ("101", json!({ "description": "A WebSocket: each message is an item, as JSON." })),
        false => ("2XX", json!({ "description": "Done.", "content": content })),
    };
    responses.insert(done.0.to_owned(), done.1);
    responses.insert("default".to_owned(), json!({ "$ref": "#/components/responses/Error" }));
    let takes_body = route.access.body == BodyRule::Json;
    let invalid = if takes_body { "INVALID, CONTENT_TYPE_NOT_SUPPORTED" } else { "INVALID" };
    let mut refusals = vec![(400, invalid), (503, "UNAVAILABLE")];
    let is_limited = matches!(route.access.authorization, Authorization::Role(role) if role > CallerRole::None);
    refusals.extend(is_limited.then_some((403, "FORBIDDEN")));
    refusals.extend(route.path.contains('{').then_some((404, "NOT_FOUND")));
    refusals.extend(takes_body.then_some((413, "REQUEST_TOO_LARGE")));
    let of_sends = if route.sends { SENDING } else { &[] };
    let mut codes_of: BTreeMap<u16, Vec<&str>> = BTreeMap::new();
    for (status, codes) in refusals.into_iter().chain(route.refusals.iter().copied()).chain(of_sends.iter().copied()) {
        let known = codes_of.entry(status).or_default();
        for code in codes.split(", ") {
            if !known.contains(&code) {
                known.push(code);
            }
        }
    }
    for (status, codes) in codes_of {
        let properties = json!({ "code": { "type": "string", "enum": codes } });
        let schema = json!({ "type": "object", "required": ["code"], "properties": properties });
        let refusal = json!({
            "description": format!("Refused with the code {}.", codes.join(" or ")),
            "content": { "application/json": { "schema": schema } },
        });
        responses.insert(status.to_string(), refusal);
    }
    responses
}

/// What a header is described as; those that A2A's own paths have too are described there.
fn in_header(header: Header) -> Vec<Value> {
    let shared = |name: &str| json!({ "$ref": format!("#/components/parameters/{name}") });
    match header {
        Header::IdempotencyKey => vec![shared("IdempotencyKey")],
        Header::LastEventId => vec![json!({
            "name": "Last-Event-ID",
            "in": "header",
            "description": "The id of the last item that was read: the feed goes on after it. It comes before `from`.",
            "schema": { "type": "string" },
        })],
        Header::IfMatch => vec![json!({
            "name": "If-Match",
            "in": "header",
            "description": "The version that is replaced, in quotation marks.",
            "schema": { "type": "string", "pattern": "^\"?[0-9]+\"?$" },
        })],
        Header::Trace => ["CorrelationId", "ParentId", "Traceparent"].into_iter().map(shared).collect(),
    }
}

fn schema(takes: Takes) -> Value {
    match takes {
        Takes::Anything => json!({}),
        Takes::Text => json!({ "type": "string" }),
        Takes::Like(pattern) => json!({ "type": "string", "pattern": pattern }),
        Takes::Time => json!({ "type": "string", "format": "date-time" }),
        Takes::Words(words) => json!({ "type": "string", "enum": words }),
        Takes::Integer => json!({ "type": "integer" }),
        Takes::Flag => json!({ "type": "boolean" }),
        Takes::List => json!({ "type": "array" }),
        Takes::Object => json!({ "type": "object" }),
        Takes::Names => json!({ "type": ["string", "array"], "items": { "type": "string" } }),
        Takes::TextOrObject => json!({ "type": ["string", "object"] }),
        Takes::OneOrList => json!({ "type": ["string", "object", "array"] }),
    }
}

/// Who may call it, and what its answers look like.
fn needs(route: &Route) -> String {
    let role = match route.access.authorization {
        Authorization::Role(role) if role > CallerRole::None => {
            format!("On a server with keys this needs one with the role `{role}`.")
        }
        _ => "For any key, about what it may see.".to_owned(),
    };
    match route.style {
        Style::Own => role,
        Style::Envelope => format!(
            "{role} The answer is `{{\"success\": true, \"data\": …}}`, an error `{{\"success\": false, \"error\": …, \
             \"code\": …}}`."
        ),
        Style::Tool => format!("{role} An error is `{{\"error\": …, \"code\": …, \"retryable\": …}}`."),
    }
}

/// `GET /api/bus/history` is `getApiBusHistory`.
fn operation_id(route: &Route) -> String {
    let mut id = route.method.as_str().to_ascii_lowercase();
    for word in route.path.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty()) {
        let (first, rest) = word.split_at(1);
        id.push_str(&first.to_ascii_uppercase());
        id.push_str(rest);
    }
    id
}
