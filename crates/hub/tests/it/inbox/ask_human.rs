//! A program asks a person: the answer in time, the question that outlives the wait, and claims that count for nothing.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{decide, ended, items, say, server};
use crate::running::{Running, folder};

/// Waits until so many questions are open.
async fn open(running: &Running, count: usize) -> Vec<Value> {
    let found = tokio::time::timeout(crate::HANG_GUARD, async {
        loop {
            let found = items(running, "ann", "?agent=~ask").await;
            if found.len() >= count {
                return found;
            }
            tokio::task::yield_now().await;
        }
    });
    found.await.unwrap()
}

async fn ask(running: Arc<Running>, key: &'static str, body: Value, header: &'static str) -> (u16, Value) {
    let headers: Vec<&str> = if header.is_empty() { Vec::new() } else { vec![header] };
    running.ask("POST /api/agent/ask-human", key, &headers, &body.to_string()).await
}

#[tokio::test]
async fn a_program_gets_the_answer_of_a_person_and_its_task_says_that_it_asks() {
    let data = folder();
    let running = Arc::new(server(data.path()).await);
    let body = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "wait" }] });
    let body = json!({ "message": body, "configuration": { "returnImmediately": true } });
    let (_, sent) = running.ask("POST /a2a/echo/message:send", "bob", &[], &body.to_string()).await;
    let task = sent["task"]["id"].as_str().unwrap().to_owned();
    let question =
        json!({ "taskId": task, "question": "which colour?", "options": ["red", { "id": "b", "label": "Blue" }] });
    let asking = tokio::spawn(ask(running.clone(), "bob", question, ""));
    let item = open(&running, 1).await.remove(0);
    let id = item["id"].as_str().unwrap();
    assert_eq!(
        [&item["reviewer"], &item["stage"], &item["kind"]],
        ["operator", "operator", "question"].map(Value::from).each_ref()
    );
    assert_eq!([&item["correlationId"], &item["options"][1]["id"]], [&json!(task), &json!("b")], "{item}");
    // The key that asks does not answer itself, and a key for some agents does not see it.
    for (key, right) in [("bob", 403), ("bea", 404), ("ole", 404), ("ada", 404), ("vic", 403)] {
        let body = json!({ "requestId": id, "answer": "b" });
        assert_eq!(running.post("/api/a2a/input", key, &body).await.0, right, "{key}");
        assert_eq!(decide(&running, key, id, json!({ "decision": "approve" })).await.0, right, "{key}");
    }
    let told = tokio::time::timeout(crate::HANG_GUARD, async {
        loop {
            let path = format!("/api/feed?from=oldest&topic=task.working.echo&task={task}");
            let (_, page) = running.get(&path, "bob").await;
            let named = page["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|item| item["payload"]["statusUpdate"]["status"]["message"].clone());
            if let Some(named) = named.into_iter().find(|message| message["metadata"]["kind"] == "input-request") {
                return named;
            }
            tokio::task::yield_now().await;
        }
    });
    let told = told.await.unwrap();
    assert_eq!(
        [&told["metadata"]["requestId"], &told["parts"][0]["text"]],
        [&json!(id), &json!("which colour?")],
        "{told}"
    );
    let (status, given) = running.post("/api/a2a/input", "nan", &json!({ "requestId": id, "answer": "b" })).await;
    assert_eq!((status, &given["data"]["by"]), (200, &json!("nan")), "{given}");
    let (status, answer) = asking.await.unwrap();
    let answer = &answer["data"];
    assert_eq!((status, &answer["answer"], &answer["decidedBy"]), (200, &json!("b"), &json!("nan")), "{answer}");
    // It is closed, which looks like what is not there.
    let late = running.post("/api/a2a/input", "oli", &json!({ "requestId": id, "answer": "red" })).await;
    assert_eq!((late.0, &late.1["code"]), (404, &json!("NOT_FOUND")), "{late:?}");
    assert_eq!(ended(&running, id).await["state"], json!("completed"));
    say(&running, "bob", &task, "enough").await;
    ended(&running, &task).await;
    Arc::into_inner(running).unwrap().stop().await;
}

