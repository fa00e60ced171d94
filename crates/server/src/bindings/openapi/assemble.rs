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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use http::Method;
    use switchboard_a2a::{ErrorKind, Operation, Version};

    use super::*;
    use crate::bindings::routes::{self, RouteMatch};
    use crate::{api, health};

    const ALL: Features = Features { webhooks: true, outbox: true, callbacks: true };
    const NONE: Features = Features { webhooks: false, outbox: false, callbacks: false };

    fn all() -> Options {
        Options { open: false, metrics: Some(Arc::new(String::new)), ..Options::default() }
    }

    fn offered(document: &Value) -> BTreeSet<(String, String)> {
        let paths = document["paths"].as_object().unwrap();
        let pairs = paths.iter().flat_map(|(path, item)| {
            item.as_object().unwrap().keys().map(|method| (method.to_uppercase(), path.clone()))
        });
        pairs.collect()
    }

    fn is_about_webhooks(operation: Operation) -> bool {
        operation.method(Version::V1).contains("PushNotification")
    }

    #[test]
    fn every_address_that_is_described_is_routed() {
        let offered = offered(&document(&all(), ALL).unwrap());
        assert!(offered.len() > 40, "{offered:?}");
        for (method, path) in offered {
            let path = path.replace("{agent}", "echo").replace("{id}", "t1").replace("{configId}", "p1");
            let path = path.replace("{number}", "1").replace("{task}", "t1");
            let method: Method = method.parse().unwrap();
            let routed = matches!(routes::find(&path, &method), RouteMatch::Route(_));
            let routed = routed || api::find(&path).is_some_and(|(offered, _)| offered == method);
            assert!(routed || health::find(&path).is_some() && method == Method::GET, "{method} {path}");
        }
    }

    #[test]
    fn every_route_of_rest_is_described_and_those_of_webhooks_where_there_are_any() {
        for features in [ALL, NONE] {
            let offered = offered(&document(&all(), features).unwrap());
            let mut walked = 0;
            for rest_path in &routes::REST {
                for (method, operation) in rest_path.operations {
                    for mount in ["/a2a", "/a2a/{agent}"] {
                        let described = offered.contains(&(method.to_string(), format!("{mount}{}", rest_path.path)));
                        let works = features.webhooks || !is_about_webhooks(*operation);
                        assert_eq!(described, works, "{method} {mount}{}", rest_path.path);
                        walked += 1;
                    }
                }
            }
            assert_eq!(walked, 24);
        }
    }

    #[test]
    fn json_rpc_has_the_methods_of_rest() {
        for (open, features) in [(true, NONE), (false, NONE), (true, ALL), (false, ALL)] {
            let document = document(&Options { open, ..Options::default() }, features).unwrap();
            let request = &document["components"]["schemas"]["JsonRpcRequest"];
            let mapping = request["discriminator"]["mapping"].as_object().unwrap();
            let listed: BTreeSet<&str> = mapping.keys().map(String::as_str).collect();
            let works = |operation: Operation| !open || operation != Operation::GetExtendedCard;
            let operations =
                routes::REST.iter().flat_map(|rest_path| rest_path.operations).map(|(_, operation)| *operation);
            let operations = operations.filter(|operation| features.webhooks || !is_about_webhooks(*operation));
            let operations = operations.filter(|operation| works(*operation));
            let expected: BTreeSet<&str> = operations.map(|operation| operation.method(Version::V1)).collect();
            assert_eq!(listed, expected);
            assert_eq!(request["oneOf"].as_array().unwrap().len(), expected.len());
            for (method, schema) in mapping {
                let schema = document.pointer(schema.as_str().unwrap().trim_start_matches('#')).unwrap();
                assert_eq!(schema["properties"]["method"]["const"], method.as_str());
            }
        }
    }

    #[test]
    fn errors_have_the_reasons_there_are() {
        let document = document(&all(), ALL).unwrap();
        let reasons = document["components"]["schemas"]["ErrorInfo"]["properties"]["reason"]["enum"].clone();
        let known: Vec<&str> = ErrorKind::ALL.into_iter().map(|kind| kind.entry().reason).collect();
        assert_eq!(reasons, json!(known));
    }

    #[test]
    fn what_does_not_work_here_is_left_out() {
        let open = document(&Options::default(), NONE).unwrap();
        let keyed = document(&all(), ALL).unwrap();
        for (path, only_with) in [
            ("/a2a/extendedAgentCard", true),
            ("/metrics", true),
            ("/a2a/tasks/{id}/pushNotificationConfigs", true),
            ("/api/webhooks", true),
            ("/api/a2a/callback/{task}", true),
            ("/a2a/message:send", false),
        ] {
            assert_eq!(open["paths"].get(path).is_none(), only_with, "{path}");
            assert!(keyed["paths"].get(path).is_some(), "{path}");
        }
        assert_eq!((open.get("security"), open["components"].get("securitySchemes")), (None, None));
        assert_eq!(keyed["security"], json!([{ "bearer": [] }, { "apiKey": [] }]));
        assert!(keyed["paths"]["/a2a/tasks"]["get"]["responses"].get("401").is_some());
        assert!(keyed["paths"]["/healthz"]["get"]["responses"].get("401").is_none());
        let required = |document: &Value| document["components"]["parameters"]["Version"]["required"].clone();
        assert_eq!(required(&open), false);
        let strict = Options { strict_version: true, ..Options::default() };
        assert_eq!(required(&document(&strict, NONE).unwrap()), true);
        let inline = "/components/schemas/SendMessageConfiguration/properties/taskPushNotificationConfig";
        assert!(open.pointer(inline).is_none() && keyed.pointer(inline).is_some());
    }
}
