//! `/openapi.json`: it is a document, it is served as the cards are, and what it says is what the server does.

mod answers;
mod schemas;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use switchboard_a2a::{ErrorKind, TaskId};
use switchboard_server::RenderMetrics;

use self::schemas::{Schemas, described};
use super::client::Ask;
use super::dialects::TestDialect;
use super::webhooks::receiver::Receiver;
use super::world::{Plan, World};

const PATH: &str = "/openapi.json";
/// May call every agent, and look after the server.
const KEY: &str = "admin";

/// Every method, path and operation.
fn operations(document: &Value) -> Vec<(String, String, Value)> {
    let paths = document["paths"].as_object().unwrap();
    let operations = paths.iter().flat_map(|(path, item)| {
        let methods = item.as_object().unwrap().iter();
        methods.map(|(method, operation)| (method.to_uppercase(), path.clone(), operation.clone()))
    });
    operations.collect()
}

/// Every `$ref`, and everything a discriminator points at.
fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(target) if name == "$ref" => found.push(target.clone()),
                    Value::Object(targets) if name == "mapping" => {
                        found.extend(targets.values().map(|target| target.as_str().unwrap().to_owned()));
                    }
                    other => references(other, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

#[tokio::test]
async fn every_reference_leads_somewhere_and_every_name_is_used_once() {
    let mut switched_off = Plan::default().and_webhooks();
    switched_off.webhooks.as_mut().unwrap().0.enabled = false;
    let with_webhooks = [Plan::default().and_webhooks(), Plan::with_keys().0.and_webhooks(), switched_off];
    for plan in [Plan::default(), Plan::with_keys().0].into_iter().chain(with_webhooks) {
        let document = described(&plan.start().await).await;
        assert_eq!(document["openapi"], "3.1.0");
        assert_eq!(document["servers"][0]["url"], "http://agents.test");
        let mut found = Vec::new();
        references(&document, &mut found);
        let found: BTreeSet<String> = found.into_iter().collect();
        assert!(found.len() > 40, "{found:?}");
        for target in &found {
            let pointer = target.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{target} leads nowhere");
        }
        for (kind, entries) in document["components"].as_object().unwrap() {
            for name in entries.as_object().unwrap().keys().filter(|_| kind != "securitySchemes") {
                assert!(found.contains(&format!("#/components/{kind}/{name}")), "no operation uses {kind} {name}");
            }
        }
        let mut names = BTreeSet::new();
        let tags: Vec<&Value> = document["tags"].as_array().unwrap().iter().map(|tag| &tag["name"]).collect();
        for (method, path, operation) in operations(&document) {
            let name = operation["operationId"].as_str().unwrap().to_owned();
            assert!(names.insert(name.clone()), "{name} is there twice");
            assert!(tags.contains(&&operation["tags"][0]), "{name}");
            assert!(operation["summary"].is_string() && operation["responses"].get("200").is_some(), "{name}");
            let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
            let resolved = parameters.iter().map(|parameter| match parameter["$ref"].as_str() {
                Some(target) => document.pointer(&target[1..]).unwrap(),
                None => parameter,
            });
            let in_path: BTreeSet<String> = resolved
                .filter(|parameter| parameter["in"] == "path")
                .map(|parameter| parameter["name"].as_str().unwrap().to_owned())
                .collect();
            let in_template: BTreeSet<String> =
                path.split('{').skip(1).map(|rest| rest.split('}').next().unwrap().to_owned()).collect();
            assert_eq!(in_path, in_template, "{method} {path}");
        }
    }
}

/// Every route of REST below an address, and the JSON-RPC method of the same operation.
const REST: [(&str, &str, &str); 12] = [
    ("POST", "/message:send", "SendMessage"),
    ("POST", "/message:stream", "SendStreamingMessage"),
    ("GET", "/tasks", "ListTasks"),
    ("GET", "/tasks/{id}", "GetTask"),
    ("POST", "/tasks/{id}:cancel", "CancelTask"),
    ("GET", "/tasks/{id}:subscribe", "SubscribeToTask"),
    ("POST", "/tasks/{id}:subscribe", "SubscribeToTask"),
    ("GET", "/tasks/{id}/pushNotificationConfigs", "ListTaskPushNotificationConfigs"),
    ("POST", "/tasks/{id}/pushNotificationConfigs", "CreateTaskPushNotificationConfig"),
    ("GET", "/tasks/{id}/pushNotificationConfigs/{configId}", "GetTaskPushNotificationConfig"),
    ("DELETE", "/tasks/{id}/pushNotificationConfigs/{configId}", "DeleteTaskPushNotificationConfig"),
    ("GET", "/extendedAgentCard", "GetExtendedAgentCard"),
];

#[tokio::test]
async fn what_works_here_is_described_and_nothing_else() {
    for (keyed, webhooks) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut plan = if keyed { Plan::with_keys().0 } else { Plan::default() };
        plan.options.strict_version = keyed;
        let plan = if webhooks { plan.and_webhooks() } else { plan };
        let document = described(&plan.start().await).await;
        let works = |method: &str| {
            (webhooks || !method.contains("PushNotification")) && (keyed || method != "GetExtendedAgentCard")
        };
        let offered: BTreeSet<(String, String)> =
            operations(&document).into_iter().map(|(method, path, _)| (method, path)).collect();
        for (method, below, operation) in REST {
            for mount in ["/a2a", "/a2a/{agent}"] {
                let path = format!("{mount}{below}");
                assert_eq!(offered.contains(&(method.to_owned(), path.clone())), works(operation), "{method} {path}");
            }
        }
        let request = &document["components"]["schemas"]["JsonRpcRequest"];
        let mapping = request["discriminator"]["mapping"].as_object().unwrap();
        let listed: BTreeSet<&str> = mapping.keys().map(String::as_str).collect();
        let expected: BTreeSet<&str> = REST.into_iter().map(|route| route.2).filter(|method| works(method)).collect();
        assert_eq!(listed, expected);
        assert_eq!(request["oneOf"].as_array().unwrap().len(), expected.len());
        for (method, schema) in mapping {
            let schema = document.pointer(schema.as_str().unwrap().trim_start_matches('#')).unwrap();
            assert_eq!(schema["properties"]["method"]["const"], method.as_str());
        }
        for path in ["/api/webhooks", "/api/a2a/callback/{task}"] {
            assert_eq!(document["paths"].get(path).is_some(), webhooks, "{path}");
        }
        let inline = "/components/schemas/SendMessageConfiguration/properties/taskPushNotificationConfig";
        assert_eq!(document.pointer(inline).is_some(), webhooks);
        assert!(document["paths"].get("/metrics").is_none(), "this server has none");
        assert_eq!(document.get("security"), keyed.then(|| json!([{"bearer": []}, {"apiKey": []}])).as_ref());
        assert_eq!(document["components"].get("securitySchemes").is_some(), keyed);
        assert_eq!(document["paths"]["/a2a/tasks"]["get"]["responses"].get("401").is_some(), keyed);
        assert!(document["paths"]["/healthz"]["get"]["responses"].get("401").is_none());
        assert_eq!(document["components"]["parameters"]["Version"]["required"], keyed, "as strict_version");
        let reasons = &document["components"]["schemas"]["ErrorInfo"]["properties"]["reason"]["enum"];
        assert_eq!(*reasons, json!(ErrorKind::ALL.map(|kind| kind.entry().reason)));
    }
}

