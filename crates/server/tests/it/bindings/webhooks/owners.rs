//! Webhooks are their task's caller's. To other callers the task is not there, and so neither are they.

use serde_json::json;

use super::hook::{Hook, busy_task};
use crate::bindings::dialects::{ALL, Operation};
use crate::bindings::world::Plan;

#[tokio::test]
async fn no_other_caller_sees_sets_lists_or_deletes_them() {
    let (plan, _) = Plan::with_keys();
    let world = plan.and_webhooks().start().await;
    let task = busy_task(&world, "ann").await;
    let config = || json!({"id": "p1", "url": "https://hook.test/ann"});
    let set = ALL[0].hook(&world, "", Hook::Set(&task, config())).key("ann").reply().await;
    ALL[0].result(&set);
    for dialect in ALL {
        for (key, agent) in [("bob", ""), ("bob", "worker"), ("operator", ""), ("ann", "either")] {
            let set = Hook::Set(&task, json!({"id": "p1", "url": "https://hook.test/bob"}));
            let hooks = [set, Hook::Get(&task, Some("p1")), Hook::List(&task, json!({})), Hook::Delete(&task, "p1")];
            for hook in hooks {
                let reply = dialect.hook(&world, agent, hook.clone()).key(key).reply().await;
                let (status, code, _) = dialect.error(&reply);
                assert_eq!(status, if dialect.is_rpc() { 200 } else { 404 }, "{dialect:?} {key} {hook:?}");
                assert!(code == -32001 || code == 0, "{dialect:?} {key} {hook:?}: {code}");
            }
        }
        let foreign = dialect.hook(&world, "", Hook::List(&task, json!({}))).key("bob").reply().await.json();
        let missing = dialect.hook(&world, "", Hook::List("none", json!({}))).key("bob").reply().await.json();
        assert_eq!(foreign.to_string().replace(&task, "none"), missing.to_string(), "not to be told apart");
        let own = dialect.hook(&world, "", Hook::Get(&task, Some("p1"))).key("ann").reply().await;
        assert_eq!(
            dialect.shown(&dialect.result(&own))["url"],
            "https://hook.test/ann",
            "{dialect:?}: nothing has changed"
        );
    }
}

#[tokio::test]
async fn a_name_is_not_looked_up_for_a_task_that_is_not_there() {
    let (plan, _) = Plan::with_keys();
    let world = plan.and_webhooks().start().await;
    let anns = busy_task(&world, "ann").await;
    for dialect in ALL {
        // Its name server does not answer, so that a lookup would end in another error.
        let config = || json!({"url": "https://unheard-of.test/"});
        let set = dialect.hook(&world, "", Hook::Set(&anns, config())).key("bob").reply().await;
        let params = json!({"message": dialect.answer("more", &anns), "configuration": dialect.with_hook(config())});
        let send = Operation::Send(params);
        let sent = dialect.ask(&world, "", send).key("bob").reply().await;
        for reply in [set, sent] {
            let (status, code, _) = dialect.error(&reply);
            assert_eq!(status, if dialect.is_rpc() { 200 } else { 404 }, "{dialect:?}: {}", reply.json());
            assert!(code == -32001 || code == 0, "{dialect:?}: {code}");
        }
    }
}

#[tokio::test]
async fn a_name_is_not_looked_up_for_an_agent_that_the_caller_may_not_use() {
    let (plan, _) = Plan::with_keys();
    let world = plan.and_webhooks().start().await;
    for dialect in ALL {
        let mut told = Vec::new();
        for url in ["https://unheard-of.test/", "https://hook.test/"] {
            let params =
                json!({"message": dialect.message("hi"), "configuration": dialect.with_hook(json!({"url": url}))});
            let reply = dialect.ask(&world, "worker", Operation::Send(params)).key("guest").reply().await;
            dialect.error(&reply);
            told.push(reply.json());
        }
        assert_eq!(told[0], told[1], "{dialect:?}: the name makes no difference");
        assert!(!told[0].to_string().contains("resolve"), "{dialect:?}: {}", told[0]);
    }
}
