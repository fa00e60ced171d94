//! What is not taken, with the name of what is wrong; and nothing is there afterwards.

use serde_json::{Value, json};
use switchboard_egress::Allowlist;

use super::hook::{Hook, busy_task};
use crate::bindings::client::Reply;
use crate::bindings::dialects::{ALL, Operation, TestDialect};
use crate::bindings::world::{Plan, World};

/// The reply must be invalid parameters with a field and words.
#[track_caller]
fn check(dialect: TestDialect, reply: &Reply, field: &str, words: &str) {
    let (status, code, reason) = dialect.error(reply);
    let text = reply.json().to_string();
    assert_eq!(status, if dialect.is_rpc() { 200 } else { 400 }, "{dialect:?}: {text}");
    match dialect {
        TestDialect::RestV1 => assert_eq!(reason, "INVALID_PARAMS", "{text}"),
        _ => assert_eq!(code, -32602, "{dialect:?}: {text}"),
    }
    // In quotes or behind a space, so that no end of a longer name passes for it.
    let named = [format!("\"{field}: "), format!(" {field}: ")].iter().any(|named| text.contains(named));
    assert!(named && text.contains(words), "{dialect:?} {field} {words}: {text}");
}

/// A field of a webhook in the request that sets it.
fn in_request(dialect: TestDialect, field: &str) -> String {
    match dialect {
        TestDialect::RpcV1 | TestDialect::RestV1 => field.to_owned(),
        TestDialect::RpcV03 | TestDialect::RestV03 => format!("pushNotificationConfig.{field}"),
    }
}

fn member(dialect: TestDialect) -> &'static str {
    match dialect {
        TestDialect::RpcV1 | TestDialect::RestV1 => "configuration.taskPushNotificationConfig",
        TestDialect::RpcV03 => "configuration.pushNotificationConfig",
        TestDialect::RestV03 => "configuration.pushNotification",
    }
}

async fn tasks(world: &World) -> Value {
    world.get("/a2a/tasks").version("1.0").reply().await.json()["totalSize"].clone()
}

#[tokio::test]
async fn this_machine_is_out_of_reach_unless_it_is_allowed() {
    let plan = Plan { webhooks: Some((Default::default(), Allowlist::default())), ..Plan::default() };
    let world = plan.start().await;
    let task = busy_task(&world, "").await;
    for dialect in ALL {
        for (url, words) in [
            ("http://127.0.0.1:8080/hook", "webhooks.allowedCidrs"),
            ("http://localhost/hook", "webhooks.allowedHosts"),
            ("http://[::ffff:10.0.0.1]/hook", "webhooks.allowedCidrs"),
            ("http://169.254.169.254/latest/meta-data", "webhooks.allowedHosts"),
            ("ftp://hook.test/", "http:// or https://"),
            ("https://user:word@hook.test/", "user name or password"),
            ("https://unheard-of.test/", "cannot be resolved"),
        ] {
            let set = dialect.hook(&world, "", Hook::Set(&task, json!({"url": url}))).reply().await;
            check(dialect, &set, &in_request(dialect, "url"), words);
            let params =
                json!({"message": dialect.message("hello"), "configuration": dialect.with_hook(json!({"url": url}))});
            for send in [Operation::Send(params.clone()), Operation::Stream(params.clone())] {
                let reply = dialect.ask(&world, "", send).reply().await;
                check(dialect, &reply, &format!("{}.url", member(dialect)), words);
            }
        }
        let listed = dialect.hook(&world, "", Hook::List(&task, json!({}))).reply().await;
        assert_eq!(dialect.page(&listed).0, Vec::<Value>::new(), "{dialect:?}");
    }
    assert_eq!(tasks(&world).await, 1, "a refused webhook refuses its message");
}

