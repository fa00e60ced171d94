//! Safe retries: the same key means the same message.

use serde_json::{Value, json};
use switchboard_engine::{Hosted, Replies, Switches};

use super::agents::{Obedient, manifest};
use super::client::Ask;
use super::doors::{ALL, Door, Operation};
use super::world::{Plan, World};

fn keyed(world: &World, door: Door, text: &str, key: &str) -> Ask {
    door.send(world, text).header("idempotency-key", key)
}

async fn total(world: &World) -> Value {
    world.get("/tasks").version("1.0").reply().await.json()["totalSize"].clone()
}

#[tokio::test]
async fn the_same_key_twice_at_once_is_one_task() {
    let world = World::start().await;
    for (number, door) in ALL.into_iter().enumerate() {
        let key = format!("key {number}");
        let (first, second) =
            tokio::join!(keyed(&world, door, "hello", &key).reply(), keyed(&world, door, "hello", &key).reply());
        let (first, second) = (door.sent_task(&first), door.sent_task(&second));
        assert_eq!(first, second, "{door:?}");
        assert_eq!(total(&world).await, json!(number + 1));
    }
}

#[tokio::test]
async fn a_duplicate_acts_as_the_original_whatever_its_dialect() {
    let world = World::start().await;
    let original = Door::RpcV1.sent_task(&keyed(&world, Door::RpcV1, "hello", "k").reply().await);
    let id = original["id"].as_str().unwrap();
    // The digest is of the message as the model has it, so another dialect says the same thing.
    for door in ALL {
        let again = door.sent_task(&keyed(&world, door, "hello", "k").reply().await);
        assert_eq!(again["id"], id, "{door:?}");
        let stream = Operation::Stream(json!({"message": door.message("hello")}));
        let frames = door.ask(&world, "", stream).header("idempotency-key", "k").events().await.rest().await;
        let told = ["task submitted", "statusUpdate working", "artifactUpdate", "statusUpdate completed"];
        assert_eq!(door.story(&frames), told, "{door:?}");
        let stream = Operation::Stream(json!({"message": door.message("hello")}));
        let seen = frames[1].id.as_deref().unwrap();
        let ask = door.ask(&world, "", stream).header("idempotency-key", "k").header("last-event-id", seen);
        assert_eq!(ask.events().await.rest().await, frames[2..], "{door:?}");
    }
    assert_eq!(total(&world).await, json!(1));
}

#[tokio::test]
async fn a_direct_reply_is_remembered_for_its_key() {
    let world = World::start().await;
    let door = Door::RestV1;
    let ask = || {
        let send = Operation::Send(json!({"message": door.message("say")}));
        door.ask(&world, "talker", send).header("idempotency-key", "k").reply()
    };
    let first = door.result(&ask().await);
    assert!(first["message"]["messageId"].is_string());
    assert_eq!(door.result(&ask().await), first);
}

#[tokio::test]
async fn another_body_under_the_same_key_is_refused() {
    let world = World::start().await;
    for (number, door) in ALL.into_iter().enumerate() {
        let key = format!("key {number}");
        keyed(&world, door, "hello", &key).reply().await;
        let reply = keyed(&world, door, "something else", &key).reply().await;
        let (status, code, reason) = door.error(&reply);
        assert_eq!(status, if door.is_rpc() { 200 } else { 409 }, "{door:?}");
        assert!(code == -32602 || reason == "IDEMPOTENCY_KEY_REUSED", "{door:?}: {code} {reason}");
        let json = reply.json();
        let told = match door {
            Door::RpcV1 => &json["error"]["data"][0]["reason"],
            Door::RestV1 => &json["error"]["details"][0]["reason"],
            Door::RpcV03 => &json["error"]["data"]["reason"],
            Door::RestV03 => &json["data"]["reason"],
        };
        assert_eq!(told, "IDEMPOTENCY_KEY_REUSED", "{door:?}: {json}");
        if door == Door::RestV1 {
            assert_eq!(reply.json()["error"]["status"], "ALREADY_EXISTS");
        }
        // The same key at another address is another key.
        let elsewhere = Operation::Send(json!({"message": door.message("something else")}));
        let reply = door.ask(&world, "worker", elsewhere).header("idempotency-key", &key).reply().await;
        assert_eq!(reply.status, 200, "{door:?}");
    }
    let long = "k".repeat(256);
    assert_eq!(keyed(&world, Door::RestV1, "hello", &long).reply().await.status, 400);
}

#[tokio::test]
async fn message_ids_are_keys_only_where_the_agent_is_switched() {
    let world = World::start().await;
    let door = Door::RpcV1;
    let send = async |world: &World| door.sent_task(&door.send(world, "hello").reply().await)["id"].clone();
    assert_ne!(send(&world).await, send(&world).await);
    let plan = Plan::default();
    let agent = Obedient { manifest: manifest("worker", Replies::Task), gate: plan.gate.clone() };
    let switches = Switches { dedupe_message_id: true, ..Switches::default() };
    let plan = Plan { agents: Some(vec![Hosted::new("worker", agent).switches(switches)]), ..plan };
    let world = plan.start().await;
    assert_eq!(send(&world).await, send(&world).await);
    for door in ALL {
        let reply = door.send(&world, "something else").reply().await;
        let json = reply.json();
        let error = if door == Door::RestV03 { &json } else { &json["error"] };
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("messageId \"m1\"") && !message.contains("idempotency"), "{door:?}: {message}");
        assert_eq!(door.error(&reply).0, if door.is_rpc() { 200 } else { 409 }, "{door:?}");
    }
}

#[tokio::test]
async fn a_key_that_is_sent_twice_is_refused_even_if_both_are_equal() {
    let world = World::start().await;
    for (door, second) in ALL.into_iter().flat_map(|door| [(door, "k"), (door, "other"), (door, "")]) {
        let reply = keyed(&world, door, "hello", "k").header("idempotency-key", second).reply().await;
        let (status, code, reason) = door.error(&reply);
        assert_eq!(status, if door.is_rpc() { 200 } else { 400 }, "{door:?}");
        assert!(code == -32602 || reason == "INVALID_PARAMS", "{door:?}: {code} {reason}");
        assert!(reply.json().to_string().contains("Idempotency-Key"), "{door:?}: {}", reply.json());
    }
    assert_eq!(total(&world).await, json!(0));
}