/// A path with its parameters filled in, for a task of its own with a webhook of its own.
async fn filled(world: &World, receiver: &Receiver, path: &str) -> String {
    let ask = |path: &str, body: &Value| world.post(path, body).version("1.0").key(KEY).reply();
    let params = json!({"message": TestDialect::RestV1.message("ask")});
    let task = TestDialect::RestV1.sent_task(&ask("/a2a/worker/message:send", &params).await)["id"].clone();
    let task = task.as_str().unwrap();
    let path = path.replace("{agent}", "worker").replace("{id}", task);
    if path.contains("pushNotificationConfigs") || path.contains("{number}") {
        let config = json!({"id": "p1", "url": receiver.url("/")});
        assert_eq!(ask(&format!("/a2a/tasks/{task}/pushNotificationConfigs"), &config).await.status, 200);
    }
    let numbered = async |list: &str, member: &str, number: &str| loop {
        let page = world.get(&format!("/api/webhooks{list}?pageSize=100")).key(KEY).reply().await.json();
        let found = page[member].as_array().unwrap().iter().find(|entry| entry["taskId"] == task).cloned();
        match found {
            Some(entry) => break entry[number].to_string(),
            // The attempt is not over yet.
            None => tokio::task::yield_now().await,
        }
    };
    if path.contains("/deliveries/{number}") {
        return path.replace("{number}", &numbered("/dead-letters", "deadLetters", "delivery").await);
    }
    if path.contains("{number}") {
        let number = numbered("", "webhooks", "webhook").await;
        if path.ends_with(":resume") {
            assert_eq!(ask(&format!("/api/webhooks/{number}:pause"), &json!({})).await.status, 200);
        }
        return path.replace("{number}", &number);
    }
    path.replace("{configId}", "p1").replace("{task}", task)
}