#[tokio::test]
async fn a_question_outlives_the_wait_and_the_server_and_the_same_request_joins_it() {
    let data = folder();
    let running = Arc::new(server(data.path()).await);
    let body = json!({ "correlationId": "job-7", "question": "go on?" });
    let asking = tokio::spawn(ask(running.clone(), "bob", body.clone(), "Idempotency-Key: k-1"));
    let id = open(&running, 1).await[0]["id"].as_str().unwrap().to_owned();
    running.clock.advance(Duration::from_secs(110));
    let (status, answer) = asking.await.unwrap();
    let answer = &answer["data"];
    assert_eq!((status, &answer["timedOut"], &answer["requestId"]), (200, &json!(true), &json!(id)), "{answer}");
    let poll = answer["pollUrl"].as_str().unwrap().to_owned();
    let (_, polled) = running.get(&poll, "bob").await;
    assert_eq!((&polled["data"]["done"], &polled["data"]["response"]), (&json!(false), &json!("go on?")), "{polled}");
    Arc::into_inner(running).unwrap().stop().await;

    let running = Arc::new(server(data.path()).await);
    let asking = tokio::spawn(ask(running.clone(), "bob", body, "Idempotency-Key: k-1"));
    assert_eq!(open(&running, 1).await.len(), 1);
    assert_eq!(decide(&running, "oli", &id, json!({ "decision": "answer", "text": "yes" })).await.0, 200);
    let (_, answer) = asking.await.unwrap();
    assert_eq!(answer["data"]["answer"], json!("yes"), "{answer}");
    let (_, polled) = running.get(&poll, "bob").await;
    assert_eq!((&polled["data"]["done"], &polled["data"]["response"]), (&json!(true), &json!("yes")), "{polled}");
    assert!(items(&running, "ann", "").await.is_empty());
    Arc::into_inner(running).unwrap().stop().await;
}

#[tokio::test]
async fn a_claim_to_ask_for_another_task_is_shown_as_one_and_tells_it_nothing() {
    let data = folder();
    let running = Arc::new(server(data.path()).await);
    let foreign = super::asked(&running, "bob", "echo", "ask").await;
    let foreign = foreign.rsplit_once('.').unwrap().0.to_owned();
    let before = running.get(&format!("/api/tasks/{foreign}"), "ann").await.1["task"].clone();
    let question = json!({ "taskId": foreign, "question": "may I see it?" });
    let asking = tokio::spawn(ask(running.clone(), "bea", question, ""));
    let item = open(&running, 1).await.remove(0);
    let data = &item["question"]["parts"][1]["data"];
    assert_eq!((&data["claimedTaskId"], data.get("taskId")), (&json!(foreign), None), "{item}");
    assert_ne!(item["correlationId"], json!(foreign));
    assert_eq!(item["owner"], json!("bea"));
    assert_eq!(running.get(&format!("/api/tasks/{foreign}"), "ann").await.1["task"], before);
    assert_eq!(decide(&running, "oli", item["id"].as_str().unwrap(), json!({ "decision": "reject" })).await.0, 200);
    let (_, answer) = asking.await.unwrap();
    assert_eq!((&answer["data"]["decision"], &answer["data"]["answer"]), (&json!("reject"), &json!("rejected")));
    for (body, key) in [
        (json!({ "question": "so?" }), "correlationId"),
        (json!({ "correlationId": "c" }), "question"),
        (json!({ "correlationId": "c\nd", "question": "so?" }), "correlationId"),
        (json!({ "correlationId": "c", "question": "so?", "options": "red" }), "options"),
        (json!({ "correlationId": "c", "question": "so?", "to": "ann" }), "to"),
    ] {
        let (status, refusal) = ask(running.clone(), "bob", body, "").await;
        assert_eq!((status, &refusal["problems"][0]["key"]), (400, &json!(key)), "{refusal}");
    }
    Arc::into_inner(running).unwrap().stop().await;
}
