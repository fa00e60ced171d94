//! The paths of earlier hubs: chat, delegate, poll, tools and flows over the same dispatch.

use serde_json::{Value, json};

use crate::dispatch::while_time_passes;
use crate::remote::script::{Reply, Scripted, task};
use crate::running::{Running, folder};

#[tokio::test]
async fn a_chat_answers_asks_back_goes_on_and_fails_as_its_task_does() {
    let data = folder();
    let running = Running::in_folder(data.path()).await;
    let chat = async |body: Value| running.post("/api/a2a/chat", "bob", &body).await;
    let (status, answer) = chat(json!({ "agent": "echo", "message": "hello" })).await;
    let said = &answer["data"];
    assert_eq!((status, &answer["success"], &said["response"]), (200, &json!(true), &json!("HELLO")), "{answer}");
    assert_eq!((&said["taskState"], &said["agent"]), (&json!("completed"), &json!("echo")));
    assert_eq!(said["correlationId"], said["taskId"]);

    // A question is no success, and its answer reaches the same task.
    let (status, asked) = chat(json!({ "agent": "other", "message": "ask" })).await;
    let asked = &asked["data"];
    assert_eq!((status, &asked["taskState"]), (200, &json!("input-required")));
    assert_eq!(asked["response"], "what now?");
    let on = json!({ "agent": "other", "message": "go", "contextId": asked["contextId"], "taskId": asked["taskId"] });
    let (_, done) = chat(on.clone()).await;
    assert_eq!((&done["data"]["taskId"], &done["data"]["response"]), (&asked["taskId"], &json!("go")), "{done}");
    let (_, second) = chat(json!({ "agent": "other", "message": "ask" })).await;
    let elsewhere = json!({ "agent": "echo", "message": "go", "taskId": second["data"]["taskId"] });
    let (status, refusal) = chat(elsewhere).await;
    assert_eq!((status, &refusal["problems"][0]["key"]), (400, &json!("taskId")), "{refusal}");

    let (_, over) = chat(json!({ "agent": "echo", "message": "bye", "done": true })).await;
    assert_eq!((&over["data"]["taskId"], &over["data"]["contextId"]), (&Value::Null, &Value::Null), "{over}");
    let (status, failed) = chat(json!({ "agent": "echo", "message": "fail" })).await;
    assert_eq!((status, &failed["success"], &failed["code"]), (502, &json!(false), &json!("AGENT_ERROR")), "{failed}");
    assert_eq!((&failed["error"], &failed["taskState"]), (&json!("as it was told to"), &json!("failed")));
    let (status, refusal) = chat(json!({ "agent": "all", "message": "hi" })).await;
    let problem = &refusal["problems"][0];
    assert_eq!((status, &problem["key"]), (400, &json!("agent")), "one agent at a time: {refusal}");
    assert!(problem["right"].as_str().unwrap().contains("/api/dispatch"), "{refusal}");
    let (status, unknown) = chat(json!({ "agent": "ecko", "message": "hi" })).await;
    assert_eq!((status, &unknown["code"]), (404, &json!("NOT_FOUND")));
    let (status, refusal) = chat(json!({ "agent": "echo", "message": "hi", "skill": "flying" })).await;
    assert_eq!((status, &refusal["code"]), (400, &json!("SKILL_NOT_OFFERED")), "{refusal}");
    let (status, refusal) = chat(json!({ "message": 1, "done": "no" })).await;
    let keys: Vec<&str> = refusal["problems"].as_array().unwrap().iter().filter_map(|p| p["key"].as_str()).collect();
    assert_eq!((status, keys), (400, vec!["agent", "message", "done"]), "{refusal}");

    // What takes longer is polled for.
    let long = json!({ "agent": "echo", "message": "wait" });
    let (status, pending) = while_time_passes(&running, "/api/a2a/chat", "bob", &long).await;
    let pending = &pending["data"];
    assert_eq!((status, &pending["pending"], &pending["response"]), (200, &json!(true), &Value::Null), "{pending}");
    let poll = pending["pollUrl"].as_str().unwrap();
    // Time may have passed before the agent has said anything.
    loop {
        let (_, polled) = running.get(poll, "bob").await;
        assert_eq!(polled["data"]["pending"], true, "{polled}");
        if polled["data"]["taskState"] == "working" {
            break;
        }
        assert_eq!(polled["data"]["taskState"], "submitted");
    }
    let on = json!({ "agent": "echo", "message": "enough", "taskId": pending["taskId"] });
    assert_eq!(chat(on).await.1["data"]["response"], "enough");
    let (_, polled) = running.get(poll, "bob").await;
    assert_eq!((&polled["data"]["done"], &polled["data"]["response"]), (&json!(true), &json!("enough")), "{polled}");
    running.stop().await;
}

