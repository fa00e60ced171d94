//! The secrets that notifications are signed with.

use serde_json::json;

use crate::bindings::client::Ask;
use crate::bindings::world::{Plan, World};

async fn secret(world: &World, key: &str) -> serde_json::Value {
    let reply = world.get("/api/webhooks/secret").key(key).reply().await;
    assert_eq!((reply.status, reply.header("cache-control")), (200, "no-store"), "{}", reply.json());
    reply.json()
}

#[tokio::test]
async fn callers_read_their_own_and_none_those_of_a_name_they_made_up() {
    let world = Plan::with_keys().0.and_webhooks().start().await;
    let (ann, bob) = (secret(&world, "ann").await, secret(&world, "bob").await);
    assert_eq!((&ann["caller"], ann.get("previousUntil")), (&json!("ann"), None));
    let text = ann["secrets"][0].as_str().unwrap();
    assert!(text.starts_with("whsec_") && text.len() > 40, "{text}");
    assert_ne!(ann["secrets"], bob["secrets"]);
    for (key, caller) in [("ann", "ann"), ("bob", "ann"), ("operator", "ann"), ("operator", "unknown")] {
        let other = world.get(&format!("/api/webhooks/secret?caller={caller}")).key(key).reply().await;
        let message = other.json()["error"]["message"].clone();
        assert_eq!((other.status, &message), (400, &json!("there is no parameter \"caller\" here, nor any other")));
    }
    assert_eq!(world.get("/api/webhooks/secret").reply().await.status, 401);
}

#[tokio::test]
async fn a_rotation_keeps_the_old_one_for_a_while() {
    let world = Plan::with_keys().0.and_webhooks().start().await;
    let rotate = |key: &'static str, query: &str| {
        Ask::new(world.address, "POST", &format!("/api/webhooks/secret:rotate{query}")).key(key).reply()
    };
    let before = secret(&world, "ann").await;
    for other in ["ann", "operator"] {
        assert_eq!(rotate(other, "").await.status, 403, "{other}");
    }
    for bad in ["-1", "soon", "99999999999"] {
        let reply = rotate("admin", &format!("?overlapSeconds={bad}")).await;
        assert_eq!(reply.status, 400, "{bad}");
        let message = reply.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(
            message.contains("overlapSeconds") && message.contains(bad) && message.contains("31622400"),
            "{message}"
        );
    }
    assert_eq!(secret(&world, "ann").await, before, "nothing has changed");
    let rotated = rotate("admin", "").await;
    assert_eq!(rotated.status, 200, "{}", rotated.json());
    let after = secret(&world, "ann").await;
    assert_eq!(after["secrets"][1], before["secrets"][0]);
    assert_eq!(after["secrets"].as_array().unwrap().len(), 2);
    assert_eq!(after["previousUntil"], rotated.json()["previousUntil"]);
    assert_eq!(rotate("admin", "?overlapSeconds=0").await.status, 200);
    let last = secret(&world, "ann").await;
    assert_eq!(last["secrets"].as_array().unwrap().len(), 1);
    assert!(last["secrets"][0] != after["secrets"][0] && last["secrets"][0] != after["secrets"][1]);
}
