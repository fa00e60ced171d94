//! Many webhooks of one task: pages, and where they end.

use serde_json::{Value, json};

use super::hook::{Hook, busy_task};
use crate::bindings::dialects::{ALL, TestDialect};
use crate::bindings::world::{Plan, World};

const REST: TestDialect = TestDialect::RestV1;

async fn set(world: &World, key: &str, task: &str, id: &str) -> Value {
    let hook = Hook::Set(task, json!({"id": id, "url": "https://hook.test/"}));
    REST.hook(world, "", hook).key(key).reply().await.json()
}

#[tokio::test]
async fn a_hundred_fit_and_pages_follow_each_other_oldest_first() {
    let world = Plan::default().and_webhooks().start().await;
    let task = busy_task(&world, "").await;
    let ids: Vec<String> = (0..100).map(|number| format!("hook-{number}")).collect();
    for id in &ids {
        assert_eq!(set(&world, "", &task, id).await["id"], id.as_str());
    }
    for dialect in ALL {
        let hook = Hook::Set(&task, json!({"id": "one-too-many", "url": "https://hook.test/"}));
        let reply = dialect.hook(&world, "", hook).reply().await;
        let text = reply.json().to_string();
        assert!(text.contains("has 100 of them") && text.contains("delete one first"), "{dialect:?}: {text}");
        assert_eq!(dialect.error(&reply).0, if dialect.is_rpc() { 200 } else { 400 }, "{dialect:?}: {text}");
        let again = Hook::Set(&task, json!({"id": "hook-7", "url": "https://hook.test/again"}));
        assert_eq!(dialect.hook(&world, "", again).reply().await.status, 200, "one that is there can be replaced");
    }
    for dialect in ALL {
        let (mut seen, mut sizes, mut token) = (Vec::new(), Vec::new(), String::new());
        loop {
            let page = json!({"pageSize": 40, "pageToken": token});
            let (configs, next) = dialect.page(&dialect.hook(&world, "", Hook::List(&task, page)).reply().await);
            sizes.push(configs.len());
            seen.extend(configs.iter().map(|config| config["id"].as_str().unwrap().to_owned()));
            token = next;
            if token.is_empty() {
                break;
            }
        }
        assert_eq!(seen, ids, "{dialect:?}");
        // JSON-RPC of version 0.3 has no pages.
        let expected: &[usize] = if dialect == TestDialect::RpcV03 { &[100] } else { &[40, 40, 20] };
        assert_eq!(sizes, expected, "{dialect:?}");
        let (all, _) = dialect.page(&dialect.hook(&world, "", Hook::List(&task, json!({}))).reply().await);
        assert_eq!(all.len(), if dialect == TestDialect::RpcV03 { 100 } else { 50 }, "{dialect:?}");
    }
}

#[tokio::test]
async fn tokens_belong_to_their_question() {
    let (plan, _) = Plan::with_keys();
    let world = plan.and_webhooks().start().await;
    let (task, other) = (busy_task(&world, "ann").await, busy_task(&world, "ann").await);
    for number in 0..3 {
        set(&world, "ann", &task, &format!("a{number}")).await;
        set(&world, "ann", &other, &format!("b{number}")).await;
    }
    let page = REST.hook(&world, "", Hook::List(&task, json!({"pageSize": 1}))).key("ann").reply().await;
    let (_, token) = REST.page(&page);
    let configs = |task: &str| format!("/a2a/tasks/{task}/pushNotificationConfigs");
    let next = world.get(&format!("{}?pageToken={token}", configs(&task))).version("1.0").key("ann").reply().await;
    assert_eq!(REST.page(&next).0.len(), 2);
    for (path, field) in [
        (format!("{}?pageToken={token}", configs(&other)), "pageToken"),
        (format!("/a2a/worker/tasks/{task}/pushNotificationConfigs?pageToken={token}"), "pageToken"),
        (format!("/a2a/tasks?pageToken={token}"), "pageToken"),
        (format!("{}?pageToken=nonsense", configs(&task)), "pageToken"),
        (format!("{}?pageSize=0", configs(&task)), "pageSize"),
        (format!("{}?pageSize=101", configs(&task)), "pageSize"),
    ] {
        let reply = world.get(&path).version("1.0").key("ann").reply().await;
        assert_eq!(reply.status, 400, "{path}: {}", reply.json());
        assert_eq!(reply.json()["error"]["details"][1]["fieldViolations"][0]["field"], field, "{path}");
    }
    let tasks = world.get("/a2a/tasks?pageSize=1").version("1.0").key("ann").reply().await.json();
    let token = tasks["nextPageToken"].as_str().unwrap();
    let reply = world.get(&format!("{}?pageToken={token}", configs(&task))).version("1.0").key("ann").reply().await;
    assert_eq!(reply.status, 400, "a token for tasks is none for webhooks");
}
