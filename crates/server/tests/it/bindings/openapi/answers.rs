//! What the server really sends, held against the schemas.

use serde_json::{Value, json};

use super::described;
use super::schemas::Schemas;
use crate::bindings::dialects::{Operation, TestDialect};
use crate::bindings::webhooks::hook::busy_task;
use crate::bindings::world::{Plan, World};

const REST: TestDialect = TestDialect::RestV1;
const RPC: TestDialect = TestDialect::RpcV1;

async fn world() -> (World, Schemas) {
    let world = World::start().await;
    let schemas = Schemas::strict(&described(&world).await);
    (world, schemas)
}

/// A message with everything a message can have; it speaks of a task that must exist.
fn rich(other: &Value) -> Value {
    let mut message = REST.message("hello");
    message["parts"] = json!([
        {"text": "hello"},
        {"raw": "aGk=", "filename": "a.txt", "mediaType": "text/plain"},
        {"url": "https://files.test/a", "metadata": {"deep": [1]}},
        {"data": [1, null, {"a": "b"}]},
    ]);
    message["metadata"] = json!({"any": {"thing": 1.5}});
    message["extensions"] = json!(["urn:test:one"]);
    message["referenceTaskIds"] = json!([other]);
    message
}

#[tokio::test]
async fn tasks_and_pages() {
    let (world, schemas) = world().await;
    for (text, state) in [("hello", "COMPLETED"), ("ask", "INPUT_REQUIRED"), ("auth", "AUTH_REQUIRED")] {
        let sent = REST.result(&REST.send(&world, text).reply().await);
        schemas.check("SendMessageResponse", &sent);
        assert_eq!(sent["task"]["status"]["state"], format!("TASK_STATE_{state}"));
        let id = sent["task"]["id"].as_str().unwrap();
        let got = REST.result(&REST.ask(&world, "", Operation::Get(id, None)).reply().await);
        schemas.check("Task", &got);
        if state != "COMPLETED" {
            schemas.check("Task", &REST.result(&REST.ask(&world, "", Operation::Cancel(id)).reply().await));
        }
    }
    for text in ["fail", "reject"] {
        schemas.check("SendMessageResponse", &REST.result(&REST.send(&world, text).reply().await));
    }
    let other = REST.sent_task(&REST.send(&world, "hello").reply().await)["id"].clone();
    let request = json!({"message": rich(&other), "metadata": {"a": 1}, "configuration": {
        "acceptedOutputModes": ["text/plain"], "historyLength": 1, "returnImmediately": false,
    }});
    schemas.check("SendMessageRequest", &request);
    let sent = REST.result(&REST.ask(&world, "", Operation::Send(request)).reply().await);
    schemas.check("SendMessageResponse", &sent);
    assert_eq!(sent["task"]["history"][0]["parts"].as_array().unwrap().len(), 4, "the parts came back");
    let talked = REST.ask(&world, "talker", Operation::Send(json!({"message": REST.message("say")}))).reply().await;
    schemas.check("SendMessageResponse", &REST.result(&talked));
    for query in ["", "?pageSize=2&includeArtifacts=true", "?status=TASK_STATE_CANCELED&historyLength=0"] {
        let page = REST.result(&world.get(&format!("/a2a/tasks{query}")).version("1.0").reply().await);
        assert!(!page["tasks"].as_array().unwrap().is_empty(), "{query}");
        schemas.check("ListTasksResponse", &page);
    }
}

#[tokio::test]
async fn streams() {
    let (world, schemas) = world().await;
    let mut seen = Vec::new();
    for text in ["hello", "fail", "say"] {
        let agent = if text == "say" { "talker" } else { "worker" };
        for (dialect, schema) in [(REST, "Stream"), (RPC, "JsonRpcStream")] {
            let params = json!({"message": dialect.message(text)});
            for frame in dialect.ask(&world, agent, Operation::Stream(params)).events().await.rest().await {
                schemas.check(&format!("{schema}Response"), &frame.data);
                let mut event = json!({"data": frame.data.to_string()});
                if let Some(id) = &frame.id {
                    event["id"] = id.as_str().into();
                }
                schemas.check(&format!("{schema}Event"), &event);
                seen.push(dialect.event(&frame).0);
            }
        }
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen, ["artifactUpdate", "message", "statusUpdate", "task"], "every kind of event was there");
}

