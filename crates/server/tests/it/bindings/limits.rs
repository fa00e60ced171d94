//! Limits that a request or a caller can hit, each with an error that names it.

use serde_json::{Value, json};

use super::dialects::{ALL, Operation, TestDialect};
use super::world::{Plan, World};

#[tokio::test]
async fn a_message_of_too_many_parts_is_refused() {
    let mut plan = Plan::default();
    plan.options.max_parts = 3;
    let world = plan.start().await;
    for dialect in ALL {
        let member = if dialect == TestDialect::RestV03 { "content" } else { "parts" };
        let send = async |count: usize| {
            let mut message = dialect.message("part");
            let part = message[member][0].clone();
            message[member] = Value::Array(vec![part; count]);
            dialect.ask(&world, "", Operation::Send(json!({"message": message}))).reply().await
        };
        dialect.sent_task(&send(3).await);
        let body = String::from_utf8_lossy(&send(4).await.body).into_owned();
        assert!(body.contains("4 parts are over the limit of 3"), "{dialect:?}: {body}");
    }
}

#[tokio::test]
async fn json_of_too_many_levels_is_refused() {
    let world = World::start().await;
    let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    for dialect in ALL {
        for (levels, fine) in [(50, true), (70, false), (5_000, false)] {
            let mut message = dialect.message("hello");
            message["metadata"] = json!({"deep": "HERE"});
            let ask = dialect.ask(&world, "", Operation::Send(json!({"message": message})));
            let reply = ask.replace("\"HERE\"", &nested(levels)).reply().await;
            let body = String::from_utf8_lossy(&reply.body).into_owned();
            assert_eq!(!body.contains("deeper than the limit of 64 levels"), fine, "{dialect:?} {levels}: {body}");
        }
    }
}

#[tokio::test]
async fn a_caller_has_so_many_streams_and_no_more() {
    let (mut plan, _) = Plan::with_keys();
    plan.options.streams = 3;
    plan.options.streams_per_caller = 2;
    let world = plan.start().await;
    let dialect = TestDialect::RestV1;
    let ask =
        |key: &str| dialect.ask(&world, "", Operation::Stream(json!({"message": dialect.message("hold")}))).key(key);
    let refused = async |key: &str, words: &str| {
        let reply = ask(key).reply().await;
        assert!(reply.json()["error"]["message"].as_str().unwrap().contains(words), "{}", reply.json());
        assert_eq!(dialect.error(&reply), (503, 0, "OVERLOADED".to_owned()));
        assert_eq!(reply.header("retry-after"), "1");
    };
    let mut first = ask("ann").events().await;
    let id = dialect.event(&first.next().await.unwrap()).1["id"].as_str().unwrap().to_owned();
    let _second = ask("ann").events().await;
    refused("ann", "2 open streams").await;
    let _third = ask("bob").events().await;
    refused("bob", "limits.streams").await;
    let listed = world.get("/tasks").version("1.0").key("ann").reply().await.json();
    assert_eq!(listed["totalSize"], json!(2), "a refused stream begins no task");
    // The place of a stream that has ended is free again.
    dialect.ask(&world, "", Operation::Cancel(&id)).key("ann").reply().await;
    first.rest().await;
    ask("ann").events().await;
}

#[tokio::test]
async fn ids_of_any_shape_are_only_unknown() {
    let world = World::start().await;
    for id in ["a%2Fb", "a%3Ab", "%25", "x%20y", "a:b"] {
        let reply = world.get(&format!("/a2a/tasks/{id}")).version("1.0").reply().await;
        assert_eq!(TestDialect::RestV1.error(&reply), (404, 0, "TASK_NOT_FOUND".to_owned()), "{id}");
    }
}
