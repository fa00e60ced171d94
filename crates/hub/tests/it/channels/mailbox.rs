//! The mailbox: what is said while the agent works.

use serde_json::{Value, json};

use super::{answer, at_once, call, calls, completed, heard, say, server, task, texts, until, waiting, words};
use crate::running::{Running, folder};

async fn drain(running: &Running, key: &str, context: &str) -> (u16, Value) {
    running.post(&format!("/api/mailbox/{context}:drain"), key, &json!({})).await
}

#[tokio::test]
async fn what_is_said_while_the_agent_works_waits_and_is_taken_once() {
    let data = folder();
    let running = server(data.path()).await;
    let (id, context) = say(&running, "bob", "wait").await;
    assert_eq!(drain(&running, "bob", &context).await.1["code"], "NOT_RUNNING", "the burst is not over");
    let first = call(&running, "bob", 1).await;
    for text in ["one", "two"] {
        assert_eq!(say(&running, "bob", text).await, (id.clone(), context.clone()));
    }
    assert_eq!(waiting(&running, "bob", &context).await, ["one", "two"]);
    assert_eq!(waiting(&running, "bob", &context).await, ["one", "two"], "reading takes nothing");
    let taken = at_once(async || Some(drain(&running, "bob", &context).await).filter(|taken| taken.0 == 200)).await;
    assert_eq!(texts(&taken.1), ["one", "two"]);
    assert_eq!(taken.1["data"]["messages"][0]["user"], "ann");
    assert_eq!(texts(&drain(&running, "bob", &context).await.1), Vec::<String>::new());
    // What is not taken is the next call, in the same task.
    say(&running, "bob", "three").await;
    say(&running, "bob", "four").await;
    answer(&running, "bob", "echo", &first, "done").await;
    let ended = completed(&running, "bob", &id).await;
    assert_eq!(heard(&running, "bob").await, ["wait", "[1/2] three\n[2/2] four"]);
    let answers: Vec<String> = ended["artifacts"].as_array().unwrap().iter().map(words).collect();
    assert_eq!(answers, ["done", "[1/2] THREE\n[2/2] FOUR"]);
    assert_eq!(waiting(&running, "bob", &context).await, Vec::<String>::new());
    assert_eq!(drain(&running, "bob", &context).await.0, 409);
    running.stop().await;
}

#[tokio::test]
async fn a_foreign_conversation_is_like_one_that_is_not_there() {
    let data = folder();
    let running = server(data.path()).await;
    let (_, context) = say(&running, "bob", "wait").await;
    let child = call(&running, "bob", 1).await;
    say(&running, "bob", "secret").await;
    // An admin's key is not its owner either.
    for key in ["bea", "cat", "oli", "ann"] {
        let read = running.get(&format!("/api/mailbox/{context}"), key).await;
        let unknown = running.get("/api/mailbox/slack-0", key).await;
        assert_eq!((read.0, unknown.0), (404, 404), "{key}: {}", read.1);
        assert_eq!(read.1.to_string().replace(&context, ""), unknown.1.to_string().replace("slack-0", ""));
        assert_eq!(drain(&running, key, &context).await.0, 404);
    }
    assert_eq!(waiting(&running, "bob", &context).await, ["secret"]);
    answer(&running, "bob", "echo", &child, "done").await;
    running.stop().await;
}

#[tokio::test]
async fn the_agent_that_works_reads_its_mailbox_with_its_task_token_and_no_other() {
    let data = folder();
    let running = server(data.path()).await;
    let token = async |id: &str| {
        until(&running, async || {
            let said = words(&task(&running, "bob", id).await["status"]["message"]);
            said.starts_with("swt_").then_some(said)
        })
        .await
    };
    let (_, context) = say(&running, "bob", "token").await;
    let child = call(&running, "bob", 1).await;
    let own = token(&child).await;
    say(&running, "bob", "hurry").await;
    // Its task may have begun before the channel waits for it.
    at_once(async || (running.get(&format!("/api/mailbox/{context}"), &own).await.0 == 200).then_some(())).await;
    assert_eq!(waiting(&running, &own, &context).await, ["hurry"]);
    // The token of a task that the channel has not begun, in the same conversation.
    let message =
        json!({ "messageId": "x", "role": "ROLE_USER", "contextId": context, "parts": [{ "text": "token" }] });
    let body = json!({ "message": message, "configuration": { "returnImmediately": true } });
    let (_, sent) = running.post("/a2a/other/message:send", "bob", &body).await;
    let beside = sent["task"]["id"].as_str().unwrap();
    let stranger = token(beside).await;
    assert_eq!(running.get(&format!("/api/mailbox/{context}"), &stranger).await.0, 404);
    assert_eq!(drain(&running, &stranger, &context).await.0, 404);
    assert_eq!(texts(&drain(&running, &own, &context).await.1), ["hurry"]);
    // Nor does a program speak in the name of a chat.
    let said = running.post("/api/channels/slack/messages", &own, &json!({ "channel": "C1", "text": "me" })).await;
    assert_eq!((said.0, &said.1["code"]), (401, &json!("UNAUTHENTICATED")));
    answer(&running, "bob", "echo", &child, "done").await;
    at_once(async || (running.get(&format!("/api/mailbox/{context}"), &own).await.0 == 401).then_some(())).await;
    assert_eq!(calls(&running, "bob").await.len(), 1);
    answer(&running, "bob", "other", beside, "done").await;
    running.stop().await;
}
