//! Every error of the protocol that can be provoked without webhooks, by every way in.

use serde_json::{Value, json};

use super::dialects::{ALL, Operation, TestDialect};
use super::world::{Plan, World};

/// The expectation for one error: code, reason, and the HTTP statuses of v1.0 and v0.3 REST.
struct Expected(i64, &'static str, u16, u16);

#[track_caller]
fn check(dialect: TestDialect, found: (u16, i64, String), expected: &Expected) {
    let Expected(code, reason, rest_v1, rest_v03) = *expected;
    let wanted = match dialect {
        TestDialect::RpcV1 => (200, code, reason.to_owned()),
        TestDialect::RpcV03 => (200, code, String::new()),
        TestDialect::RestV1 => (rest_v1, 0, reason.to_owned()),
        TestDialect::RestV03 => (rest_v03, code, String::new()),
    };
    assert_eq!(found, wanted, "{dialect:?}");
}

#[tokio::test]
async fn unknown_tasks_are_not_found() {
    let world = World::start().await;
    let expected = Expected(-32001, "TASK_NOT_FOUND", 404, 404);
    for dialect in ALL {
        for operation in [Operation::Get("nothing", None), Operation::Cancel("nothing")] {
            let reply = dialect.ask(&world, "", operation).reply().await;
            check(dialect, dialect.error(&reply), &expected);
        }
        for send in [Operation::Send, Operation::Stream] {
            let reply =
                dialect.ask(&world, "", send(json!({"message": dialect.answer("hi", "nothing")}))).reply().await;
            check(dialect, dialect.error(&reply), &expected);
        }
    }
}

#[tokio::test]
async fn an_unknown_subscription_is_json_except_where_readers_take_only_streams() {
    let world = World::start().await;
    for dialect in [TestDialect::RpcV1, TestDialect::RestV1, TestDialect::RestV03] {
        let reply = dialect.ask(&world, "", Operation::Subscribe("nothing")).reply().await;
        check(dialect, dialect.error(&reply), &Expected(-32001, "TASK_NOT_FOUND", 404, 404));
    }
    let frames = TestDialect::RpcV03.ask(&world, "", Operation::Subscribe("nothing")).events().await.rest().await;
    assert_eq!(frames.len(), 1);
    assert_eq!((&frames[0].id, &frames[0].event), (&None, &None));
    assert_eq!(frames[0].data["id"], json!(7));
    assert_eq!(frames[0].data["error"]["code"], json!(-32001));
}

#[tokio::test]
async fn ended_tasks_take_no_cancel_no_message_and_no_subscription() {
    let world = World::start().await;
    for dialect in ALL {
        let task = dialect.sent_task(&dialect.send(&world, "hello").reply().await);
        let id = task["id"].as_str().unwrap();
        let reply = dialect.ask(&world, "", Operation::Cancel(id)).reply().await;
        check(dialect, dialect.error(&reply), &Expected(-32002, "TASK_NOT_CANCELABLE", 400, 409));
        let unsupported = Expected(-32004, "UNSUPPORTED_OPERATION", 400, 400);
        let message = json!({"message": dialect.answer("more", id)});
        let reply = dialect.ask(&world, "", Operation::Send(message)).reply().await;
        check(dialect, dialect.error(&reply), &unsupported);
        if dialect != TestDialect::RpcV03 {
            let reply = dialect.ask(&world, "", Operation::Subscribe(id)).reply().await;
            check(dialect, dialect.error(&reply), &unsupported);
        }
    }
}

#[tokio::test]
async fn webhooks_are_not_supported_and_say_so() {
    let mut switched_off = Plan::default().and_webhooks();
    switched_off.webhooks.as_mut().unwrap().0.enabled = false;
    for world in [World::start().await, switched_off.start().await] {
        no_webhooks(&world).await;
    }
}

async fn no_webhooks(world: &World) {
    let expected = Expected(-32003, "PUSH_NOTIFICATION_NOT_SUPPORTED", 400, 400);
    for dialect in ALL {
        let task = dialect.sent_task(&dialect.send(world, "hello").reply().await);
        let id = task["id"].as_str().unwrap();
        for operation in
            [Operation::CreatePush(id), Operation::GetPush(id), Operation::ListPush(id), Operation::DeletePush(id)]
        {
            let reply = dialect.ask(world, "", operation.clone()).reply().await;
            let found = dialect.error(&reply);
            check(dialect, found, &expected);
        }
        let member = match dialect {
            TestDialect::RpcV1 | TestDialect::RestV1 => "taskPushNotificationConfig",
            TestDialect::RpcV03 => "pushNotificationConfig",
            TestDialect::RestV03 => "pushNotification",
        };
        let params =
            json!({"message": dialect.message("hello"), "configuration": {member: {"url": "https://hook.test/"}}});
        let reply = dialect.ask(world, "", Operation::Send(params)).reply().await;
        check(dialect, dialect.error(&reply), &expected);
    }
}

#[tokio::test]
async fn media_types_the_agent_does_not_know_are_refused() {
    let world = World::start().await;
    let expected = Expected(-32005, "CONTENT_TYPE_NOT_SUPPORTED", 400, 400);
    for dialect in ALL {
        let params = json!({
            "message": dialect.message("hello"),
            "configuration": {"acceptedOutputModes": ["image/png"], "blocking": true},
        });
        let reply = dialect.ask(&world, "", Operation::Send(params)).reply().await;
        check(dialect, dialect.error(&reply), &expected);
    }
    let mut message = TestDialect::RpcV1.message("hello");
    message["parts"] = json!([{"text": "<x/>", "mediaType": "text/xml"}]);
    let reply = TestDialect::RpcV1.ask(&world, "", Operation::Send(json!({"message": message}))).reply().await;
    check(TestDialect::RpcV1, TestDialect::RpcV1.error(&reply), &expected);
}

#[tokio::test]
async fn wrong_parameters_are_named() {
    let world = World::start().await;
    let expected = Expected(-32602, "INVALID_PARAMS", 400, 400);
    for dialect in ALL {
        let parts = if dialect == TestDialect::RestV03 { "content" } else { "parts" };
        let mut empty = dialect.message("hello");
        empty[parts] = json!([]);
        let mut mine = dialect.message("hello");
        mine["role"] = json!(if dialect == TestDialect::RpcV03 { "agent" } else { "ROLE_AGENT" });
        for (message, field) in [(json!(null), "message"), (empty, "message.parts"), (mine, "message.role")] {
            let reply = dialect.ask(&world, "", Operation::Send(json!({"message": message}))).reply().await;
            let body = String::from_utf8_lossy(&reply.body).into_owned();
            check(dialect, dialect.error(&reply), &expected);
            assert!(body.contains(field), "{dialect:?} does not name {field}: {body}");
        }
        // A context that is not the task's.
        let task = dialect.sent_task(&dialect.send(&world, "ask").reply().await);
        let mut message = dialect.answer("Rome", task["id"].as_str().unwrap());
        message["contextId"] = json!("elsewhere");
        let reply = dialect.ask(&world, "", Operation::Send(json!({"message": message}))).reply().await;
        check(dialect, dialect.error(&reply), &expected);
    }
    let reply = world.get("/a2a/tasks?pageSize=150").version("1.0").reply().await;
    assert_eq!(reply.status, 400);
    let violations = &reply.json()["error"]["details"][1];
    assert_eq!(violations["@type"], "type.googleapis.com/google.rpc.BadRequest");
    assert_eq!(violations["fieldViolations"][0]["field"], "pageSize");
}

#[tokio::test]
async fn bodies_that_are_no_request_are_answered_all_the_same() {
    let world = World::start().await;
    let rpc = async |body: &str| {
        let reply = world.get("/a2a").raw(body.to_owned());
        let reply = reply.post().reply().await;
        assert_eq!(reply.status, 200, "{body}");
        let json = reply.json();
        (json["error"]["code"].as_i64().unwrap(), json["id"].clone())
    };
    assert_eq!(rpc("{").await, (-32700, Value::Null));
    assert_eq!(rpc("").await, (-32700, Value::Null));
    assert_eq!(rpc("[]").await, (-32600, Value::Null));
    assert_eq!(rpc(r#"[{"jsonrpc":"2.0","id":1,"method":"GetTask"}]"#).await, (-32600, Value::Null));
    assert_eq!(rpc("42").await, (-32600, Value::Null));
    // Without an id: a fault of its own first, and never carried out.
    assert_eq!(rpc(r#"{"jsonrpc":"2.0","method":"Nonsense"}"#).await, (-32601, Value::Null));
    assert_eq!(rpc(r#"{"jsonrpc":"2.0","method":"GetTask","params":{}}"#).await, (-32602, Value::Null));
    assert_eq!(rpc(r#"{"jsonrpc":"2.0","method":"message/send","params":"x"}"#).await, (-32602, Value::Null));
    assert_eq!(rpc(r#"{"jsonrpc":"2.0","method":"GetTask","params":{"id":"x"}}"#).await, (-32600, Value::Null));
    assert_eq!(rpc(r#"{"jsonrpc":"2.0","id":true,"method":"GetTask"}"#).await, (-32600, Value::Null));
    assert_eq!(rpc(r#"{"id":3,"method":"GetTask"}"#).await, (-32600, json!(3)));
    assert_eq!(rpc(r#"{"jsonrpc":"2.0","id":"a","method":"Nonsense"}"#).await, (-32601, json!("a")));
    assert_eq!(rpc(r#"{"jsonrpc":"2.0","id":4,"method":"GetTask","params":[1]}"#).await, (-32602, json!(4)));
    assert_eq!(rpc(r#"{"jsonrpc":"2.0","id":5,"method":"GetTask"}"#).await, (-32602, json!(5)));
    for (path, version) in [("/a2a/message:send", "1.0"), ("/a2a/v1/message:send", "")] {
        let reply = world.get(path).raw("{").post().version(version).reply().await;
        assert_eq!(reply.status, 400, "{path}");
        let reply = world.get(path).raw("[]").post().version(version).reply().await;
        assert_eq!(reply.status, 400, "{path}");
    }
}

#[tokio::test]
async fn a_message_without_an_id_is_refused_and_starts_nothing() {
    let world = World::start().await;
    for (dialect, send, stream) in [
        (TestDialect::RpcV1, "SendMessage", "SendStreamingMessage"),
        (TestDialect::RpcV03, "message/send", "message/stream"),
    ] {
        let body =
            |method: &str| json!({"jsonrpc": "2.0", "method": method, "params": {"message": dialect.message("hi")}});
        let refused = |json: &Value| {
            assert_eq!((&json["id"], &json["error"]["code"]), (&Value::Null, &json!(-32600)), "{dialect:?}");
        };
        refused(&world.post("/a2a", &body(send)).reply().await.json());
        match dialect.is_v1() {
            true => refused(&world.post("/a2a", &body(stream)).reply().await.json()),
            false => refused(&world.post("/a2a", &body(stream)).events().await.rest().await[0].data),
        }
    }
    let listed = world.get("/a2a/tasks").version("1.0").reply().await;
    assert_eq!(listed.json()["totalSize"], json!(0));
}

#[tokio::test]
async fn an_open_server_has_no_extended_card() {
    let plan = Plan { default_agent: None, ..Plan::default() };
    let (world, without_root) = (World::start().await, plan.start().await);
    for dialect in ALL {
        let expected = match dialect.is_v1() {
            true => Expected(-32004, "UNSUPPORTED_OPERATION", 400, 0),
            false => Expected(-32007, "", 0, 404),
        };
        for (world, agent) in [(&world, ""), (&world, "talker"), (&without_root, "")] {
            let reply = dialect.ask(world, agent, Operation::ExtendedCard).reply().await;
            check(dialect, dialect.error(&reply), &expected);
            assert!(String::from_utf8_lossy(&reply.body).contains("this server has no keys"), "{dialect:?}");
        }
    }
}

#[tokio::test]
async fn agents_that_do_not_exist_are_answered_with_those_that_do() {
    let world = World::start().await;
    for dialect in ALL {
        for operation in [
            Operation::Send(json!({"message": dialect.message("hi")})),
            Operation::Get("x", None),
            Operation::ExtendedCard,
        ] {
            let reply = dialect.ask(&world, "unknown", operation).reply().await;
            let body = String::from_utf8_lossy(&reply.body).into_owned();
            assert_eq!(reply.status, 404, "{dialect:?}: {body}");
            assert!(body.contains("worker, talker, either"), "{dialect:?}: {body}");
        }
    }
    let reply = world.get("/a2a/unknown/.well-known/agent-card.json").reply().await;
    assert_eq!((reply.status, reply.json()["error"]["status"].clone()), (404, json!("NOT_FOUND")));
}

#[tokio::test]
async fn keys_open_only_the_agents_in_their_scope() {
    let (plan, _) = Plan::with_keys();
    let world = plan.start().await;
    for dialect in ALL {
        for operation in [
            Operation::Send(json!({"message": dialect.message("hi")})),
            Operation::Get("x", None),
            Operation::ExtendedCard,
        ] {
            let reply = dialect.ask(&world, "worker", operation).key("guest").reply().await;
            let (status, _, reason) = dialect.error(&reply);
            assert_eq!(status, 403, "{dialect:?}");
            if dialect.is_v1() {
                assert_eq!(reason, "PERMISSION_DENIED");
            }
        }
        let allowed = dialect.ask(&world, "talker", Operation::Send(json!({"message": dialect.message("say")})));
        assert_eq!(allowed.key("guest").reply().await.status, 200, "{dialect:?}");
        let stranger = dialect.ask(&world, "talker", Operation::ExtendedCard).reply().await;
        assert_eq!(dialect.error(&stranger).0, 401, "{dialect:?}");
    }
}

#[tokio::test]
async fn a_full_queue_is_a_retryable_error() {
    let mut plan = Plan::default();
    plan.settings.running_tasks = 0;
    plan.settings.queued_turns = 0;
    let world = plan.start().await;
    for dialect in ALL {
        let reply = dialect.send(&world, "hello").reply().await;
        check(dialect, dialect.error(&reply), &Expected(-32603, "OVERLOADED", 503, 503));
        assert_eq!(reply.header("retry-after"), "1", "{dialect:?}");
        let json = reply.json();
        let told = match dialect {
            TestDialect::RpcV1 => &json["error"]["data"][0]["metadata"]["retryAfterMs"],
            TestDialect::RestV1 => &json["error"]["details"][0]["metadata"]["retryAfterMs"],
            TestDialect::RpcV03 => &json["error"]["data"]["retryAfterMs"],
            TestDialect::RestV03 => &json["data"]["retryAfterMs"],
        };
        assert_eq!(told, "1000", "{json}");
    }
}

#[tokio::test]
async fn an_error_does_not_send_back_all_that_was_sent() {
    let world = World::start().await;
    let large = "x".repeat(200_000);
    let rpc = |method: &str, params: Value| json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let message = TestDialect::RpcV1.message("hi");
    let mut other_state = message.clone();
    other_state["taskId"] = large.as_str().into();
    for (method, params) in [
        ("GetTask", json!({"id": large})),
        ("tasks/get", json!({"id": large})),
        ("CancelTask", json!({"id": large})),
        ("tasks/cancel", json!({"id": large})),
        ("SubscribeToTask", json!({"id": large})),
        ("SendMessage", json!({"message": other_state})),
        ("SendMessage", json!({"tenant": large, "message": message})),
        ("ListTasks", json!({"status": large})),
        ("ListTasks", json!({"pageToken": large})),
        ("ListTasks", json!({"statusTimestampAfter": large})),
        (large.as_str(), json!({})),
    ] {
        for path in ["/a2a", "/a2a/worker"] {
            let reply = world.post(path, &rpc(method, params.clone())).reply().await;
            let shown: String = String::from_utf8_lossy(&reply.body).chars().take(300).collect();
            assert!(reply.json()["error"].is_object(), "{shown}");
            assert!(reply.body.len() < 40_000, "{} bytes: {shown}", reply.body.len());
        }
    }
    let reply = world.post("/a2a", &rpc("GetTask", json!({"id": large}))).reply().await;
    let shown = reply.json()["error"]["data"][0]["metadata"]["taskId"].as_str().unwrap().to_owned();
    let state = world.post("/a2a", &rpc("ListTasks", json!({"status": "ä".repeat(100_000)}))).reply().await.json();
    let description = state["error"]["data"][1]["fieldViolations"][0]["description"].as_str().unwrap();
    assert!(description.contains("ä … ä") && !description.ends_with('ä'), "cut in the middle: {description}");
    assert_eq!((shown.chars().count(), shown.chars().last()), (201, Some('…')));
}