#[tokio::test]
async fn what_is_delegated_is_found_by_its_correlation_id_and_done_once() {
    let data = folder();
    let running = Running::in_folder(data.path()).await;
    let body = json!({ "agent": "echo", "skill": "acting", "message": "pay 3", "projectSlug": "p" });
    let send = async |path: &str, body: &Value| {
        running.ask(&format!("POST {path}"), "bob", &["X-Correlation-Id: c-1"], &body.to_string()).await
    };
    let (status, first) = send("/api/a2a/delegate", &body).await;
    assert_eq!((status, &first["data"]["correlationId"]), (202, &json!("c-1")), "{first}");
    let (_, again) = send("/api/a2a/delegate", &body).await;
    assert_eq!(again["data"]["taskId"], first["data"]["taskId"]);
    let (status, refusal) = send("/api/a2a/chat", &json!({ "agent": "echo", "message": "other" })).await;
    assert_eq!((status, &refusal["code"]), (409, &json!("IDEMPOTENCY_KEY_REUSED")), "{refusal}");
    let done = loop {
        let (status, polled) = running.get("/api/a2a/task/c-1", "bob").await;
        assert_eq!(status, 200, "{polled}");
        if polled["data"]["done"] == true {
            break polled["data"].clone();
        }
    };
    assert_eq!((&done["response"], &done["taskId"]), (&json!("paid"), &first["data"]["taskId"]), "{done}");
    assert_eq!((&done["costUsd"], &done["usage"]["input_tokens"]), (&json!(3.0), &json!(10)));
    assert!(done["durationMs"].is_u64());
    // Another caller's correlation id is unknown, and so is one that was never used.
    for (id, key) in [("c-1", "cat"), ("c-2", "bob")] {
        let (status, refusal) = running.get(&format!("/api/a2a/task/{id}"), key).await;
        assert_eq!((status, &refusal["code"]), (404, &json!("NOT_FOUND")), "{refusal}");
    }
    let (_, failed) = running.post("/api/a2a/chat", "bob", &json!({ "agent": "echo", "message": "fail" })).await;
    let (_, polled) = running.get(&format!("/api/a2a/task/{}", failed["taskId"].as_str().unwrap()), "bob").await;
    assert_eq!((&polled["data"]["done"], &polled["data"]["error"]), (&json!(true), &json!("as it was told to")));
    running.stop().await;
}

#[tokio::test]
async fn agents_are_tools_for_models() {
    let data = folder();
    let running = Running::in_folder(data.path()).await;
    let (_, tools) = running.get("/api/tools", "bob").await;
    let names: Vec<&str> = tools["items"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["a2a_echo", "a2a_other"]);
    let schema = &tools["items"][0]["inputSchema"];
    assert_eq!(
        (&schema["required"], &schema["properties"]["skill"]["enum"]),
        (&json!(["message"]), &json!(["acting", "moving"]))
    );
    assert_eq!(running.get("/api/tools", "cat").await.1["items"].as_array().unwrap().len(), 1);

    let call = async |tool: &str, body: Value| running.post(&format!("/api/tools/{tool}"), "bob", &body).await;
    let (status, answer) = call("a2a_echo", json!({ "message": "hello" })).await;
    assert_eq!((status, &answer["response"], &answer["truncated"]), (200, &json!("HELLO"), &Value::Null), "{answer}");
    let (_, long) = call("a2a_echo", json!({ "message": "é".repeat(8_001) })).await;
    assert_eq!((long["response"].as_str().unwrap().chars().count(), &long["truncated"]), (8_000, &json!(true)));
    let (status, failed) = call("a2a_echo", json!({ "message": "fail" })).await;
    assert_eq!((status, &failed["error"], &failed["retryable"]), (502, &json!("as it was told to"), &json!(true)));
    let (status, refused) = call("a2a_echo", json!({ "message": "hi", "skill": "flying" })).await;
    assert_eq!((status, &refused["retryable"]), (400, &json!(false)), "{refused}");
    for unknown in ["a2a_ecko", "echo", "a2a__fanout"] {
        let (status, refused) = call(unknown, json!({ "message": "hi" })).await;
        assert_eq!((status, &refused["code"], &refused["retryable"]), (404, &json!("NOT_FOUND"), &json!(false)));
        assert!(refused["error"].as_str().unwrap().contains("GET /api/tools"), "{refused}");
    }
    let (status, refused) = call("a2a_echo", json!({ "text": "hi" })).await;
    assert_eq!((status, &refused["retryable"], &refused["problems"][0]["key"]), (400, &json!(false), &json!("text")));
    let large = json!({ "message": "x".repeat(11 << 20) }).to_string();
    let (status, refused) = running.ask("POST /api/tools/a2a_echo", "bob", &[], &large).await;
    assert_eq!((status, &refused["code"], &refused["retryable"]), (413, &json!("REQUEST_TOO_LARGE"), &json!(false)));
    running.stop().await;
}

