//! What all endpoints of the hub have in common, from the document that describes them: a new endpoint is held to it
//! without a line here.

mod bad_input;
mod endpoint;

use serde_json::{Value, json};

use self::bad_input::{hides_foreign_names, needs_members, refuses_members, refuses_names, refuses_parameters};
use self::endpoint::{Endpoint, Names, ROLES, endpoints};
use crate::running::{Running, folder};

/// A refusal has a code that is described for its status.
fn assert_described(endpoint: &Endpoint<'_>, asked: &str, (status, refusal): &(u16, Value)) {
    let described = &endpoint.responses[status.to_string()]["content"]["application/json"]["schema"];
    let codes = described["properties"]["code"]["enum"].as_array().map(Vec::as_slice).unwrap_or_default();
    assert!(codes.contains(&refusal["code"]), "{asked} answers {status} {refusal}, described is {codes:?}");
}

/// A refusal has a sentence, and a code for programs, in the form of its path.
fn assert_refused(endpoint: &Endpoint<'_>, refusal: &Value, code: &str) {
    let is_flat = endpoint.is_enveloped() || endpoint.is_tool();
    let (path, message) = (endpoint.path, if is_flat { "/error" } else { "/error/message" });
    assert_eq!(refusal["code"], code, "{path}: {refusal}");
    assert_eq!(refusal.get("retryable"), endpoint.is_tool().then_some(&json!(false)), "{path}: {refusal}");
    assert_eq!(refusal.get("success"), endpoint.is_enveloped().then_some(&json!(false)), "{path}: {refusal}");
    assert!(refusal.pointer(message).is_some_and(Value::is_string), "{path}: {refusal}");
}

/// All that is stored: the journal with the events of tasks, and the agents. Refusals of routing may be counted.
async fn stored(running: &Running) -> (Vec<Value>, Value) {
    let (mut items, mut from) = (Vec::new(), "oldest".to_owned());
    loop {
        let (_, page) = running.get(&format!("/api/feed?pageSize=100&from={from}"), "ann").await;
        let found = page["items"].as_array().unwrap();
        if found.is_empty() {
            break;
        }
        items.extend(found.iter().filter(|item| !item["topic"].as_str().unwrap().starts_with("dispatch.")).cloned());
        from = page["next"].as_str().unwrap().to_owned();
    }
    (items, running.get("/api/agents", "ann").await.1)
}

#[tokio::test]
async fn every_endpoint_needs_a_key_and_refuses_bad_input_without_a_trace() {
    let (data, files) = (folder(), folder());
    let agents = "agents: [{ name: echo, builtin: echo }, { name: other, builtin: echo }]\n";
    std::fs::write(files.path().join("agents.yaml"), agents).unwrap();
    let running = Running::of_workspace(data.path(), files.path(), |_| {}).await;
    let task = running.send("ann", "other", "hello").await;
    let (task, context) = (task["id"].as_str().unwrap(), task["contextId"].as_str().unwrap());
    let there = Names { agent: "other", task, context };
    let unknown = Names { agent: "nothing", task: "nothing", context: "nothing" };
    let before = stored(&running).await;
    let (_, document) = running.get("/openapi.json", "").await;
    let endpoints = endpoints(&document);
    assert_eq!(endpoints.len(), switchboard_hub::route_table().len(), "every endpoint is described");
    for endpoint in &endpoints {
        let (head, body) = (endpoint.head(&there), endpoint.body());
        let (_, key, limited) = ROLES[endpoint.role];
        for stranger in ["", "nobody"] {
            let (status, refusal) = running.ask(&head, stranger, &[], &body).await;
            assert_eq!(status, 401, "{head}: {refusal}");
            assert_refused(endpoint, &refusal, "UNAUTHENTICATED");
        }
        for (_, lower, _) in &ROLES[..endpoint.role] {
            let answered = running.ask(&head, lower, &[], &body).await;
            assert_eq!(answered.0, 403, "{head} for {lower}: {answered:?}");
            assert_refused(endpoint, &answered.1, "FORBIDDEN");
            assert_described(endpoint, &head, &answered);
        }
        refuses_parameters(&running, endpoint, &head, key, &body).await;
        if endpoint.members.is_some() {
            refuses_members(&running, endpoint, &head, key).await;
            if !endpoint.members.is_some_and(serde_json::Map::is_empty) {
                needs_members(&running, endpoint, &head, key).await;
            }
            let answered = running.ask(&head, key, &["Content-Encoding: gzip"], "{}").await;
            assert_eq!(answered.0, 400, "{head} with a body that is compressed: {answered:?}");
            assert_refused(endpoint, &answered.1, "CONTENT_TYPE_NOT_SUPPORTED");
            assert_described(endpoint, &head, &answered);
        }
        // A traceparent that cannot be read is ignored, as its specification says.
        for header in endpoint.headers.iter().filter(|header| **header != "traceparent") {
            let wrong = format!("{header}: {}", "x".repeat(300));
            let (status, refusal) = running.ask(&head, key, &["Accept: application/json", &wrong], &body).await;
            assert_eq!((status, &refusal["code"]), (400, &json!("INVALID")), "{head} with {header}: {refusal}");
        }
        if endpoint.is_named() {
            let missing = running.ask(&endpoint.head(&unknown), key, &[], &body).await;
            let needs_more = missing.0 == 400 && missing.1["problems"][0]["wrong"] == "is missing";
            assert!(missing.0 == 404 || needs_more, "{head}, but unknown: {missing:?}");
            // The name in a body is to be the one in the path.
            let foreign = running.ask(&head, limited, &[], &body.replace("nothing", "other")).await;
            let missing = running.ask(&endpoint.head(&unknown), limited, &[], &body).await;
            let refusal = |answered: &(u16, Value)| (answered.0, answered.1["code"].clone());
            assert_eq!(refusal(&foreign), refusal(&missing), "{head}: what is foreign looks like nothing");
            assert!([403, 404].contains(&foreign.0), "{head}: {foreign:?}");
            assert_described(endpoint, &head, &foreign);
        }
        hides_foreign_names(&running, endpoint, &there, limited, &body).await;
        refuses_names(&running, endpoint, &there, key, limited).await;
        for (key, status, code) in [(key, 405, "METHOD_NOT_ALLOWED"), ("", 401, "UNAUTHENTICATED")] {
            let answered = running.ask(&head.replacen(&endpoint.method, "PATCH", 1), key, &[], &body).await;
            assert_eq!(answered.0, status, "{head} with another method: {answered:?}");
            assert_refused(endpoint, &answered.1, code);
        }
    }
    for (path, like) in [
        ("/api/a2a/nothing", "/api/a2a/chat"),
        ("/api/tools/a2a_echo/nothing", "/api/tools/{tool}"),
        ("/api/agents/echo/nothing", "/api/agents/{name}"),
        ("/api/nothing", "/api/tasks"),
    ] {
        let like = endpoints.iter().find(|endpoint| endpoint.path == like).unwrap();
        for (key, status, code) in [("ann", 404, "NOT_FOUND"), ("", 401, "UNAUTHENTICATED")] {
            let answered = running.get(path, key).await;
            assert_eq!(answered.0, status, "{path}: {answered:?}");
            assert_refused(like, &answered.1, code);
        }
    }
    assert_eq!(stored(&running).await, before, "nothing has changed");
    running.stop().await;
}

