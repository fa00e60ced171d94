//! Extensions: declared, activated, insisted on.

use serde_json::json;
use switchboard_a2a::card::AgentExtension;
use switchboard_engine::{Hosted, Replies};

use super::agents::{Obedient, manifest};
use super::dialects::{ALL, Operation, TestDialect};
use super::world::{Plan, World};

const TRACE: &str = "https://ext.test/trace/v1";
const TIMES: &str = "https://ext.test/times/v1";
const RESUMPTION: &str = "urn:switchboard:a2a:last-event-id:v1";

async fn insisting(plan: Plan) -> World {
    let mut strict = manifest("strict", Replies::Task);
    let extension = |uri: &str, required| AgentExtension {
        uri: uri.to_owned(),
        description: Some("for tests".to_owned()),
        required,
        params: None,
    };
    strict.extensions = vec![extension(TRACE, true), extension(TIMES, false)];
    let mut agents = super::agents::usual(&plan.gate);
    agents.push(Hosted::new("strict", Obedient { manifest: strict, gate: plan.gate.clone() }));
    Plan { agents: Some(agents), ..plan }.start().await
}

#[tokio::test]
async fn what_is_declared_and_known_is_echoed_under_the_dialects_name() {
    let world = insisting(Plan::default()).await;
    for dialect in ALL {
        for header in ["a2a-extensions", "x-a2a-extensions"] {
            let declared = format!("{TRACE}, https://ext.test/unknown,{RESUMPTION} ,{TRACE}");
            let send = Operation::Send(json!({"message": dialect.message("hello")}));
            let reply = dialect.ask(&world, "strict", send).header(header, &declared).reply().await;
            dialect.sent_task(&reply);
            let (echoed, other) = match dialect.is_v1() {
                true => ("a2a-extensions", "x-a2a-extensions"),
                false => ("x-a2a-extensions", "a2a-extensions"),
            };
            assert_eq!(reply.header(echoed), format!("{TRACE},{RESUMPTION}"), "{dialect:?}");
            assert_eq!(reply.header(other), "");
        }
        let reply = dialect.send(&world, "hello").reply().await;
        assert!(!reply.headers.contains_key("a2a-extensions") && !reply.headers.contains_key("x-a2a-extensions"));
        let stream = Operation::Stream(json!({"message": dialect.message("hello")}));
        let events = dialect.ask(&world, "strict", stream).header("a2a-extensions", TRACE).events().await;
        assert!(events.headers.values().any(|value| value == TRACE), "{dialect:?}");
    }
}

#[tokio::test]
async fn what_the_agent_insists_on_must_be_declared() {
    let world = insisting(Plan::default()).await;
    let with_keys = insisting(Plan::with_keys().0).await;
    for dialect in ALL {
        for operation in [
            Operation::Send(json!({"message": dialect.message("hello")})),
            Operation::Stream(json!({"message": dialect.message("hello")})),
            Operation::Get("x", None),
        ] {
            let reply = dialect.ask(&world, "strict", operation).header("a2a-extensions", TIMES).reply().await;
            let body = String::from_utf8_lossy(&reply.body).into_owned();
            assert!(body.contains(TRACE), "{dialect:?}: {body}");
            let expected = match dialect {
                TestDialect::RpcV1 => (200, -32008, "EXTENSION_SUPPORT_REQUIRED"),
                TestDialect::RestV1 => (400, 0, "EXTENSION_SUPPORT_REQUIRED"),
                TestDialect::RpcV03 => (200, -32603, ""),
                TestDialect::RestV03 => (500, -32603, ""),
            };
            assert_eq!(dialect.error(&reply), (expected.0, expected.1, expected.2.to_owned()), "{dialect:?}: {body}");
        }
        // The card says what is needed, so it is there without.
        let card = dialect.ask(&with_keys, "strict", Operation::ExtendedCard).key("ann").reply().await;
        assert_eq!(dialect.result(&card)["name"], "strict", "{dialect:?}");
    }
    // At the root it counts for everything that names one of its tasks.
    let send = Operation::Send(json!({"message": TestDialect::RpcV1.message("ask")}));
    let reply = TestDialect::RpcV1.ask(&world, "strict", send).header("a2a-extensions", TRACE).reply().await;
    let task = TestDialect::RpcV1.sent_task(&reply);
    let id = task["id"].as_str().unwrap();
    for dialect in ALL {
        for operation in [
            Operation::Get(id, None),
            Operation::Cancel(id),
            Operation::Subscribe(id),
            Operation::CreatePush(id),
            Operation::GetPush(id),
            Operation::ListPush(id),
            Operation::DeletePush(id),
        ] {
            let reply = dialect.ask(&world, "", operation.clone()).reply().await;
            let body = String::from_utf8_lossy(&reply.body).into_owned();
            assert!(body.contains(TRACE), "{dialect:?} {operation:?}: {body}");
        }
        let reply = dialect.ask(&world, "", Operation::Get(id, None)).header("a2a-extensions", TRACE).reply().await;
        assert_eq!(dialect.result(&reply)["id"], id, "{dialect:?}");
    }
    let list = TestDialect::RestV1.ask(&world, "", Operation::List).reply().await;
    assert_eq!(
        TestDialect::RestV1.result(&list)["tasks"][0]["id"],
        id,
        "the list is of all agents, no agent insists there"
    );
    let others = TestDialect::RestV1.sent_task(&TestDialect::RestV1.send(&world, "hello").reply().await);
    let reply = TestDialect::RestV1.ask(&world, "", Operation::Get(others["id"].as_str().unwrap(), None)).reply().await;
    assert_eq!(TestDialect::RestV1.result(&reply)["id"], others["id"], "another agent's task");
    let answer = Operation::Send(json!({"message": TestDialect::RpcV1.answer("Rome", id)}));
    let reply = TestDialect::RpcV1.ask(&world, "", answer.clone()).reply().await;
    assert_eq!(TestDialect::RpcV1.error(&reply).1, -32008);
    let reply = TestDialect::RpcV1.ask(&world, "", answer).header("a2a-extensions", TRACE).reply().await;
    assert_eq!(TestDialect::RpcV1.sent_task(&reply)["status"]["state"], "TASK_STATE_COMPLETED");
}
