//! What is set can be read, in the form of the reader's version, and deleted.

use serde_json::{Value, json};

use super::hook::{Hook, busy_task};
use crate::bindings::dialects::{ALL, TestDialect};
use crate::bindings::world::{Plan, World};

fn rich(id: &str) -> Value {
    let authentication = json!({"scheme": "Bearer", "credentials": "s3cr3t"});
    json!({"id": id, "url": "https://hook.test/h?a=1", "token": "opaque", "authentication": authentication})
}

/// The bytes of an answer, up to what a JSON-RPC envelope puts around them.
fn golden(dialect: TestDialect, task: &str) -> String {
    let url = r#""url":"https://hook.test/h?a=1""#;
    match dialect {
        TestDialect::RpcV1 | TestDialect::RestV1 => {
            format!(r#"{{"id":"p1","taskId":"{task}",{url},"authentication":{{"scheme":"Bearer"}}}}"#)
        }
        TestDialect::RpcV03 => format!(
            r#"{{"taskId":"{task}","pushNotificationConfig":{{"id":"p1",{url},"authentication":{{"schemes":["Bearer"]}}}}}}"#
        ),
        TestDialect::RestV03 => format!(
            r#"{{"name":"tasks/{task}/pushNotificationConfigs/p1","pushNotificationConfig":{{"id":"p1",{url},"authentication":{{"schemes":["Bearer"]}}}}}}"#
        ),
    }
}

fn enveloped(dialect: TestDialect, result: &str) -> String {
    if dialect.is_rpc() { format!(r#"{{"jsonrpc":"2.0","id":7,"result":{result}}}"#) } else { result.to_owned() }
}

#[tokio::test]
async fn a_webhook_is_set_read_listed_and_deleted_byte_by_byte() {
    let world = Plan::default().and_webhooks().start().await;
    for dialect in ALL {
        let task = busy_task(&world, "").await;
        for agent in ["", "worker"] {
            let bytes = async |hook: Hook<'_>| {
                let reply = dialect.hook(&world, agent, hook).reply().await;
                dialect.result(&reply);
                String::from_utf8(reply.body.to_vec()).unwrap()
            };
            let one = golden(dialect, &task);
            assert_eq!(bytes(Hook::Set(&task, rich("p1"))).await, enveloped(dialect, &one), "{dialect:?}");
            assert_eq!(bytes(Hook::Get(&task, Some("p1"))).await, enveloped(dialect, &one), "{dialect:?}");
            let list = match dialect {
                TestDialect::RpcV03 => format!("[{one}]"),
                _ => format!(r#"{{"configs":[{one}],"nextPageToken":""}}"#),
            };
            assert_eq!(bytes(Hook::List(&task, json!({}))).await, enveloped(dialect, &list), "{dialect:?}");
            let nothing = if dialect.is_rpc() { "null" } else { "{}" };
            for _ in 0..2 {
                assert_eq!(bytes(Hook::Delete(&task, "p1")).await, enveloped(dialect, nothing), "{dialect:?}");
            }
            let empty = if dialect == TestDialect::RpcV03 { "[]" } else { r#"{"configs":[],"nextPageToken":""}"# };
            assert_eq!(bytes(Hook::List(&task, json!({}))).await, enveloped(dialect, empty), "{dialect:?}");
        }
    }
}

#[tokio::test]
async fn every_door_reads_what_any_door_has_set() {
    let world = Plan::default().and_webhooks().start().await;
    for setting in ALL {
        let task = busy_task(&world, "").await;
        let set = setting.hook(&world, "", Hook::Set(&task, rich("mine"))).reply().await;
        let expected = setting.shown(&setting.result(&set));
        assert_eq!((&expected["id"], &expected["taskId"]), (&json!("mine"), &json!(task)), "{expected}");
        for reading in ALL {
            let got = reading.hook(&world, "", Hook::Get(&task, Some("mine"))).reply().await;
            assert_eq!(reading.shown(&reading.result(&got)), expected, "{setting:?} {reading:?}");
            let listed = reading.hook(&world, "", Hook::List(&task, json!({}))).reply().await;
            assert_eq!(reading.page(&listed).0, std::slice::from_ref(&expected), "{setting:?} {reading:?}");
        }
    }
}

#[tokio::test]
async fn version_0_3_sets_and_gets_the_one_of_a_task_without_a_name() {
    let world = Plan::default().and_webhooks().start().await;
    let old = TestDialect::RpcV03;
    let task = busy_task(&world, "").await;
    for url in ["https://hook.test/one", "https://hook.test/two"] {
        let set = old.hook(&world, "", Hook::Set(&task, json!({"url": url}))).reply().await;
        assert_eq!(old.shown(&old.result(&set)), json!({"id": task, "taskId": task, "url": url}));
        let got = old.hook(&world, "", Hook::Get(&task, None)).reply().await;
        assert_eq!(old.shown(&old.result(&got))["url"], url, "the second takes the place of the first");
    }
    let new = TestDialect::RpcV1;
    let named = json!({"id": "named", "url": "https://hook.test/three"});
    new.result(&new.hook(&world, "", Hook::Set(&task, named)).reply().await);
    let got = old.hook(&world, "", Hook::Get(&task, None)).reply().await;
    assert_eq!(old.shown(&old.result(&got))["id"], task, "its own one comes first");
    old.result(&old.hook(&world, "", Hook::Delete(&task, &task)).reply().await);
    let got = old.hook(&world, "", Hook::Get(&task, None)).reply().await;
    assert_eq!(old.shown(&old.result(&got))["id"], "named", "else the oldest there is");
}

#[tokio::test]
async fn version_1_0_makes_another_one_each_time_it_names_none() {
    let world = Plan::default().and_webhooks().start().await;
    for dialect in [TestDialect::RpcV1, TestDialect::RestV1] {
        let task = busy_task(&world, "").await;
        let mut ids = Vec::new();
        for _ in 0..2 {
            let set = dialect.hook(&world, "", Hook::Set(&task, json!({"url": "https://hook.test/"}))).reply().await;
            ids.push(dialect.result(&set)["id"].clone());
        }
        let (listed, _) = dialect.page(&dialect.hook(&world, "", Hook::List(&task, json!({}))).reply().await);
        let listed: Vec<Value> = listed.iter().map(|config| config["id"].clone()).collect();
        assert_eq!(listed, ids, "oldest first");
        assert_ne!(ids[0], ids[1]);
    }
}

#[tokio::test]
async fn secrets_are_told_again_only_where_that_is_set() {
    let mut plan = Plan::default().and_webhooks();
    plan.webhooks.as_mut().unwrap().0.return_secrets = true;
    let worlds: [(World, bool); 2] =
        [(Plan::default().and_webhooks().start().await, false), (plan.start().await, true)];
    for (world, told) in worlds {
        for dialect in ALL {
            let task = busy_task(&world, "").await;
            for hook in [Hook::Set(&task, rich("p1")), Hook::Get(&task, Some("p1")), Hook::List(&task, json!({}))] {
                let reply = dialect.hook(&world, "", hook.clone()).reply().await;
                let result = dialect.result(&reply).to_string();
                for secret in ["opaque", "s3cr3t"] {
                    assert_eq!(result.contains(secret), told, "{dialect:?} {hook:?}: {result}");
                }
            }
        }
    }
}

#[tokio::test]
async fn version_0_3_may_name_a_new_one_beside_the_body() {
    let world = Plan::default().and_webhooks().start().await;
    let (task, dialect) = (busy_task(&world, "").await, TestDialect::RestV03);
    for (query, id) in [("configId=mine", "mine"), ("config_id=yours", "yours"), ("configId=", task.as_str())] {
        let path = format!("/a2a/v1/tasks/{task}/pushNotificationConfigs?{query}");
        let body = json!({"pushNotificationConfig": {"url": "https://hook.test/"}});
        let shown = dialect.shown(&dialect.result(&world.post(&path, &body).reply().await));
        assert_eq!((&shown["id"], &shown["taskId"]), (&json!(id), &json!(task)), "{query}");
    }
}

#[tokio::test]
async fn version_0_3_clients_write_the_body_in_ways_of_their_own() {
    let world = Plan::default().and_webhooks().start().await;
    let dialect = TestDialect::RestV03;
    for shape in [
        r#"{"name":"tasks/TASK/pushNotificationConfigs/p1","pushNotificationConfig":CONFIG}"#,
        r#"{"parent":"tasks/TASK","configId":"p1","config":{"name":"tasks/TASK/pushNotificationConfigs/p1","pushNotificationConfig":CONFIG}}"#,
        r#"{"parent":"tasks/TASK","config_id":"p1","config":{"name":"tasks/TASK/pushNotificationConfigs/p1","push_notification_config":CONFIG}}"#,
    ] {
        let task = busy_task(&world, "").await;
        let inner = r#"{"id":"p1","url":"https://hook.test/","token":"t"}"#;
        let body = shape.replace("TASK", &task).replace("CONFIG", inner);
        let ask = world.get(&format!("/a2a/v1/tasks/{task}/pushNotificationConfigs")).raw(body).post();
        let expected = json!({"id": "p1", "taskId": task, "url": "https://hook.test/"});
        assert_eq!(dialect.shown(&dialect.result(&ask.version("0.3").reply().await)), expected, "{shape}");
    }
}

#[tokio::test]
async fn the_path_wins_over_the_body() {
    let world = Plan::default().and_webhooks().start().await;
    let (task, other) = (busy_task(&world, "").await, busy_task(&world, "").await);
    let body = json!({"taskId": other, "id": "p1", "url": "https://hook.test/"});
    let set = world.post(&format!("/a2a/tasks/{task}/pushNotificationConfigs"), &body).version("1.0").reply().await;
    assert_eq!(TestDialect::RestV1.result(&set)["taskId"], task.as_str());
    let old = json!({"taskId": other, "pushNotificationConfig": {"id": "p2", "url": "https://hook.test/"}});
    let set = world.post(&format!("/a2a/v1/tasks/{task}/pushNotificationConfigs"), &old).reply().await;
    assert_eq!(TestDialect::RestV03.shown(&TestDialect::RestV03.result(&set))["taskId"], task.as_str());
    let list = async |task: &str| {
        TestDialect::RestV1.page(&TestDialect::RestV1.hook(&world, "", Hook::List(task, json!({}))).reply().await)
    };
    assert_eq!((list(&task).await.0.len(), list(&other).await.0.len()), (2, 0));
}