#[tokio::test]
async fn tasks_are_flow_items() {
    let data = folder();
    let running = Running::in_folder(data.path()).await;
    for text in ["hello", "fail", "ask"] {
        running.post("/api/a2a/chat", "bob", &json!({ "agent": "echo", "message": text })).await;
    }
    let (status, flows) = running.get("/api/flows", "vic").await;
    let items = flows["data"]["items"].as_array().unwrap();
    let stages: Vec<(&str, &str)> =
        items.iter().map(|item| (item["status"].as_str().unwrap(), item["stage"].as_str().unwrap())).collect();
    assert_eq!((status, stages), (200, vec![("blocked", "running"), ("complete", "error"), ("complete", "done")]));
    let (_, blocked) = running.get("/api/flows?status=blocked&limit=1", "eva").await;
    let id = blocked["data"]["items"][0]["id"].as_str().unwrap();
    assert_eq!((blocked["data"]["items"].as_array().unwrap().len(), &blocked["data"]["next"]), (1, &Value::Null));
    let (_, item) = running.get(&format!("/api/flows/{id}"), "vic").await;
    assert_eq!((&item["data"]["id"], &item["data"]["title"]), (&json!(id), &json!("ask")), "{item}");
    assert_eq!(running.get("/api/flows", "bob").await.0, 403);
    assert_eq!(running.get("/api/flows/none", "vic").await.0, 404);
    running.stop().await;
}

#[tokio::test]
async fn a_result_without_text_is_told_as_such_and_not_as_nothing() {
    let (data, files) = (folder(), folder());
    let remote = Scripted::start(false, |asked, _| {
        let mut task = task("TASK_STATE_COMPLETED", "m");
        let parts = match asked.body["params"]["message"]["parts"][0]["text"].as_str() {
            Some("data") => json!([{ "data": { "sum": 3 } }]),
            _ => json!([{ "text": " " }]),
        };
        task["artifacts"][0]["parts"] = parts;
        Reply::Result(json!({ "task": task }))
    })
    .await;
    let agents = format!("agents:\n  - name: far\n    url: {}\n", remote.url());
    std::fs::write(files.path().join("agents.yaml"), agents).unwrap();
    let running = Running::of_workspace(data.path(), files.path(), |_| {}).await;
    let chat = async |text: &str| {
        let body = json!({ "agent": "far", "message": text });
        let (status, answer) = running.post("/api/a2a/chat", "ann", &body).await;
        assert_eq!((status, &answer["data"]["taskState"]), (200, &json!("completed")), "{answer}");
        answer["data"].clone()
    };
    let said = chat("data").await;
    let id = said["taskId"].as_str().unwrap();
    assert_eq!(said["response"], json!(format!("(no text: task {id} has one part that is none)")));
    let (_, polled) = running.get(&format!("/api/a2a/task/{id}"), "ann").await;
    assert_eq!(polled["data"]["response"], said["response"], "{polled}");
    assert_eq!(chat("nothing").await["response"], "(no text)");
    running.stop().await;
}
