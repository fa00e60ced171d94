//! Tenants are agent names: they select at the root and must agree elsewhere.

use serde_json::json;

use super::dialects::TestDialect;
use super::world::World;

#[tokio::test]
async fn a_tenant_in_the_body_selects_at_the_root() {
    let world = World::start().await;
    for path in ["/", "/a2a", "/a2a/jsonrpc"] {
        let params = json!({"message": TestDialect::RpcV1.message("say"), "tenant": "talker"});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params});
        let json = world.post(path, &body).version("1.0").reply().await.json();
        assert_eq!(json["result"]["message"]["parts"][0]["text"], "said directly", "{path}: {json}");
    }
    let params = json!({"message": TestDialect::RpcV1.message("say")});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params});
    let json = world.post("/a2a?tenant=talker", &body).version("1.0").reply().await.json();
    assert_eq!(json["result"]["message"]["parts"][0]["text"], "said directly", "{json}");
    let body = json!({"message": TestDialect::RestV1.message("say"), "tenant": "talker"});
    for path in ["/message:send", "/a2a/message:send"] {
        let json = world.post(path, &body).version("1.0").reply().await.json();
        assert_eq!(json["message"]["parts"][0]["text"], "said directly", "{path}: {json}");
    }
    let listed = world.get("/tasks?tenant=talker").version("1.0").reply().await.json();
    assert_eq!(listed["totalSize"], json!(0));
}

#[tokio::test]
async fn a_tenant_in_the_path_is_the_agents_address() {
    let world = World::start().await;
    let body = json!({"message": TestDialect::RestV1.message("say")});
    for path in ["/talker/message:send", "/a2a/talker/message:send", "/a2a/talker/v1/message:send"] {
        let json = world.post(path, &body).version("1.0").reply().await.json();
        assert_eq!(json["message"]["parts"][0]["text"], "said directly", "{path}: {json}");
    }
    let both = json!({"message": TestDialect::RestV1.message("say"), "tenant": "talker"});
    assert_eq!(world.post("/a2a/talker/message:send", &both).version("1.0").reply().await.status, 200);
}

#[tokio::test]
async fn a_tenant_that_contradicts_the_path_is_refused() {
    let world = World::start().await;
    let body = json!({"message": TestDialect::RestV1.message("say"), "tenant": "worker"});
    let plain = json!({"message": TestDialect::RestV1.message("say")});
    for (path, body) in [
        ("/a2a/talker/message:send", &body),
        ("/talker/message:send", &body),
        ("/a2a/talker/message:send?tenant=worker", &plain),
        ("/message:send?tenant=talker", &body),
    ] {
        let reply = world.post(path, body).version("1.0").reply().await;
        let json = reply.json();
        assert_eq!(reply.status, 400, "{path}: {json}");
        assert_eq!(json["error"]["details"][1]["fieldViolations"][0]["field"], "tenant", "{json}");
    }
    for path in ["/a2a/talker", "/a2a?tenant=talker"] {
        let rpc = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": body});
        let json = world.post(path, &rpc).version("1.0").reply().await.json();
        assert_eq!(json["error"]["code"], json!(-32602), "{path}: {json}");
    }
}

#[tokio::test]
async fn an_agents_address_shows_its_own_tasks_and_the_root_all() {
    let world = World::start().await;
    let dialect = TestDialect::RestV1;
    let task = dialect.sent_task(&dialect.send(&world, "hello").reply().await);
    let id = task["id"].as_str().unwrap();
    for (path, status) in [("/a2a/tasks", 200), ("/a2a/worker/tasks", 200), ("/a2a/either/tasks", 404)] {
        let reply = world.get(&format!("{path}/{id}")).version("1.0").reply().await;
        assert_eq!(reply.status, status, "{path}");
    }
    for (path, total) in [("/a2a/tasks", 1), ("/a2a/worker/tasks", 1), ("/a2a/either/tasks", 0)] {
        let listed = world.get(path).version("1.0").reply().await.json();
        assert_eq!(listed["totalSize"], json!(total), "{path}");
    }
}
