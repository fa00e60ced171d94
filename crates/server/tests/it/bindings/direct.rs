//! Agents that answer with a message instead of a task.

use serde_json::json;

use super::dialects::{ALL, Operation, TestDialect};
use super::world::World;

#[tokio::test]
async fn a_direct_reply_is_a_message_and_leaves_no_task() {
    let world = World::start().await;
    for agent in ["talker", "either"] {
        for dialect in ALL {
            let message = json!({"message": dialect.message("say")});
            let result = dialect.result(&dialect.ask(&world, agent, Operation::Send(message.clone())).reply().await);
            let reply = if dialect == TestDialect::RpcV03 { result } else { result["message"].clone() };
            let parts = if dialect == TestDialect::RestV03 { "content" } else { "parts" };
            assert_eq!(reply[parts][0]["text"], "said directly", "{agent} {dialect:?}: {reply}");
            assert_eq!(reply["role"], if dialect == TestDialect::RpcV03 { "agent" } else { "ROLE_AGENT" });
            assert!(reply["contextId"].is_string(), "{reply}");
            let frames = dialect.ask(&world, agent, Operation::Stream(message)).events().await.rest().await;
            assert_eq!(dialect.story(&frames), ["message"], "{agent} {dialect:?}");
            assert_eq!(frames[0].id, None, "there is no log to go on from");
        }
    }
    assert_eq!(world.get("/tasks").version("1.0").reply().await.json()["totalSize"], json!(0));
}

#[tokio::test]
async fn an_agent_that_does_either_may_make_a_task() {
    let world = World::start().await;
    for dialect in ALL {
        let message = json!({"message": dialect.message("hello")});
        let task = dialect.sent_task(&dialect.ask(&world, "either", Operation::Send(message.clone())).reply().await);
        assert_eq!(task["status"]["state"], dialect.state("completed"), "{dialect:?}");
        let frames = dialect.ask(&world, "either", Operation::Stream(message)).events().await.rest().await;
        let told = ["task submitted", "statusUpdate working", "artifactUpdate", "statusUpdate completed"];
        assert_eq!(dialect.story(&frames), told, "{dialect:?}");
    }
}

#[tokio::test]
async fn a_sender_that_does_not_wait_gets_a_task_of_an_agent_that_does_either() {
    let world = World::start().await;
    let dialect = TestDialect::RpcV1;
    let params = json!({"message": dialect.message("wait, then say"), "configuration": {"returnImmediately": true}});
    let task = dialect.sent_task(&dialect.ask(&world, "either", Operation::Send(params)).reply().await);
    let id = task["id"].as_str().unwrap();
    let events = dialect.ask(&world, "either", Operation::Subscribe(id)).events().await;
    world.gate.add_permits(1);
    let frames = events.rest().await;
    let (name, last) = dialect.event(frames.last().unwrap());
    assert_eq!((name.as_str(), &last["status"]["state"]), ("statusUpdate", &json!("TASK_STATE_COMPLETED")));
    assert_eq!(last["status"]["message"]["parts"][0]["text"], "said late");
}
