//! Webhooks that are set later, and what is heard of them.

use serde_json::json;

use super::hook::Hook;
use super::receiver::Receiver;
use crate::bindings::dialects::{ALL, Operation};
use crate::bindings::world::Plan;

#[tokio::test]
async fn one_that_is_set_after_the_end_hears_of_the_end_at_once() {
    let world = Plan::default().and_webhooks().start().await;
    let mut receiver = Receiver::start().await;
    for dialect in ALL {
        let task = dialect.sent_task(&dialect.send(&world, "hello").reply().await);
        let id = task["id"].as_str().unwrap();
        let config = json!({"id": "late", "url": receiver.url("/late")});
        dialect.result(&dialect.hook(&world, "", Hook::Set(id, config)).reply().await);
        let told = receiver.next().await;
        assert_eq!(told.header("a2a-version"), if dialect.is_v1() { "1.0" } else { "0.3" });
        let text = told.json().to_string();
        let state = if dialect.is_v1() { "TASK_STATE_COMPLETED" } else { "\"completed\"" };
        assert!(text.contains(state) && text.contains(id), "{dialect:?}: {text}");
    }
    assert!(receiver.is_quiet());
}

#[tokio::test]
async fn a_cancel_is_heard_of_once_and_a_deleted_webhook_hears_nothing() {
    let world = Plan::default().and_webhooks().start().await;
    let (mut receiver, silent) = (Receiver::start().await, Receiver::start().await);
    for dialect in ALL {
        let mut stream = dialect.stream(&world, "hold").await;
        let first = stream.next().await.unwrap();
        let id = dialect.event(&first).1["id"].as_str().unwrap().to_owned();
        assert_eq!(dialect.story(&[stream.next().await.unwrap()]), ["statusUpdate working"]);
        for (name, url) in [("kept", receiver.url("/")), ("gone", silent.url("/"))] {
            let set = dialect.hook(&world, "", Hook::Set(&id, json!({"id": name, "url": url}))).reply().await;
            dialect.result(&set);
        }
        dialect.result(&dialect.hook(&world, "", Hook::Delete(&id, "gone")).reply().await);
        dialect.result(&dialect.ask(&world, "", Operation::Cancel(&id)).reply().await);
        let told = receiver.next().await.json().to_string();
        let state = if dialect.is_v1() { "TASK_STATE_CANCELED" } else { "\"canceled\"" };
        assert!(told.contains(state), "{dialect:?}: {told}");
    }
    assert!(receiver.is_quiet() && silent.is_quiet());
}
