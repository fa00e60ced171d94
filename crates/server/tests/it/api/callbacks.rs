//! The receiving end: what other servers tell about a task's remote work, in whatever form, if they know its token.

use serde_json::{Value, json};
use switchboard_a2a::{StreamResponse, TaskId};

use crate::bindings::client::{Ask, Reply};
use crate::bindings::dialects::{Operation, TestDialect};
use crate::bindings::webhooks::hook::busy_task;
use crate::bindings::world::{Plan, World};

const CHALLENGE: &str = "Bearer realm=\"switchboard\"";
const INVALID: &str = "Bearer realm=\"switchboard\", error=\"invalid_token\"";

/// A server with keys, a task of it and the token of the task's callback.
async fn opened() -> (World, TaskId, String) {
    let world = Plan::with_keys().0.and_webhooks().start().await;
    let task = TaskId::from(busy_task(&world, "ann").await);
    let token = world.callbacks.open(&task).await.unwrap();
    (world, task, token)
}

fn path(task: &TaskId) -> String {
    format!("/api/a2a/callback/{task}")
}

fn status(state: &str) -> Value {
    json!({"statusUpdate": {"taskId": "r1", "contextId": "c1", "status": {"state": state}}})
}

fn success(reply: &Reply) {
    assert_eq!((reply.status, &*reply.body), (200, br#"{"success":true}"#.as_slice()), "{}", reply.json());
    assert_eq!(reply.header("content-type"), "application/json");
}

#[tokio::test]
async fn every_dialect_is_taken_and_handed_over_in_order() {
    let (world, task, token) = opened().await;
    let v03_status = json!({"kind": "status-update", "taskId": "r1", "contextId": "c1", "final": false,
        "status": {"state": "working", "timestamp": "2026-01-01T00:00:02.000Z"}});
    let v03_task = json!({"kind": "task", "id": "r1", "contextId": "c1",
        "status": {"state": "completed", "timestamp": "2026-01-01T00:00:04.000Z"}});
    let artifact = json!({"artifactUpdate": {"taskId": "r1", "contextId": "c1",
        "artifact": {"artifactId": "a", "parts": [{"text": "made"}]}}});
    let v1_task = json!({"task": {"id": "r1", "contextId": "c1",
        "status": {"state": "TASK_STATE_SUBMITTED", "timestamp": "2026-01-01T00:00:01.000Z"}}});
    let bodies = [
        ("application/a2a+json", v1_task),
        ("application/json", v03_status),
        ("application/a2a+json; charset=utf-8", artifact),
        ("application/json", json!({"jsonrpc": "2.0", "id": 1, "result": v03_task})),
    ];
    for (number, (media_type, body)) in bodies.iter().enumerate() {
        // All ways to show the token, on a server that wants keys everywhere else.
        let ask = Ask::new(world.address, "POST", &path(&task));
        let ask = match number % 3 {
            0 => ask.key(&token),
            1 => ask.header("a2a-notification-token", &token),
            _ => ask.header("x-a2a-notification-token", &token).header("authorization", "Basic cHJveHk6eA=="),
        };
        let id = format!("update-{number}");
        let ask = ask.header("webhook-id", &id).typed(media_type, body.to_string());
        success(&ask.clone().reply().await);
        success(&ask.reply().await);
    }
    let ends = world.callbacks.ends(&task).await.unwrap();
    assert!(matches!(ends[..], [StreamResponse::Task(_), ..]), "of all of them the end is kept: {ends:?}");
}

#[tokio::test]
async fn each_refusal_has_its_status() {
    let (world, task, token) = opened().await;
    let body = status("TASK_STATE_WORKING");
    let post = |path: &str| world.post(path, &body);
    let own = path(&task);
    for (ask, code, challenge) in [
        (post(&own), 401, CHALLENGE),
        (post(&own).header("x-a2a-notification-token", ""), 401, CHALLENGE),
        (post(&own).key("wrong"), 401, INVALID),
        (post(&own).header("x-a2a-notification-token", "wrong"), 401, INVALID),
        (post(&own).key("ann"), 401, INVALID),
        (post(&own).key(&token[1..]), 401, INVALID),
        (post("/api/a2a/callback/none").key(&token), 404, ""),
        (post(&path(&TaskId::from(busy_task(&world, "ann").await))).key(&token), 404, ""),
        (post("/api/a2a/callback/").key(&token), 404, ""),
        (post("/api/a2a/callback/a/b").key(&token), 404, ""),
        (world.post(&own, &json!({})).key(&token), 400, ""),
        (world.post(&own, &json!([])).key(&token), 400, ""),
        (world.get(&own).raw("{").post().key(&token), 400, ""),
        (world.get(&own).raw("").post().key(&token), 400, ""),
        (world.get(&own).raw(&b"\xff\xfe"[..]).post().key(&token), 400, ""),
        (
            world.post(&own, &json!({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "x"}})).key(&token),
            400,
            "",
        ),
    ] {
        let reply = ask.reply().await;
        let error = reply.json()["error"].clone();
        assert_eq!((reply.status, reply.header("www-authenticate")), (code, challenge), "{error}");
        assert_eq!(error["code"], code, "{error}");
        assert!(!error["message"].as_str().unwrap().is_empty());
    }
    for method in ["GET", "PUT", "DELETE"] {
        let reply = Ask::new(world.address, method, &own).reply().await;
        assert_eq!((reply.status, reply.header("allow")), (405, "POST"), "{method}");
    }
    let plain = Ask::new(world.address, "POST", &own).key(&token).typed("text/plain", body.to_string());
    assert_eq!(plain.reply().await.status, 400, "a page could send that without being asked");
    let page = post(&own).key(&token).header("origin", "https://evil.test").reply().await;
    assert_eq!(page.status, 403);
    success(&post(&own).key(&token).reply().await);
}

#[tokio::test]
async fn a_body_has_the_limit_of_every_other() {
    let (mut plan, _) = Plan::with_keys();
    plan.options.request_body = 1_000;
    let world = plan.and_webhooks().start().await;
    let task = TaskId::from(busy_task(&world, "ann").await);
    let token = world.callbacks.open(&task).await.unwrap();
    let mut body = status("TASK_STATE_WORKING");
    body["statusUpdate"]["metadata"] = json!({"long": "x".repeat(1_000)});
    let reply = world.post(&path(&task), &body).key(&token).reply().await;
    assert_eq!((reply.status, &reply.json()["error"]["status"]), (413, &json!("RESOURCE_EXHAUSTED")));
    assert!(reply.json()["error"]["message"].as_str().unwrap().contains("limits.requestBody"));
}

#[tokio::test]
async fn a_server_without_callbacks_says_so_and_one_with_them_hears_another() {
    let without = World::start().await;
    let reply = without.post("/api/a2a/callback/t1", &status("TASK_STATE_WORKING")).reply().await;
    assert_eq!((reply.status, &reply.json()["error"]["message"]), (404, &json!("this server takes no callbacks")));

    // One of our own servers tells another, as it tells every receiver.
    let (world, task, token) = opened().await;
    let teller = Plan::default().and_webhooks().start().await;
    let url = switchboard_webhooks::CallbackReceiver::address(&format!("http://{}", world.address), &task);
    for dialect in [TestDialect::RpcV1, TestDialect::RpcV03] {
        let configuration = dialect.with_hook(json!({"url": url, "token": token}));
        let params = json!({"message": dialect.message("hello"), "configuration": configuration});
        let sent = dialect.ask(&teller, "", Operation::Send(params)).reply().await;
        let remote = dialect.sent_task(&sent)["id"].clone();
        let watch = world.callbacks.watch(&task);
        loop {
            watch.notified().await;
            let (id, state) = match world.callbacks.ends(&task).await.unwrap().into_iter().next() {
                Some(StreamResponse::Task(task)) => (task.id, task.status.state),
                Some(StreamResponse::StatusUpdate(update)) => (update.task_id, update.status.state),
                _ => continue,
            };
            if remote == id.as_str() {
                assert!(state.is_terminal(), "{dialect:?}");
                break;
            }
        }
    }
}
