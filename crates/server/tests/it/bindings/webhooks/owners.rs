//! Webhooks are their task's caller's. To everybody else the task is not there, and so neither are they.

use serde_json::json;

use super::hook::{Hook, busy_task};
use crate::bindings::doors::{ALL, Operation};
use crate::bindings::world::Plan;

#[tokio::test]
async fn nobody_else_sees_sets_lists_or_deletes_them() {
    let (plan, _) = Plan::with_keys();
    let world = plan.and_webhooks().start().await;
    let task = busy_task(&world, "ann").await;
    let config = || json!({"id": "p1", "url": "https://hook.test/ann"});
    let set = ALL[0].hook(&world, "", Hook::Set(&task, config())).key("ann").reply().await;
    ALL[0].result(&set);
    for door in ALL {
        for (key, agent) in [("bob", ""), ("bob", "worker"), ("operator", ""), ("ann", "either")] {
            let set = Hook::Set(&task, json!({"id": "p1", "url": "https://hook.test/bob"}));
            let hooks = [set, Hook::Get(&task, Some("p1")), Hook::List(&task, json!({})), Hook::Delete(&task, "p1")];
            for hook in hooks {
                let reply = door.hook(&world, agent, hook.clone()).key(key).reply().await;
                let (status, code, _) = door.error(&reply);
                assert_eq!(status, if door.is_rpc() { 200 } else { 404 }, "{door:?} {key} {hook:?}");
                assert!(code == -32001 || code == 0, "{door:?} {key} {hook:?}: {code}");
            }
        }
        let foreign = door.hook(&world, "", Hook::List(&task, json!({}))).key("bob").reply().await.json();
        let missing = door.hook(&world, "", Hook::List("none", json!({}))).key("bob").reply().await.json();
        assert_eq!(foreign.to_string().replace(&task, "none"), missing.to_string(), "not to be told apart");
        let own = door.hook(&world, "", Hook::Get(&task, Some("p1"))).key("ann").reply().await;
        assert_eq!(door.shown(&door.result(&own))["url"], "https://hook.test/ann", "{door:?}: nothing has changed");
    }
}

#[tokio::test]
async fn a_name_is_not_looked_up_for_a_task_that_is_not_there() {
    let (plan, _) = Plan::with_keys();
    let world = plan.and_webhooks().start().await;
    let anns = busy_task(&world, "ann").await;
    for door in ALL {
        // Its name server does not answer, so that a lookup would end in another error.
        let config = || json!({"url": "https://unheard-of.test/"});
        let set = door.hook(&world, "", Hook::Set(&anns, config())).key("bob").reply().await;
        let params = json!({"message": door.answer("more", &anns), "configuration": door.with_hook(config())});
        let send = Operation::Send(params);
        let sent = door.ask(&world, "", send).key("bob").reply().await;
        for reply in [set, sent] {
            let (status, code, _) = door.error(&reply);
            assert_eq!(status, if door.is_rpc() { 200 } else { 404 }, "{door:?}: {}", reply.json());
            assert!(code == -32001 || code == 0, "{door:?}: {code}");
        }
    }
}

#[tokio::test]
async fn a_name_is_not_looked_up_for_an_agent_that_the_caller_may_not_use() {
    let (plan, _) = Plan::with_keys();
    let world = plan.and_webhooks().start().await;
    for door in ALL {
        let mut told = Vec::new();
        for url in ["https://unheard-of.test/", "https://hook.test/"] {
            let params = json!({"message": door.message("hi"), "configuration": door.with_hook(json!({"url": url}))});
            let reply = door.ask(&world, "worker", Operation::Send(params)).key("guest").reply().await;
            door.error(&reply);
            told.push(reply.json());
        }
        assert_eq!(told[0], told[1], "{door:?}: the name makes no difference");
        assert!(!told[0].to_string().contains("resolve"), "{door:?}: {}", told[0]);
    }
}
