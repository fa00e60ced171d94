//! At the root a caller's metadata picks the agent; what it means is the kernel's, that it arrives is ours.

use serde_json::{Value, json};

use super::dialects::{ALL, Operation, TestDialect};
use super::world::World;

/// Says something to an agent that answers with a message, if it gets there.
async fn say(
    world: &World,
    dialect: TestDialect,
    address: &str,
    of_message: Value,
    of_request: Value,
) -> (u16, String) {
    let mut message = dialect.message("say");
    message["metadata"] = of_message;
    let parameters = json!({"message": message, "metadata": of_request});
    let reply = dialect.ask(world, address, Operation::Send(parameters)).reply().await;
    (reply.status, String::from_utf8_lossy(&reply.body).into_owned())
}

#[tokio::test]
async fn a_target_in_either_metadata_picks_the_agent_at_the_root_only() {
    let world = World::start().await;
    for dialect in ALL {
        for (of_message, of_request) in
            [(json!({"targets": "talker"}), json!({})), (json!({}), json!({"targets": ["talker"]}))]
        {
            let (_, at_root) = say(&world, dialect, "", of_message.clone(), of_request.clone()).await;
            assert!(at_root.contains("said directly") && !at_root.contains("TASK_STATE"), "{dialect:?}: {at_root}");
            let (_, at_worker) = say(&world, dialect, "worker", of_message, of_request).await;
            assert!(
                at_worker.to_lowercase().contains("completed"),
                "{dialect:?} did not reach the worker: {at_worker}"
            );
        }
        let (_, refused) = say(&world, dialect, "", json!({"targets": "zed"}), json!({})).await;
        assert!(refused.contains("zed") && refused.contains("worker, talker, either"), "{dialect:?}: {refused}");
    }
}

#[tokio::test]
async fn metadata_of_the_wrong_type_is_named() {
    let world = World::start().await;
    for dialect in ALL {
        for (of_message, of_request, field) in [
            (json!({"skill": 7}), json!({}), "message.metadata.skill"),
            (json!({}), json!({"profile": []}), "metadata.profile"),
            (json!({"targets": {}}), json!({}), "message.metadata.targets"),
        ] {
            for agent in ["", "worker"] {
                let (status, refused) = say(&world, dialect, agent, of_message.clone(), of_request.clone()).await;
                assert_eq!(status, if dialect.is_rpc() { 200 } else { 400 }, "{dialect:?} {agent}: {refused}");
                assert!(refused.contains(field), "{dialect:?} {agent} does not name {field}: {refused}");
                assert!(!dialect.is_rpc() || refused.contains("-32602"), "{dialect:?} {agent}: {refused}");
            }
        }
    }
}
