//! Puts the document together from the JSON files beside this one.
//!
//! Each file is a part of the document and is merged into those before it. `mounted` is ours: what stands there is served
//! at every A2A address, so it is written once and goes below each of them.
//!
//! Keys are described only where the server takes them. A client generator asks its user for every scheme that is
//! listed, and an open server has no key to give; the cards keep to the same rule.

use serde_json::{Map, Value, json};

use crate::Options;

const PARTS: [&str; 10] = [
    include_str!("document.json"),
    include_str!("rest.json"),
    include_str!("rpc.json"),
    include_str!("cards.json"),
    include_str!("operations.json"),
    include_str!("schemas/messages.json"),
    include_str!("schemas/tasks.json"),
    include_str!("schemas/errors.json"),
    include_str!("schemas/rpc.json"),
    include_str!("schemas/card.json"),
];

/// Features that the options do not tell.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Features {
    pub(super) webhooks: bool,
    /// There are webhooks to look after.
    pub(super) outbox: bool,
    pub(super) callbacks: bool,
}

/// The document of a server with these options and features.
pub(super) fn document(options: &Options, features: Features) -> Result<Value, serde_json::Error> {
    let optional = [
        // The security schemes, and the extended card.
        (!options.open, include_str!("keys.json")),
        (options.metrics.is_some(), include_str!("metrics.json")),
        (features.webhooks, include_str!("webhooks.json")),
        (features.outbox, include_str!("operators.json")),
        (features.callbacks, include_str!("callbacks.json")),
    ];
    let optional = optional.into_iter().filter_map(|(is_present, part)| is_present.then_some(part));
    let mut document = json!({});
    for part in PARTS.into_iter().chain(optional) {
        merge(&mut document, serde_json::from_str(part)?);
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
