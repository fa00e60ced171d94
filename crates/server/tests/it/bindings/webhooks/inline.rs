//! Webhooks that come with a message: they hear of everything from its task's first moment.

use serde_json::{Value, json};

use super::hook::Hook;
use super::receiver::{Notification, Receiver};
use crate::bindings::doors::{ALL, Door, Operation};
use crate::bindings::world::Plan;

fn config(receiver: &Receiver) -> Value {
    let authentication = json!({"scheme": "Basic", "credentials": "dTpw"});
    json!({"url": receiver.url("/hook?q=1"), "token": "opaque", "authentication": authentication})
}

/// All until the task has ended.
async fn story(door: Door, receiver: &mut Receiver) -> (Vec<String>, Vec<Notification>) {
    let (mut told, mut kept) = (Vec::new(), Vec::new());
    loop {
        let next = receiver.next().await;
        let body = next.json();
        let (name, inner) = match door.is_v1() {
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
    for door in ALL {
        for send in [Operation::Send, Operation::Stream] {
            let params = json!({"message": door.message("hello"), "configuration": door.with_hook(config(&receiver))});
            let reply = door.ask(&world, "", send(params)).reply().await;
            assert_eq!(reply.status, 200, "{door:?}");
            let (told, notifications) = story(door, &mut receiver).await;
            // That it is submitted is what the caller is told itself.
            let expected: &[&str] = match door.is_v1() {
                true => &["statusUpdate TASK_STATE_WORKING", "artifactUpdate ", "statusUpdate TASK_STATE_COMPLETED"],
                false => &["task working", "task completed"],
            };
            assert_eq!(told, expected, "{door:?}");
            let media_type = if door.is_v1() { "application/a2a+json" } else { "application/json" };
            let mut ids = Vec::new();
            for told in &notifications {
                assert_eq!(told.path, "/hook?q=1");
                assert_eq!(told.header("content-type"), media_type, "{door:?}");
                assert_eq!(told.header("a2a-version"), if door.is_v1() { "1.0" } else { "0.3" }, "{door:?}");
                assert_eq!(told.header("x-a2a-notification-token"), "opaque");
                assert_eq!(told.header("authorization"), "Basic dTpw");
                assert!(told.header("webhook-signature").starts_with("v1,"), "{told:?}");
                ids.push(told.header("webhook-id").to_owned());
            }
            ids.dedup();
            assert_eq!(ids.len(), notifications.len(), "{ids:?}");
            let last = notifications.last().unwrap().json();
            let task = if door.is_v1() { &last["statusUpdate"]["taskId"] } else { &last["id"] };
            let listed = door.hook(&world, "", Hook::List(task.as_str().unwrap(), json!({}))).reply().await;
            let (configs, _) = door.page(&listed);
            assert_eq!(configs.len(), 1, "{door:?}");
            if !door.is_v1() {
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
    for door in ALL {
        let task = door.sent_task(&door.send(&world, "ask").reply().await);
        let answer = door.answer("Rome", task["id"].as_str().unwrap());
        let params = json!({"message": answer, "configuration": door.with_hook(config(&receiver))});
        let sent = door.sent_task(&door.ask(&world, "", Operation::Send(params)).reply().await);
        assert_eq!(sent["status"]["state"], door.state("completed"), "{door:?}");
        let (told, _) = story(door, &mut receiver).await;
        assert!(!told[0].contains("input"), "{door:?}: what was before it is not told: {told:?}");
    }
    assert!(receiver.is_quiet());
}

#[tokio::test]
async fn a_message_that_is_sent_again_brings_no_second_one() {
    let world = Plan::default().and_webhooks().start().await;
    let mut receiver = Receiver::start().await;
    let door = Door::RestV1;
    let params = |receiver: &Receiver| json!({"message": door.message("hello"), "configuration": door.with_hook(config(receiver))});
    let ask = door.ask(&world, "", Operation::Send(params(&receiver))).header("idempotency-key", "once");
    let first = door.sent_task(&ask.clone().reply().await);
    assert_eq!(door.sent_task(&ask.reply().await)["id"], first["id"]);
    story(door, &mut receiver).await;
    let listed = door.hook(&world, "", Hook::List(first["id"].as_str().unwrap(), json!({}))).reply().await;
    assert_eq!(door.page(&listed).0.len(), 1);
    assert!(receiver.is_quiet());
    let other = Receiver::start().await;
    let changed = door.ask(&world, "", Operation::Send(params(&other))).header("idempotency-key", "once");
    let refused = changed.reply().await;
    assert_eq!(door.error(&refused), (409, 0, "IDEMPOTENCY_KEY_REUSED".to_owned()), "another webhook, another message");
}
