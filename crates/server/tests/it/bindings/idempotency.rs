//! Safe retries: the same key means the same message.

use serde_json::{Value, json};
use switchboard_engine::{Hosted, Replies, Served, Switches};

use super::agents::{Obedient, manifest};
use super::client::Ask;
use super::dialects::{ALL, Operation, TestDialect};
use super::world::{Plan, World};

fn keyed(world: &World, dialect: TestDialect, text: &str, key: &str) -> Ask {
    dialect.send(world, text).header("idempotency-key", key)
}

async fn total(world: &World) -> Value {
    world.get("/tasks").version("1.0").reply().await.json()["totalSize"].clone()
}

#[tokio::test]
async fn the_same_key_twice_at_once_is_one_task() {
    let world = World::start().await;
    for (number, dialect) in ALL.into_iter().enumerate() {
        let key = format!("key {number}");
        let (first, second) =
            tokio::join!(keyed(&world, dialect, "hello", &key).reply(), keyed(&world, dialect, "hello", &key).reply());
        let (first, second) = (dialect.sent_task(&first), dialect.sent_task(&second));
        assert_eq!(first, second, "{dialect:?}");
        assert_eq!(total(&world).await, json!(number + 1));
    }
}

#[tokio::test]
async fn a_duplicate_acts_as_the_original_whatever_its_dialect() {
    let world = World::start().await;
    let original = TestDialect::RpcV1.sent_task(&keyed(&world, TestDialect::RpcV1, "hello", "k").reply().await);
    let id = original["id"].as_str().unwrap();
    // The digest is of the message as the model has it, so another dialect says the same thing.
    for dialect in ALL {
        let again = dialect.sent_task(&keyed(&world, dialect, "hello", "k").reply().await);
        assert_eq!(again["id"], id, "{dialect:?}");
        let stream = Operation::Stream(json!({"message": dialect.message("hello")}));
        let frames = dialect.ask(&world, "", stream).header("idempotency-key", "k").events().await.rest().await;
        let told = ["task submitted", "statusUpdate working", "artifactUpdate", "statusUpdate completed"];
        assert_eq!(dialect.story(&frames), told, "{dialect:?}");
        let stream = Operation::Stream(json!({"message": dialect.message("hello")}));
        let seen = frames[1].id.as_deref().unwrap();
        let ask = dialect.ask(&world, "", stream).header("idempotency-key", "k").header("last-event-id", seen);
        assert_eq!(ask.events().await.rest().await, frames[2..], "{dialect:?}");
    }
    assert_eq!(total(&world).await, json!(1));
}

#[tokio::test]
async fn a_direct_reply_is_remembered_for_its_key() {
    let world = World::start().await;
    let dialect = TestDialect::RestV1;
    let ask = || {
        let send = Operation::Send(json!({"message": dialect.message("say")}));
        dialect.ask(&world, "talker", send).header("idempotency-key", "k").reply()
    };
    let first = dialect.result(&ask().await);
    assert!(first["message"]["messageId"].is_string());
    assert_eq!(dialect.result(&ask().await), first);
}

#[tokio::test]
async fn keys_of_the_server_itself_are_refused() {
    let world = World::start().await;
    for dialect in ALL {
        for refused in ["switchboard:", "switchboard:ceremony:daily:1"] {
            let reply = keyed(&world, dialect, "hello", refused).reply().await;
            let (status, code, _) = dialect.error(&reply);
            assert_eq!(status, if dialect.is_rpc() { 200 } else { 400 }, "{dialect:?}");
            assert!(code == -32602 || !dialect.is_rpc(), "{dialect:?}: {code}");
            let text = reply.json().to_string();
            assert!(text.contains("Idempotency-Key") && text.contains("begins with switchboard:"), "{text}");
        }
        dialect.sent_task(&keyed(&world, dialect, "hello", "my-switchboard:1").reply().await);
    }
    assert_eq!(total(&world).await, json!(1));
}

#[tokio::test]
async fn another_body_under_the_same_key_is_refused() {
    let world = World::start().await;
    for (number, dialect) in ALL.into_iter().enumerate() {
        let key = format!("key {number}");
        keyed(&world, dialect, "hello", &key).reply().await;
        let reply = keyed(&world, dialect, "something else", &key).reply().await;
        let (status, code, reason) = dialect.error(&reply);
        assert_eq!(status, if dialect.is_rpc() { 200 } else { 409 }, "{dialect:?}");
        assert!(code == -32602 || reason == "IDEMPOTENCY_KEY_REUSED", "{dialect:?}: {code} {reason}");
        let json = reply.json();
        let told = match dialect {
            TestDialect::RpcV1 => &json["error"]["data"][0]["reason"],
            TestDialect::RestV1 => &json["error"]["details"][0]["reason"],
            TestDialect::RpcV03 => &json["error"]["data"]["reason"],
            TestDialect::RestV03 => &json["data"]["reason"],
        };
        assert_eq!(told, "IDEMPOTENCY_KEY_REUSED", "{dialect:?}: {json}");
        if dialect == TestDialect::RestV1 {
            assert_eq!(reply.json()["error"]["status"], "ALREADY_EXISTS");
        }
        // The same key at another address is another key.
        let elsewhere = Operation::Send(json!({"message": dialect.message("something else")}));
        let reply = dialect.ask(&world, "worker", elsewhere).header("idempotency-key", &key).reply().await;
        assert_eq!(reply.status, 200, "{dialect:?}");
    }
    let long = "k".repeat(256);
    assert_eq!(keyed(&world, TestDialect::RestV1, "hello", &long).reply().await.status, 400);
}

#[tokio::test]
async fn message_ids_are_keys_only_where_the_agent_is_switched() {
    let world = World::start().await;
    let dialect = TestDialect::RpcV1;
    let send = async |world: &World| dialect.sent_task(&dialect.send(world, "hello").reply().await)["id"].clone();
    assert_ne!(send(&world).await, send(&world).await);
    let plan = Plan::default();
    let agent = Obedient { manifest: manifest("worker", Replies::Task), gate: plan.gate.clone() };
    let switches = Switches { dedupe_message_id: true, ..Switches::default() };
    let plan = Plan { agents: Some(vec![Hosted::serving("worker", Served::new(agent).switches(switches))]), ..plan };
    let world = plan.start().await;
    assert_eq!(send(&world).await, send(&world).await);
    for dialect in ALL {
        let reply = dialect.send(&world, "something else").reply().await;
        let json = reply.json();
        let error = if dialect == TestDialect::RestV03 { &json } else { &json["error"] };
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("messageId \"m1\"") && !message.contains("idempotency"), "{dialect:?}: {message}");
        assert_eq!(dialect.error(&reply).0, if dialect.is_rpc() { 200 } else { 409 }, "{dialect:?}");
    }
}

#[tokio::test]
async fn a_key_that_is_sent_twice_is_refused_even_if_both_are_equal() {
    let world = World::start().await;
    for (dialect, second) in ALL.into_iter().flat_map(|dialect| [(dialect, "k"), (dialect, "other"), (dialect, "")]) {
        let reply = keyed(&world, dialect, "hello", "k").header("idempotency-key", second).reply().await;
        let (status, code, reason) = dialect.error(&reply);
        assert_eq!(status, if dialect.is_rpc() { 200 } else { 400 }, "{dialect:?}");
        assert!(code == -32602 || reason == "INVALID_PARAMS", "{dialect:?}: {code} {reason}");
        assert!(reply.json().to_string().contains("Idempotency-Key"), "{dialect:?}: {}", reply.json());
    }
    assert_eq!(total(&world).await, json!(0));
}