#[tokio::test]
async fn what_could_break_a_header_is_refused() {
    let world = Plan::default().and_webhooks().start().await;
    let task = busy_task(&world, "").await;
    let url = "https://hook.test/";
    for dialect in ALL {
        for (config, field) in [
            (json!({"url": url, "token": "a\r\nX-Injected: yes"}), "token"),
            (json!({"url": url, "token": "a\u{0}b"}), "token"),
            (
                json!({"url": url, "authentication": {"scheme": "Bearer", "credentials": "a\nb"}}),
                "authentication.credentials",
            ),
            (json!({"url": url, "authentication": {"scheme": "Bea\r\nrer"}}), "authentication.scheme"),
            (json!({"url": url, "id": "a\nb"}), "id"),
            (json!({"url": "https://hook.test/\r\nX: y"}), "url"),
        ] {
            let set = dialect.hook(&world, "", Hook::Set(&task, config.clone())).reply().await;
            let field = match field {
                "authentication.scheme" if !dialect.is_v1() => "authentication.schemes",
                field => field,
            };
            check(dialect, &set, &in_request(dialect, field), "");
            let params = json!({"message": dialect.message("hello"), "configuration": dialect.with_hook(config)});
            let sent = dialect.ask(&world, "", Operation::Send(params)).reply().await;
            check(dialect, &sent, &format!("{}.{field}", member(dialect)), "");
        }
        let set = dialect.hook(&world, "", Hook::Set(&task, json!({"id": "p1"}))).reply().await;
        check(dialect, &set, &in_request(dialect, "url"), "is missing");
    }
    assert_eq!(tasks(&world).await, 1);
}

#[tokio::test]
async fn one_too_many_is_refused_by_the_name_that_the_version_has_for_it() {
    let mut plan = Plan::default().and_webhooks();
    plan.webhooks.as_mut().unwrap().0.per_task = 1;
    let world = plan.start().await;
    let config = |id: &str| json!({"id": id, "url": "https://hook.test/"});
    for dialect in ALL {
        let task = dialect.sent_task(&dialect.send(&world, "ask").reply().await)["id"].as_str().unwrap().to_owned();
        dialect.result(&dialect.hook(&world, "", Hook::Set(&task, config("one"))).reply().await);
        let words = "the task has 1 of them";
        let set = dialect.hook(&world, "", Hook::Set(&task, config("two"))).reply().await;
        let whole = if dialect.is_v1() { "taskPushNotificationConfig" } else { "pushNotificationConfig" };
        check(dialect, &set, whole, words);
        let configuration = dialect.with_hook(config("two"));
        let params = json!({"message": dialect.answer("Rome", &task), "configuration": configuration});
        for send in [Operation::Send(params.clone()), Operation::Stream(params)] {
            check(dialect, &dialect.ask(&world, "", send).reply().await, member(dialect), words);
        }
    }
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let world = Plan::default().and_webhooks().start().await;
    let task = busy_task(&world, "").await;
    for dialect in ALL {
        for (hook, words) in [
            (Hook::Get(&task, Some("none")), "has no push notification configuration \\\"none\\\""),
            (Hook::Set("none", json!({"url": "https://hook.test/"})), ""),
            (Hook::Get("none", Some("p1")), ""),
            (Hook::List("none", json!({})), ""),
            (Hook::Delete("none", "p1"), ""),
        ] {
            let reply = dialect.hook(&world, "", hook.clone()).reply().await;
            let (status, code, reason) = dialect.error(&reply);
            assert_eq!(status, if dialect.is_rpc() { 200 } else { 404 }, "{dialect:?} {hook:?}");
            match dialect {
                TestDialect::RestV1 => assert_eq!(reason, "TASK_NOT_FOUND", "{hook:?}"),
                _ => assert_eq!(code, -32001, "{dialect:?} {hook:?}"),
            }
            let text = reply.json().to_string();
            assert!(text.contains(words), "{dialect:?} {hook:?}: {text}");
        }
    }
    let reply = TestDialect::RpcV03.hook(&world, "", Hook::Get(&task, None)).reply().await;
    assert_eq!(TestDialect::RpcV03.error(&reply).1, -32001, "{}", reply.json());
}
