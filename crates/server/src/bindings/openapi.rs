//! `/openapi.json`: what this server serves over HTTP, as an OpenAPI document. Only what works here is in it, as on the
//! cards.
//!
//! Version 3.1 has no word for the items of a stream. An event stream is described by the object of one event, which is
//! how 3.2 does it under `itemSchema`, and the JSON inside `data` by `contentSchema`.
//!
//! Each JSON file is a part of the document and is merged into those before it. `mounted` is ours: what stands there is
//! served at every A2A address, so it is written once and goes below each of them.
//!
//! Keys are described only where the server takes them. A client generator asks its user for every scheme that is
//! listed, and an open server has no key to give; the cards keep to the same rule.

use std::sync::OnceLock;

use http::Response;
use serde_json::{Map, Value, json};
use switchboard_a2a::{Dialect, Error, ErrorKind};

use super::cached_document::CachedDocument;
use super::response::{self, Binding};
use crate::{Body, RequestContext, RequestLabels, State};

const PARTS: [&str; 10] = [
    include_str!("openapi/document.json"),
    include_str!("openapi/rest.json"),
    include_str!("openapi/rpc.json"),
    include_str!("openapi/cards.json"),
    include_str!("openapi/operations.json"),
    include_str!("openapi/schemas/messages.json"),
    include_str!("openapi/schemas/tasks.json"),
    include_str!("openapi/schemas/errors.json"),
    include_str!("openapi/schemas/rpc.json"),
    include_str!("openapi/schemas/card.json"),
];

/// The document, assembled on the first request: start-up need not wait for it.
#[derive(Default)]
pub(super) struct Description(OnceLock<Option<CachedDocument>>);

pub(super) fn answer(state: &State, context: &RequestContext) -> Response<Body> {
    let written = state.documents.openapi.0.get_or_init(|| match document(state) {
        Ok(document) => Some(CachedDocument::new(document.to_string().into_bytes())),
        Err(error) => {
            tracing::error!(%error, "the parts of /openapi.json do not fit together, this is a bug");
            None
        }
    });
    let (mut response, outcome) = match written {
        Some(document) => (document.response(state, &context.headers), "ok"),
        None => {
            let failed = Error::new(ErrorKind::Internal);
            (Binding::Rest.failure(Dialect::V1, &failed), response::outcome(failed.kind))
        }
    };
    response.body_mut().label(RequestLabels { method: "openapi", agent: None, outcome });
    response
}

fn document(state: &State) -> Result<Value, serde_json::Error> {
    let options = &state.options;
    let optional = [
        // The security schemes, and the extended card.
        (!options.open, include_str!("openapi/keys.json")),
        (options.metrics.is_some(), include_str!("openapi/metrics.json")),
        (state.webhooks().is_some(), include_str!("openapi/webhooks.json")),
        (state.outbox.is_some(), include_str!("openapi/operators.json")),
        (state.callbacks.is_some(), include_str!("openapi/callbacks.json")),
    ];
    let optional = optional.into_iter().filter_map(|(is_present, part)| is_present.then_some(part));
    let mut document = json!({});
    for part in PARTS.into_iter().chain(optional) {
        merge(&mut document, serde_json::from_str(part)?);
    }
    for part in state.router.descriptions() {
        merge(&mut document, part);
    }
    let base = options.public_base_url.trim_end_matches('/');
    merge(
        &mut document,
        json!({
            "info": { "version": env!("CARGO_PKG_VERSION") },
            "servers": [{ "url": base }],
            "components": { "parameters": { "Version": { "required": options.strict_version } } },
        }),
    );
    mount(&mut document);
    if !options.open {
        expect_keys(&mut document);
    }
    Ok(document)
}

/// Objects are joined member by member and lists one behind the other; anything else replaces what was there.
fn merge(below: &mut Value, above: Value) {
    match (below, above) {
        (Value::Object(below), Value::Object(above)) => {
            for (name, value) in above {
                merge(below.entry(name).or_insert(Value::Null), value);
            }
        }
        (Value::Array(below), Value::Array(above)) => below.extend(above),
        (below, above) => *below = above,
    }
}

/// Puts what is mounted below both kinds of address. Its operations need a name of their own at each.
fn mount(document: &mut Value) {
    let Some(members) = document.as_object_mut() else { return };
    let Some(Value::Object(mounted)) = members.remove("mounted") else { return };
    let Some(paths) = members.get_mut("paths").and_then(Value::as_object_mut) else { return };
    for (below, item) in mounted {
        let mut of_agent = item.clone();
        for operation in of_agent.as_object_mut().into_iter().flat_map(Map::values_mut) {
            if let Some(Value::String(name)) = operation.get_mut("operationId") {
                name.push_str("OfAgent");
            }
            if let Some(Value::Array(parameters)) = operation.get_mut("parameters") {
                parameters.insert(0, json!({ "$ref": "#/components/parameters/Agent" }));
            }
        }
        paths.insert(format!("/a2a{below}"), item);
        paths.insert(format!("/a2a/{{agent}}{below}"), of_agent);
    }
}

/// Every operation that needs a key may find that it is missing.
fn expect_keys(document: &mut Value) {
    let paths = document.get_mut("paths").and_then(Value::as_object_mut);
    for operation in
        paths.into_iter().flat_map(Map::values_mut).filter_map(Value::as_object_mut).flat_map(Map::values_mut)
    {
        if operation.get("security").is_some() {
            continue;
        }
        if let Some(Value::Object(responses)) = operation.get_mut("responses") {
            responses.insert("401".to_owned(), json!({ "$ref": "#/components/responses/Unauthorized" }));
        }
    }
}
