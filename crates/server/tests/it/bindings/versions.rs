//! Which version a request speaks: the table of the edge, line by line.

use serde_json::{Value, json};

use super::dialects::TestDialect;
use super::world::{Plan, World};

/// What came back: the version in the header and the code, zero being a success.
async fn rpc(world: &World, method: &str, version: &str) -> (String, i64, Value) {
    let is_v1 = !method.contains('/');
    let message = if is_v1 { TestDialect::RpcV1.message("hello") } else { TestDialect::RpcV03.message("hello") };
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"message": message}});
    let reply = world.post("/a2a", &body).version(version).reply().await;
    assert_eq!(reply.status, 200);
    let json = reply.json();
    (reply.header("a2a-version").to_owned(), json["error"]["code"].as_i64().unwrap_or(0), json)
}

async fn rest(world: &World, path: &str, version: &str) -> (String, u16, Value) {
    let reply = world.get(path).version(version).reply().await;
    (reply.header("a2a-version").to_owned(), reply.status, reply.json())
}

#[tokio::test]
async fn json_rpc_goes_by_the_method() {
    let world = World::start().await;
    for (method, version, spoken, code) in [
        ("SendMessage", "", "1.0", 0),
        ("SendMessage", "1.0", "1.0", 0),
        ("SendMessage", "1.0.3", "1.0", 0),
        ("SendMessage", "1.7", "1.0", -32009),
        ("SendMessage", "0.3", "1.0", -32009),
        ("SendMessage", "2.0", "1.0", -32009),
        ("SendMessage", "banana", "1.0", -32009),
        ("message/send", "", "0.3", 0),
        ("message/send", "0.3", "0.3", 0),
        ("message/send", "0.3.0", "0.3", 0),
        ("message/send", "1.0", "0.3", -32601),
        ("message/send", "1.7", "0.3", -32601),
        ("message/send", "0.9", "0.3", -32603),
        ("message/send", "banana", "0.3", -32603),
        ("Unknown", "", "1.0", -32601),
        ("un/known", "", "0.3", -32601),
        ("un/known", "1.0", "1.0", -32601),
    ] {
        let (header, found, json) = rpc(&world, method, version).await;
        assert_eq!((header.as_str(), found), (spoken, code), "{method} with {version:?}: {json}");
        if code == -32009 {
            let info = &json["error"]["data"][0];
            assert_eq!(info["reason"], "VERSION_NOT_SUPPORTED");
            assert_eq!(info["metadata"]["supportedVersions"], "1.0,0.3");
        }
        if code == -32603 {
            assert!(json["error"]["message"].as_str().unwrap().contains(version), "{json}");
        }
    }
}

#[tokio::test]
async fn a_method_of_the_other_version_is_answered_with_what_to_send() {
    let world = World::start().await;
    for (method, version, told) in [
        (
            "SendMessage",
            "0.3",
            "Version not supported: SendMessage belongs to version 1.0, and the request says 0.3; send A2A-Version: 1.0, \
             or message/send",
        ),
        (
            "message/send",
            "1.0",
            "Method not found: message/send belongs to version 0.3, and the request says 1.0; send SendMessage, or \
             A2A-Version: 0.3",
        ),
        ("SendMessage", "1.7", "Version not supported: 1.7; send A2A-Version: 1.0 with SendMessage"),
        ("message/send", "banana", "Version not supported: \"banana\"; send A2A-Version: 0.3 with message/send"),
    ] {
        assert_eq!(rpc(&world, method, version).await.2["error"]["message"], told);
    }
    let (_, _, json) = rest(&world, "/a2a/tasks", "0.9").await;
    assert_eq!(json["error"]["message"], "Version not supported: 0.9; send A2A-Version: 1.0 or 0.3");
}