#[tokio::test]
async fn every_operation_answers() {
    let (plan, _) = Plan::with_keys();
    let world = plan.and_webhooks().start().await;
    let receiver = Receiver::start().await;
    receiver.answer_with(404);
    let document = described(&world).await;
    let schemas = Schemas::strict(&document);
    let mut checked = 0;
    for (method, template, operation) in operations(&document) {
        let path = filled(&world, &receiver, &template).await;
        let method = ["GET", "POST", "DELETE"].into_iter().find(|known| *known == method).unwrap();
        let mut ask = Ask::new(world.address, method, &path).version("1.0");
        if operation.get("security").is_none() {
            let refused = ask.clone().reply().await;
            assert_eq!(refused.status, 401, "{method} {path} is said to need a key");
            ask = ask.key(KEY);
        }
        if let Some(task) = path.strip_prefix("/api/a2a/callback/") {
            let token = world.callbacks.open(&TaskId::from(task)).await.unwrap();
            ask = ask.header("x-a2a-notification-token", &token);
        }
        let body = match path.rsplit('/').next().unwrap() {
            "message:send" | "message:stream" => json!({"message": TestDialect::RestV1.message("hello")}),
            "a2a" | "worker" => json!({"jsonrpc": "2.0", "id": 1, "method": "ListTasks"}),
            "pushNotificationConfigs" if method == "POST" => json!({"url": receiver.url("/")}),
            _ if template.contains("/callback/") => {
                json!({"task": {"id": "r", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}})
            }
            _ => Value::Null,
        };
        let ask = if body.is_null() { ask } else { ask.body(&body) };
        let streams = operation["responses"]["200"]["$ref"] == "#/components/responses/Stream";
        if streams {
            let first = ask.events().await.next().await.unwrap();
            assert!(first.data.get("task").is_some(), "{method} {path}: {first:?}");
            continue;
        }
        let reply = ask.reply().await;
        assert_eq!(reply.status, 200, "{method} {path}: {}", String::from_utf8_lossy(&reply.body));
        let mut answer = &operation["responses"]["200"];
        if let Some(target) = answer["$ref"].as_str() {
            answer = document.pointer(&target[1..]).unwrap();
        }
        let media_type = reply.header("content-type").split(';').next().unwrap();
        assert!(answer["content"].get(media_type).is_some(), "{method} {path}: {media_type}");
        // The cards have a test of their own: without a version they are for readers of both.
        let schema = answer["content"][media_type]["schema"]["$ref"].as_str().filter(|name| !name.ends_with("Card"));
        if let Some(schema) = schema {
            schemas.check(schema.rsplit('/').next().unwrap(), &reply.json());
            checked += 1;
        }
    }
    assert!(checked > 20, "{checked}");
}

#[tokio::test]
async fn it_is_served_as_the_cards_are() {
    let (mut plan, _) = Plan::with_keys();
    plan.options.allowed_origins = vec!["https://page.test".to_owned()];
    let world = plan.start().await;
    let reply = world.get(PATH).header("origin", "https://page.test").reply().await;
    assert_eq!((reply.status, reply.header("content-type")), (200, "application/json"));
    assert_eq!(reply.header("cache-control"), "public, max-age=60");
    assert_eq!(reply.header("access-control-allow-origin"), "https://page.test");
    let etag = reply.header("etag").to_owned();
    let again = world.get(PATH).header("if-none-match", &etag).reply().await;
    assert_eq!((again.status, again.body.is_empty(), again.header("etag")), (304, true, etag.as_str()));
    let head = Ask::new(world.address, "HEAD", PATH).reply().await;
    assert_eq!((head.status, head.body.is_empty()), (200, true));
    assert_eq!(head.header("content-length"), reply.body.len().to_string());
    let post = world.post(PATH, &json!({})).reply().await;
    assert_eq!((post.status, post.header("allow")), (405, "GET, HEAD"));
    let open = World::start().await;
    assert_ne!(open.get(PATH).reply().await.header("etag"), etag, "an open server is another server");
}

#[tokio::test]
async fn it_is_counted_and_tells_of_metrics_where_there_are_any() {
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    // Tests run on one thread, the server's tasks too.
    let _counts = metrics::set_default_local_recorder(&recorder);
    let mut plan = Plan::default();
    let handle = recorder.handle();
    plan.options.metrics = Some(RenderMetrics(Arc::new(move || handle.render())));
    let world = plan.start().await;
    let document = described(&world).await;
    let reply = world.get("/metrics").reply().await;
    assert_eq!(reply.status, 200);
    let described = &document["paths"]["/metrics"]["get"]["responses"]["200"]["content"];
    assert!(described.get(reply.header("content-type").split(';').next().unwrap()).is_some(), "{described}");
    let text = String::from_utf8_lossy(&reply.body);
    let counted = "a2a_requests_total{method=\"openapi\",agent=\"\",outcome=\"ok\"} 1";
    assert!(text.contains(counted), "{text}");
}