#[tokio::test]
async fn json_rpc() {
    let (world, schemas) = world().await;
    let call = |method: &str, params: Value| json!({"jsonrpc": "2.0", "id": "a", "method": method, "params": params});
    let other = REST.sent_task(&REST.send(&world, "hello").reply().await)["id"].clone();
    let send = call("SendMessage", json!({"message": rich(&other)}));
    schemas.check("JsonRpcRequest", &send);
    let sent = world.post("/a2a", &send).version("1.0").reply().await.json();
    schemas.check("JsonRpcResultResponse", &sent);
    let id = &sent["result"]["task"]["id"];
    for (method, params) in [("GetTask", json!({"id": id})), ("ListTasks", json!({"pageSize": 1}))] {
        let call = call(method, params);
        schemas.check("JsonRpcRequest", &call);
        schemas.check("JsonRpcResultResponse", &world.post("/a2a", &call).version("1.0").reply().await.json());
    }
    for call in [
        call("CancelTask", json!({"id": id})),
        call("SubscribeToTask", json!({"id": "none"})),
        call("SendMessage", json!({"message": {}})),
        call("Nonsense", json!({})),
        json!([]),
    ] {
        let refused = world.post("/a2a", &call).version("1.0").reply().await.json();
        schemas.check("JsonRpcErrorResponse", &refused);
        assert!(!schemas.fits("JsonRpcResultResponse", &refused));
    }
}

#[tokio::test]
async fn webhooks_over_json_rpc() {
    let world = Plan::default().and_webhooks().start().await;
    let schemas = Schemas::strict(&described(&world).await);
    let call = |method: &str, params: Value| json!({"jsonrpc": "2.0", "id": "a", "method": method, "params": params});
    let task = busy_task(&world, "").await;
    let authentication = json!({"scheme": "Bearer", "credentials": "s"});
    let config = json!({"taskId": task, "id": "p1", "url": "https://hook.test/", "token": "t", "payload": "task",
        "authentication": authentication});
    for (method, params) in [
        ("CreateTaskPushNotificationConfig", config.clone()),
        ("GetTaskPushNotificationConfig", json!({"taskId": task, "id": "p1"})),
        ("ListTaskPushNotificationConfigs", json!({"taskId": task, "pageSize": 1})),
        ("DeleteTaskPushNotificationConfig", json!({"taskId": task, "id": "p1"})),
    ] {
        let call = call(method, params);
        schemas.check("JsonRpcRequest", &call);
        let answer = world.post("/a2a", &call).version("1.0").reply().await.json();
        schemas.check("JsonRpcResultResponse", &answer);
        assert_eq!(answer["result"].is_null(), method.starts_with("Delete"), "{answer}");
    }
    let send = json!({"message": REST.message("hello"), "configuration": {"taskPushNotificationConfig": config}});
    schemas.check("SendMessageRequest", &send);
    assert_eq!(REST.ask(&world, "", Operation::Send(send)).reply().await.status, 200);
    let without = call("CreateTaskPushNotificationConfig", json!({"url": "https://hook.test/"}));
    assert!(!schemas.fits("JsonRpcRequest", &without), "the task is missing");
}

