//! Webhooks that come with a message: they hear of everything from its task's first moment.

use serde_json::{Value, json};

use super::hook::Hook;
use super::receiver::{Notification, Receiver};
use crate::bindings::dialects::{ALL, Operation, TestDialect};
use crate::bindings::world::Plan;

fn config(receiver: &Receiver) -> Value {
    let authentication = json!({"scheme": "Basic", "credentials": "dTpw"});
    json!({"url": receiver.url("/hook?q=1"), "token": "opaque", "authentication": authentication})
}

/// All until the task has ended.
async fn story(dialect: TestDialect, receiver: &mut Receiver) -> (Vec<String>, Vec<Notification>) {
    let (mut told, mut kept) = (Vec::new(), Vec::new());
    loop {
        let next = receiver.next().await;
        let body = next.json();
        let (name, inner) = match dialect.is_v1() {
            true => body.as_object().unwrap().iter().map(|(name, inner)| (name.clone(), inner.clone())).next().unwrap(),
            false => (body["kind"].as_str().unwrap().to_owned(), body.clone()),
        };
        let state = inner["status"]["state"].as_str().unwrap_or_default().to_owned();
        told.push(format!("{name} {state}"));
        kept.push(next);
        if state == "TASK_STATE_COMPLETED" || state == "completed" {
            return (told, kept);
        }
    }
}

#[tokio::test]
async fn the_receiver_hears_everything_in_order_in_the_form_of_the_version() {
    let world = Plan::default().and_webhooks().start().await;
    let mut receiver = Receiver::start().await;
    for dialect in ALL {
        for send in [Operation::Send, Operation::Stream] {
            let params =
                json!({"message": dialect.message("hello"), "configuration": dialect.with_hook(config(&receiver))});
            let reply = dialect.ask(&world, "", send(params)).reply().await;
            assert_eq!(reply.status, 200, "{dialect:?}");
            let (told, notifications) = story(dialect, &mut receiver).await;
            // That it is submitted is what the caller is told itself.
            let expected: &[&str] = match dialect.is_v1() {
                true => &["statusUpdate TASK_STATE_WORKING", "artifactUpdate ", "statusUpdate TASK_STATE_COMPLETED"],
                false => &["task working", "task completed"],
            };
            assert_eq!(told, expected, "{dialect:?}");
            let media_type = if dialect.is_v1() { "application/a2a+json" } else { "application/json" };
            let mut ids = Vec::new();
            for told in &notifications {
                assert_eq!(told.path, "/hook?q=1");
                assert_eq!(told.header("content-type"), media_type, "{dialect:?}");
                assert_eq!(told.header("a2a-version"), if dialect.is_v1() { "1.0" } else { "0.3" }, "{dialect:?}");
                assert_eq!(told.header("x-a2a-notification-token"), "opaque");
                assert_eq!(told.header("authorization"), "Basic dTpw");
                assert!(told.header("webhook-signature").starts_with("v1,"), "{told:?}");
                ids.push(told.header("webhook-id").to_owned());
            }
            ids.dedup();
            assert_eq!(ids.len(), notifications.len(), "{ids:?}");
            let last = notifications.last().unwrap().json();
            let task = if dialect.is_v1() { &last["statusUpdate"]["taskId"] } else { &last["id"] };
            let listed = dialect.hook(&world, "", Hook::List(task.as_str().unwrap(), json!({}))).reply().await;
            let (configs, _) = dialect.page(&listed);
            assert_eq!(configs.len(), 1, "{dialect:?}");
            if !dialect.is_v1() {
                assert_eq!(&configs[0]["id"], task, "version 0.3 calls it after its task");
            }
        }
    }
    assert!(receiver.is_quiet());
}

#[tokio::test]
async fn an_answer_to_a_task_brings_one_too() {
    let world = Plan::default().and_webhooks().start().await;
    let mut receiver = Receiver::start().await;
    for dialect in ALL {
        let task = dialect.sent_task(&dialect.send(&world, "ask").reply().await);
        let answer = dialect.answer("Rome", task["id"].as_str().unwrap());
        let params = json!({"message": answer, "configuration": dialect.with_hook(config(&receiver))});
        let sent = dialect.sent_task(&dialect.ask(&world, "", Operation::Send(params)).reply().await);
        assert_eq!(sent["status"]["state"], dialect.state("completed"), "{dialect:?}");
        let (told, _) = story(dialect, &mut receiver).await;
        assert!(!told[0].contains("input"), "{dialect:?}: what was before it is not told: {told:?}");
    }
    assert!(receiver.is_quiet());
}

#[tokio::test]
async fn a_message_that_is_sent_again_brings_no_second_one() {
    let world = Plan::default().and_webhooks().start().await;
    let mut receiver = Receiver::start().await;
    let dialect = TestDialect::RestV1;
    let params = |receiver: &Receiver| json!({"message": dialect.message("hello"), "configuration": dialect.with_hook(config(receiver))});
    let ask = dialect.ask(&world, "", Operation::Send(params(&receiver))).header("idempotency-key", "once");
    let first = dialect.sent_task(&ask.clone().reply().await);
    assert_eq!(dialect.sent_task(&ask.reply().await)["id"], first["id"]);
    story(dialect, &mut receiver).await;
    let listed = dialect.hook(&world, "", Hook::List(first["id"].as_str().unwrap(), json!({}))).reply().await;
    assert_eq!(dialect.page(&listed).0.len(), 1);
    assert!(receiver.is_quiet());
    let other = Receiver::start().await;
    let changed = dialect.ask(&world, "", Operation::Send(params(&other))).header("idempotency-key", "once");
    let refused = changed.reply().await;
    assert_eq!(
        dialect.error(&refused),
        (409, 0, "IDEMPOTENCY_KEY_REUSED".to_owned()),
        "another webhook, another message"
    );
}