#[tokio::test]
async fn the_document_says_what_is_needed_and_what_comes_back() {
    let data = folder();
    let running = Running::in_folder(data.path()).await;
    let (_, document) = running.get("/openapi.json", "").await;
    let feed = &document["paths"]["/api/feed"]["get"];
    assert!(feed["responses"]["2XX"]["content"]["text/event-stream"].is_object(), "{feed}");
    let register = &document["paths"]["/api/agents"]["post"];
    let body = &register["requestBody"];
    let required = &body["content"]["application/json"]["schema"]["required"];
    assert_eq!((&body["required"], required), (&json!(true), &json!(["name", "url"])));
    let codes = |status: &str| &register["responses"][status]["content"]["application/json"]["schema"];
    assert_eq!(codes("409")["properties"]["code"]["enum"], json!(["EXISTS", "IN_FILE"]));
    let cancel = &document["paths"]["/api/tasks/{id}:cancel"]["post"];
    assert_eq!(cancel["requestBody"]["required"], false, "it needs no body");
    let series = document["paths"]["/api/series"]["get"]["parameters"].as_array().unwrap();
    let needed = series.iter().filter(|parameter| parameter["required"] == true);
    assert_eq!(needed.map(|parameter| &parameter["name"]).collect::<Vec<_>>(), ["metric", "agent"]);
    assert_eq!(series[3]["schema"], json!({ "type": "string", "format": "date-time" }), "{series:?}");
    let said = |path: &str, status: &str| {
        let codes = &document["paths"][path]["post"]["responses"][status]["content"]["application/json"]["schema"];
        codes["properties"]["code"]["enum"].to_string()
    };
    for path in ["/api/dispatch", "/api/plan", "/api/a2a/chat", "/api/a2a/delegate", "/api/tools/{tool}"] {
        let refusals = [
            ("400", "SKILL_NOT_OFFERED"),
            ("403", "FORBIDDEN"),
            ("404", "NOT_FOUND"),
            ("409", "IDEMPOTENCY_KEY_REUSED"),
            ("429", "COOLDOWN"),
        ];
        for (status, code) in refusals {
            assert!(said(path, status).contains(code), "{path} {status}: {}", said(path, status));
        }
        let headers = document["paths"][path]["post"]["parameters"].to_string();
        assert!(headers.contains("Traceparent"), "{path}: {headers}");
    }
    assert_eq!(
        (said("/api/tools/{tool}", "502"), said("/api/experiments", "409")),
        ("[\"AGENT_ERROR\"]".into(), "[\"EXISTS\"]".into())
    );
    let plan = document["paths"]["/api/plan"]["post"]["parameters"].to_string();
    assert!(plan.contains("IdempotencyKey"), "{plan}");
    running.stop().await;
}