#[tokio::test]
async fn errors() {
    let (world, schemas) = world().await;
    let sent = REST.sent_task(&REST.send(&world, "hello").reply().await);
    let ended = sent["id"].as_str().unwrap();
    let broken = |body: &str| world.post("/a2a/message:send", &Value::Null).raw(body.to_owned());
    for (ask, status, details) in [
        (world.get("/a2a/tasks/none"), 404, true),
        (world.get("/a2a/unknown/tasks"), 404, true),
        (world.get("/a2a/tasks?pageSize=0"), 400, true),
        (world.post(&format!("/a2a/tasks/{ended}:cancel"), &json!({})), 400, true),
        (world.get(&format!("/a2a/tasks/{ended}:subscribe")), 400, true),
        (world.get("/a2a/extendedAgentCard"), 400, true),
        (broken("{"), 400, true),
        (broken("{}"), 400, true),
        (broken(r#"{"message":{"messageId":"","role":"ROLE_USER","parts":[]}}"#), 400, true),
        (world.get("/a2a/tasks").post(), 405, false),
        (world.get("/nothing/at/all"), 404, false),
    ] {
        let reply = ask.version("1.0").reply().await;
        let body = reply.json();
        assert_eq!((reply.status, body["error"].get("details").is_some()), (status, details), "{body}");
        schemas.check("ErrorResponse", &body);
    }
    let (plan, _) = Plan::with_keys();
    let closed = plan.start().await;
    for (path, schema) in [("/a2a/tasks", "ErrorResponse"), ("/a2a", "JsonRpcErrorResponse")] {
        let ask = if path == "/a2a" { closed.post(path, &json!({})) } else { closed.get(path) };
        let reply = ask.version("1.0").reply().await;
        assert_eq!(reply.status, 401);
        schemas.check(schema, &reply.json());
    }
}

#[tokio::test]
async fn cards_and_health() {
    let (plan, _) = Plan::with_keys();
    let closed = plan.start().await;
    let (open, _) = world().await;
    for world in [&open, &closed] {
        let document = described(world).await;
        let schemas = Schemas::strict(&document);
        for path in ["/.well-known/agent-card.json", "/a2a/talker/.well-known/agent-card.json"] {
            schemas.check("AgentCard", &world.get(path).version("1.0").reply().await.json());
            let both = world.get(path).reply().await.json();
            assert!(both.get("protocolVersion").is_some(), "this one is for readers of both versions");
            Schemas::plain(&document).check("AgentCard", &both);
        }
        for path in ["/healthz", "/readyz"] {
            schemas.check("Health", &world.get(path).reply().await.json());
        }
    }
    let schemas = Schemas::strict(&described(&closed).await);
    let extended = REST.result(&REST.ask(&closed, "", Operation::ExtendedCard).key("ann").reply().await);
    schemas.check("AgentCard", &extended);
    let extended = RPC.ask(&closed, "", Operation::ExtendedCard).key("ann").reply().await.json();
    schemas.check("JsonRpcResultResponse", &extended);
}

#[tokio::test]
async fn the_schemas_can_tell() {
    let (_, schemas) = world().await;
    let task = json!({"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}});
    assert!(schemas.fits("Task", &task));
    for (pointer, value) in [("/status/state", json!("working")), ("/id", json!(1)), ("/status", json!({}))] {
        let mut wrong = task.clone();
        *wrong.pointer_mut(pointer).unwrap() = value;
        assert!(!schemas.fits("Task", &wrong), "{wrong}");
    }
    for (schema, wrong) in [
        ("Task", json!({"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}, "kind": "task"})),
        ("TaskStatus", json!({"state": "TASK_STATE_WORKING", "timestamp": "yesterday"})),
        ("Part", json!({"text": "a", "url": "b"})),
        ("Part", json!({"mediaType": "text/plain"})),
        ("Message", json!({"messageId": "m", "role": "ROLE_USER", "parts": []})),
        ("StreamResponse", json!({})),
        ("StreamResponse", json!({"task": task, "message": rich(&json!("t"))})),
        ("SendMessageRequest", json!({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "a"}]}})),
        ("ListTasksResponse", json!({"tasks": []})),
        ("ErrorResponse", json!({"error": {"code": 404, "status": "NOT_FOUND", "message": "", "details": [{}]}})),
        ("JsonRpcRequest", json!({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {}})),
        ("JsonRpcRequest", json!({"jsonrpc": "2.0", "id": 1.5, "method": "ListTasks"})),
    ] {
        assert!(!schemas.fits(schema, &wrong), "{wrong} passes for a {schema}");
    }
}
