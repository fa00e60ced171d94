//! Extensions: declared, activated, insisted on.

use serde_json::json;
use switchboard_engine::{Extension, Hosted, Replies};

use super::agents::{Obedient, manifest};
use super::doors::{ALL, Door, Operation};
use super::world::{Plan, World};

const TRACE: &str = "https://ext.test/trace/v1";
const TIMES: &str = "https://ext.test/times/v1";
const RESUMPTION: &str = "urn:switchboard:a2a:last-event-id:v1";

async fn insisting(plan: Plan) -> World {
    let mut strict = manifest("strict", Replies::Task);
    let extension =
        |uri: &str, required| Extension { uri: uri.to_owned(), description: "for tests".to_owned(), required };
    strict.extensions = vec![extension(TRACE, true), extension(TIMES, false)];
    let mut agents = super::agents::usual(&plan.gate);
    agents.push(Hosted::new("strict", Obedient { manifest: strict, gate: plan.gate.clone() }));
    Plan { agents: Some(agents), ..plan }.start().await
}

#[tokio::test]
async fn what_is_declared_and_known_is_echoed_under_the_dialects_name() {
    let world = insisting(Plan::default()).await;
    for door in ALL {
        for header in ["a2a-extensions", "x-a2a-extensions"] {
            let declared = format!("{TRACE}, https://ext.test/unknown,{RESUMPTION} ,{TRACE}");
            let send = Operation::Send(json!({"message": door.message("hello")}));
            let reply = door.ask(&world, "strict", send).header(header, &declared).reply().await;
            door.sent_task(&reply);
            let (echoed, other) = match door.is_v1() {
                true => ("a2a-extensions", "x-a2a-extensions"),
                false => ("x-a2a-extensions", "a2a-extensions"),
            };
            assert_eq!(reply.header(echoed), format!("{TRACE},{RESUMPTION}"), "{door:?}");
            assert_eq!(reply.header(other), "");
        }
        let reply = door.send(&world, "hello").reply().await;
        assert!(!reply.headers.contains_key("a2a-extensions") && !reply.headers.contains_key("x-a2a-extensions"));
        let stream = Operation::Stream(json!({"message": door.message("hello")}));
        let events = door.ask(&world, "strict", stream).header("a2a-extensions", TRACE).events().await;
        assert!(events.headers.values().any(|value| value == TRACE), "{door:?}");
    }
}

#[tokio::test]
async fn what_the_agent_insists_on_must_be_declared() {
    let world = insisting(Plan::default()).await;
    let with_keys = insisting(Plan::with_keys().0).await;
    for door in ALL {
        for operation in [
            Operation::Send(json!({"message": door.message("hello")})),
            Operation::Stream(json!({"message": door.message("hello")})),
            Operation::Get("x", None),
        ] {
            let reply = door.ask(&world, "strict", operation).header("a2a-extensions", TIMES).reply().await;
            let body = String::from_utf8_lossy(&reply.body).into_owned();
            assert!(body.contains(TRACE), "{door:?}: {body}");
            let expected = match door {
                Door::RpcV1 => (200, -32008, "EXTENSION_SUPPORT_REQUIRED"),
                Door::RestV1 => (400, 0, "EXTENSION_SUPPORT_REQUIRED"),
                Door::RpcV03 => (200, -32603, ""),
                Door::RestV03 => (500, -32603, ""),
            };
            assert_eq!(door.error(&reply), (expected.0, expected.1, expected.2.to_owned()), "{door:?}: {body}");
        }
        // The card says what is needed, so it is there without.
        let card = door.ask(&with_keys, "strict", Operation::ExtendedCard).key("ann").reply().await;
        assert_eq!(door.result(&card)["name"], "strict", "{door:?}");
    }
    // At the root it counts for everything that names one of its tasks.
    let send = Operation::Send(json!({"message": Door::RpcV1.message("ask")}));
    let reply = Door::RpcV1.ask(&world, "strict", send).header("a2a-extensions", TRACE).reply().await;
    let task = Door::RpcV1.sent_task(&reply);
    let id = task["id"].as_str().unwrap();
    for door in ALL {
        for operation in [
            Operation::Get(id, None),
            Operation::Cancel(id),
            Operation::Subscribe(id),
            Operation::CreatePush(id),
            Operation::GetPush(id),
            Operation::ListPush(id),
            Operation::DeletePush(id),
        ] {
            let reply = door.ask(&world, "", operation.clone()).reply().await;
            let body = String::from_utf8_lossy(&reply.body).into_owned();
            assert!(body.contains(TRACE), "{door:?} {operation:?}: {body}");
        }
        let reply = door.ask(&world, "", Operation::Get(id, None)).header("a2a-extensions", TRACE).reply().await;
        assert_eq!(door.result(&reply)["id"], id, "{door:?}");
    }
    let list = Door::RestV1.ask(&world, "", Operation::List).reply().await;
    assert_eq!(Door::RestV1.result(&list)["tasks"][0]["id"], id, "the list is of all agents, nobody insists there");
    let others = Door::RestV1.sent_task(&Door::RestV1.send(&world, "hello").reply().await);
    let reply = Door::RestV1.ask(&world, "", Operation::Get(others["id"].as_str().unwrap(), None)).reply().await;
    assert_eq!(Door::RestV1.result(&reply)["id"], others["id"], "another agent's task");
    let answer = Operation::Send(json!({"message": Door::RpcV1.answer("Rome", id)}));
    let reply = Door::RpcV1.ask(&world, "", answer.clone()).reply().await;
    assert_eq!(Door::RpcV1.error(&reply).1, -32008);
    let reply = Door::RpcV1.ask(&world, "", answer).header("a2a-extensions", TRACE).reply().await;
    assert_eq!(Door::RpcV1.sent_task(&reply)["status"]["state"], "TASK_STATE_COMPLETED");
}
