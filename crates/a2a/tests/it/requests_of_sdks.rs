//! What we send is what the real SDK clients send: each of their requests, read and written again, is the same JSON.

use serde_json::{Value, json};
use switchboard_a2a::{Dialect, Operation, PushRequest, Request, encode_params, encode_rest, jsonrpc};

use crate::capture::{self, Exchange};
use crate::json_eq::assert_same;

/// Where the SDKs differ from each other or from their own types, the one form we have chosen.
fn evened_out(name: &str, dialect: Dialect, operation: Operation, mut theirs: Value) -> Value {
    let is_send = matches!(operation, Operation::SendMessage | Operation::SendStreamingMessage);
    if is_send && dialect == Dialect::V03Rest {
        // Absent means false there, and false is what we say.
        let configuration = theirs.as_object_mut().unwrap().entry("configuration").or_insert_with(|| json!({}));
        configuration.as_object_mut().unwrap().entry("blocking").or_insert(json!(false));
    } else if is_send && dialect == Dialect::V03Rpc {
        let configuration = theirs.as_object_mut().unwrap().entry("configuration").or_insert_with(|| json!({}));
        let configuration = configuration.as_object_mut().unwrap();
        configuration.entry("blocking").or_insert(json!(true));
        // Read as no limit, and so not written again.
        configuration.retain(|key, value| key != "historyLength" || *value != 0);
    }
    if name.starts_with("python") && name.contains("compat03-rest") {
        theirs = camel_case(theirs);
    }
    theirs
}

/// This client writes the names of the protocol buffers.
fn camel_case(value: Value) -> Value {
    let Value::Object(members) = value else {
        return match value {
            Value::Array(items) => items.into_iter().map(camel_case).collect(),
            other => other,
        };
    };
    let renamed = members.into_iter().map(|(key, value)| {
        let mut words = key.split('_');
        let mut name = words.next().unwrap_or_default().to_owned();
        for word in words {
            name.push_str(&word[..1].to_uppercase());
            name.push_str(&word[1..]);
        }
        (if name == "request" { "message".to_owned() } else { name }, camel_case(value))
    });
    renamed.collect()
}

fn compare_rest(name: &str, exchange: &Exchange, dialect: Dialect, operation: Operation, request: &Request) {
    let call = encode_rest(dialect, operation, request).unwrap_or_else(|error| panic!("{name}: {error}"));
    let (method, target) = exchange.request_line.split_once(' ').unwrap();
    let target = target.strip_prefix("/a2a/rest").unwrap();
    let sorted = |target: &str| {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut pairs: Vec<String> = query.split('&').map(str::to_owned).collect();
        pairs.sort();
        (path.to_owned(), pairs)
    };
    assert_eq!(sorted(&call.target()), sorted(target), "{name}");
    let mut forms = vec![(call.method, call.body)];
    forms.extend(call.fallback.map(|other| (other.method, other.body)));
    let form = match exchange.request_body.is_empty() || exchange.request_body == b"null" {
        // A body that only repeats the path may be left out.
        true => forms.into_iter().find(|(of, _)| *of == method),
        false => {
            let theirs: Value = serde_json::from_slice(&exchange.request_body).unwrap();
            let theirs = evened_out(name, dialect, operation, theirs);
            let has = |member: &str| theirs.get(member).is_some();
            let is_named = operation == Operation::CreatePushConfig && has("name");
            let form = forms.into_iter().filter(|(of, _)| *of == method).nth(usize::from(is_named));
            let (_, body) = form.clone().unwrap_or_else(|| panic!("{name}: no form"));
            assert_same(name, &body.unwrap(), &theirs);
            form
        }
    };
    assert!(form.is_some(), "{name}: {method} is none of our forms");
}

#[test]
fn every_sdk_request_is_written_as_the_sdk_writes_it() {
    let (mut on_rpc, mut on_rest) = (0, 0);
    for capture in capture::all("client-") {
        let name = &capture.name;
        for exchange in capture.exchanges.iter().filter(|exchange| !exchange.is_card()) {
            let (dialect, operation, request) = exchange.decode();
            let request = request.unwrap();
            if !exchange.is_rpc() {
                compare_rest(name, exchange, dialect, operation, &request);
                on_rest += 1;
                continue;
            }
            let params = encode_params(dialect, operation, &request).unwrap_or_else(|error| panic!("{name}: {error}"));
            let envelope = jsonrpc::parse(&exchange.request_body).unwrap();
            // One client sends empty parameters with a method that has none.
            let theirs = envelope.params.map(|params| serde_json::from_str(params.get()).unwrap());
            match theirs.filter(|theirs| !(params.is_empty() && *theirs == json!({}))) {
                None => assert_eq!(params, b"", "{name}"),
                Some(theirs) => assert_same(name, &params, &evened_out(name, dialect, operation, theirs)),
            }
            let written = jsonrpc::write_request(&envelope.id, operation.method(dialect.version()), &params);
            let read = jsonrpc::parse(&written).unwrap();
            assert_eq!((&read.id, &read.method), (&envelope.id, &envelope.method), "{name}");
            on_rpc += 1;
        }
    }
    assert!(on_rpc > 150 && on_rest > 150, "{on_rpc} on JSON-RPC, {on_rest} on REST");
}

/// One peer answers any key it does not know with an error, so the keys are counted.
#[test]
fn v03_rest_bodies_hold_only_what_its_schema_has() {
    let known = [
        "message",
        "configuration",
        "metadata",
        "messageId",
        "contextId",
        "taskId",
        "role",
        "content",
        "extensions",
        "blocking",
        "acceptedOutputModes",
        "historyLength",
        "pushNotification",
        "id",
        "url",
        "token",
        "authentication",
        "schemes",
        "credentials",
        "parent",
        "configId",
        "config",
        "name",
        "pushNotificationConfig",
        "text",
        "file",
        "fileWithBytes",
        "fileWithUri",
        "mimeType",
        "data",
    ];
    fn keys(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                for (key, value) in members {
                    found.push(key.clone());
                    if !matches!(key.as_str(), "metadata" | "data") {
                        keys(value, found);
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| keys(item, found)),
            _ => {}
        }
    }
    let mut bodies = 0;
    for capture in capture::all("client-") {
        for exchange in capture.exchanges.iter().filter(|exchange| !exchange.is_card()) {
            let (_, operation, request) = exchange.decode();
            let mut request = request.unwrap();
            request.remove_unsupported(Dialect::V03Rest);
            if let Request::Push(PushRequest::Create(config)) = &mut request {
                config.id.get_or_insert_with(|| "c".to_owned());
            }
            let call = encode_rest(Dialect::V03Rest, operation, &request).unwrap();
            let Some(body) = call.body else { continue };
            let mut found = Vec::new();
            keys(&serde_json::from_slice(&body).unwrap(), &mut found);
            assert!(found.iter().all(|key| known.contains(&key.as_str())), "{}: {found:?}", capture.name);
            bodies += 1;
        }
    }
    assert!(bodies > 150, "only {bodies} bodies");
}