#[tokio::test]
async fn rest_goes_by_the_header_and_then_by_the_path() {
    let world = World::start().await;
    let task = TestDialect::RpcV1.sent_task(&TestDialect::RpcV1.send(&world, "hello").reply().await);
    let id = task["id"].as_str().unwrap();
    for (prefix, version, spoken, status) in [
        ("", "", "1.0", 200),
        ("", "1.0", "1.0", 200),
        ("", "1.0.1", "1.0", 200),
        ("", "1.7", "1.0", 400),
        ("", "0.3", "0.3", 200),
        ("", "0.9", "1.0", 400),
        ("", "banana", "1.0", 400),
        ("/v1", "", "0.3", 200),
        ("/v1", "0.3.0", "0.3", 200),
        ("/v1", "1.0", "1.0", 200),
        ("/v1", "1.7", "1.0", 400),
        ("/v1", "0.9", "0.3", 500),
    ] {
        let (header, found, json) = rest(&world, &format!("/a2a{prefix}/tasks/{id}"), version).await;
        assert_eq!((header.as_str(), found), (spoken, status), "{prefix:?} with {version:?}: {json}");
        match (status, spoken) {
            (200, "1.0") => assert!(json["history"][0]["parts"].is_array(), "{json}"),
            (200, _) => assert!(json["history"][0]["content"].is_array(), "{json}"),
            (_, "1.0") => assert_eq!(json["error"]["details"][0]["reason"], "VERSION_NOT_SUPPORTED"),
            _ => assert_eq!(json["code"], json!(-32603)),
        }
    }
    // The query counts as the header; a header goes first.
    let by_query = rest(&world, &format!("/a2a/tasks/{id}?A2A-Version=0.3"), "").await;
    assert_eq!((by_query.0.as_str(), by_query.1), ("0.3", 200));
    let by_header = rest(&world, &format!("/a2a/tasks/{id}?A2A-Version=0.3"), "1.0").await;
    assert_eq!((by_header.0.as_str(), by_header.1), ("1.0", 200));
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": id}});
    let refused = world.post("/a2a?A2A-Version=0.3", &body).reply().await;
    assert_eq!(refused.json()["error"]["code"], json!(-32009));
}

#[tokio::test]
async fn headers_that_name_different_versions_are_refused() {
    let world = World::start().await;
    let told = "Invalid parameters: A2A-Version: is there more than once, with different versions: send it once";
    let message = TestDialect::RpcV1.message("hello");
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}});
    for (first, second, is_refused) in [
        ("1.0", "0.3", true),
        ("0.3", "1.0", true),
        ("1.0", "banana", true),
        ("1.0", "1.0", false),
        ("1.0", "1.0.1", false),
    ] {
        let reply = world.post("/a2a", &body).version(first).version(second).reply().await.json();
        let error = &reply["error"];
        let wanted = if is_refused { (json!(-32602), json!(told)) } else { (Value::Null, Value::Null) };
        assert_eq!((&error["code"], &error["message"]), (&wanted.0, &wanted.1), "{first} and {second}");
        for path in ["/a2a/tasks", "/a2a/v1/tasks", "/.well-known/agent-card.json"] {
            let reply = world.get(path).version(first).version(second).reply().await;
            assert_eq!(reply.status, if is_refused { 400 } else { 200 }, "{path} with {first} and {second}");
        }
    }
}

#[tokio::test]
async fn a_strict_server_wants_the_version_named() {
    let mut plan = Plan::default();
    plan.options.strict_version = true;
    let world = plan.start().await;
    assert_eq!(rpc(&world, "SendMessage", "").await.1, -32009);
    assert_eq!(rpc(&world, "SendMessage", "1.0").await.1, 0);
    assert_eq!(rpc(&world, "message/send", "").await.1, 0);
    assert_eq!(rest(&world, "/a2a/tasks", "").await.1, 400);
    assert_eq!(rest(&world, "/a2a/tasks", "1.0").await.1, 200);
    let by_query = world.get("/a2a/tasks?A2A-Version=1.0").reply().await;
    assert_eq!(by_query.status, 200);
}

#[tokio::test]
async fn a_version_in_the_query_is_found_in_any_spelling() {
    let world = World::start().await;
    for (query, code) in [
        ("a2a-version=0.3", Some(-32009)),
        ("x=%ff&A2A%2DVERSION=%30.3", Some(-32009)),
        ("A2A-Version=%ff", Some(-32009)),
        ("A2A-Version=%31.0", None),
        ("A2A-Versions=0.3", None),
    ] {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ListTasks"});
        let reply = world.post(&format!("/a2a?{query}"), &body).reply().await.json();
        assert_eq!(reply["error"]["code"].as_i64(), code, "{query}: {reply}");
    }
}
