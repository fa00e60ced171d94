//! `/api/dispatch`: a send to the root address, once per key, that answers with the task or with where to find it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::running::{Running, folder};

/// Sends a request and lets half a minute pass, again and again, until it is answered.
pub(crate) async fn while_time_passes(running: &Running, path: &str, key: &str, body: &Value) -> (u16, Value) {
    let mut asked = std::pin::pin!(running.post(path, key, body));
    loop {
        tokio::select! {
            biased;
            answer = &mut asked => return answer,
            // A request of its own gives the other one time to get to its wait.
            _ = running.get("/api/tasks?pageSize=1", "vic") => running.clock.advance(Duration::from_secs(30)),
        }
    }
}

#[tokio::test]
async fn a_message_goes_where_routing_says_and_its_task_is_the_answer() {
    let data = folder();
    let running = Running::in_folder(data.path()).await;
    let sent = json!({ "message": "hello", "targets": "echo", "wait": "30s", "metadata": { "switchboard/routing": 1, "a": 2 } });
    let (status, task) = running.post("/api/dispatch", "bob", &sent).await;
    assert_eq!((status, &task["status"]["state"]), (200, &json!("TASK_STATE_COMPLETED")), "{task}");
    assert_eq!(task["artifacts"][0]["parts"][0]["text"], "HELLO");
    assert_eq!(task["metadata"]["switchboard/routing"]["by"], "target", "{task}");
    assert_eq!(task["history"][0]["metadata"], json!({ "a": 2 }));

    // By skill, in parts, without waiting.
    let sent = json!({ "parts": [{ "text": "one" }, { "data": { "two": 2 } }], "skill": "acting" });
    let (status, accepted) = running.post("/api/dispatch", "cat", &sent).await;
    assert_eq!(status, 202, "{accepted}");
    let poll = accepted["pollUrl"].as_str().unwrap();
    let shown = loop {
        let (status, shown) = running.get(poll, "cat").await;
        assert_eq!(status, 200, "{shown}");
        if shown["state"] == "completed" {
            break shown;
        }
    };
    assert_eq!(
        (&shown["taskId"], &shown["agent"], &shown["via"]),
        (&accepted["taskId"], &json!("echo"), &json!("api"))
    );
    assert_eq!((&shown["task"]["contextId"], &shown["routing"]["by"]), (&accepted["contextId"], &json!("skill")));

    // What a task asks is answered in the same task.
    let asked = json!({ "message": "ask", "targets": ["other"], "wait": "30s" });
    let (_, task) = running.post("/api/dispatch", "bob", &asked).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{task}");
    let mut answered = json!({ "message": "so", "taskId": task["id"], "contextId": task["contextId"], "wait": "30s" });
    // A task has its agent: another one is a mistake, and so are several.
    for (member, value, wrong) in [
        ("targets", json!("echo"), "taskId"),
        ("targets", json!(["other", "echo"]), "targets"),
        ("fanout", json!("first"), "fanout"),
    ] {
        let mut elsewhere = answered.clone();
        elsewhere[member] = value;
        let (status, refusal) = running.post("/api/dispatch", "bob", &elsewhere).await;
        assert_eq!((status, &refusal["problems"][0]["key"]), (400, &json!(wrong)), "{elsewhere}: {refusal}");
    }
    answered["targets"] = json!("other");
    let (status, done) = running.post("/api/dispatch", "bob", &answered).await;
    assert_eq!((status, &done["id"], &done["status"]["state"]), (200, &task["id"], &json!("TASK_STATE_COMPLETED")));

    // One that does not stop in time goes on.
    let long = json!({ "message": "wait", "targets": "echo", "wait": "30s" });
    let (status, accepted) = while_time_passes(&running, "/api/dispatch", "bob", &long).await;
    assert_eq!(status, 202, "{accepted}");
    // Time may have passed before the agent has said anything.
    loop {
        let (_, shown) = running.get(accepted["pollUrl"].as_str().unwrap(), "bob").await;
        if shown["state"] == "working" {
            break;
        }
        assert_eq!(shown["state"], "submitted", "{shown}");
    }
    let enough = json!({ "message": "enough", "taskId": accepted["taskId"], "wait": "30s" });
    assert_eq!(running.post("/api/dispatch", "bob", &enough).await.1["status"]["state"], "TASK_STATE_COMPLETED");
    running.stop().await;
}

#[tokio::test]
async fn a_trace_in_metadata_is_that_of_the_task_and_of_all_that_it_calls() {
    let data = folder();
    let running = Running::in_folder(data.path()).await;
    let told = json!({ "traceId": "4bf92f35-77b3-4da6-a3ce-929d0e0e4736", "spanId": "00f067aa0ba902b7" });
    let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let targets = ["echo", "other"];
    let mut sent = json!({ "message": "trace", "targets": targets, "wait": "30s", "metadata": { "a2a.trace": told } });
    let (status, task) = running.post("/api/dispatch", "bob", &sent).await;
    assert_eq!(status, 200, "{task}");
    for artifact in task["artifacts"].as_array().unwrap() {
        assert_eq!(artifact["parts"][0]["text"], traceparent, "{task}");
    }
    assert_eq!(task["artifacts"].as_array().map(Vec::len), Some(2), "{task}");
    // A header comes before it.
    sent["targets"] = json!("echo");
    let other = traceparent.replace("4bf9", "5bf9");
    let header = format!("traceparent: {other}");
    let (_, task) = running.ask("POST /api/dispatch", "bob", &[&header], &sent.to_string()).await;
    assert_eq!(task["artifacts"][0]["parts"][0]["text"], other, "{task}");
    running.stop().await;
}

#[tokio::test]
async fn a_key_makes_a_repeated_dispatch_safe() {
    let data = folder();
    let running = Running::in_folder(data.path()).await;
    let send = async |key: &str, body: Value| {
        let header = format!("Idempotency-Key: {key}");
        running.ask("POST /api/dispatch", "bob", &[&header], &body.to_string()).await
    };
    let body = json!({ "message": "hello", "targets": "echo" });
    let (status, first) = send("k-1", body.clone()).await;
    assert_eq!(status, 202, "{first}");
    assert_eq!(send("k-1", body.clone()).await.1["taskId"], first["taskId"]);
    assert_ne!(send("k-2", body.clone()).await.1["taskId"], first["taskId"]);
    // Another message, and the same one to another agent.
    for other in [json!({ "message": "bye", "targets": "echo" }), json!({ "message": "hello", "targets": "other" })] {
        let (status, refusal) = send("k-1", other).await;
        assert_eq!((status, &refusal["code"]), (409, &json!("IDEMPOTENCY_KEY_REUSED")), "{refusal}");
    }
    let (status, refusal) = send("switchboard:k", body).await;
    assert_eq!((status, &refusal["problems"][0]["key"]), (400, &json!("Idempotency-Key")), "{refusal}");
    let (_, list) = running.get("/api/tasks", "bob").await;
    assert_eq!(list["items"].as_array().unwrap().len(), 2);
    running.stop().await;
}

#[tokio::test]
async fn what_cannot_be_dispatched_says_which_member_is_wrong() {
    let data = folder();
    let running = Running::in_folder(data.path()).await;
    let wrong = [
        (json!({}), "message"),
        (json!({ "message": 1 }), "message"),
        (json!({ "message": "a", "parts": [{ "text": "b" }] }), "parts"),
        (json!({ "parts": [] }), "parts"),
        (json!({ "parts": [{ "text": "a" }, { "text": 2 }] }), "parts[1]"),
        (json!({ "message": "a", "targets": 1 }), "targets"),
        (json!({ "message": "a", "targets": ["echo", {}] }), "targets"),
        (json!({ "message": "a", "targets": ["echo", "other"], "fanout": "most" }), "fanout"),
        (json!({ "message": "a", "targets": ["echo", "other"], "fanout": "quorum:3" }), "fanout"),
        (json!({ "message": "a", "force": "yes" }), "force"),
        (json!({ "message": "a", "wait": 30 }), "wait"),
        (json!({ "message": "a", "wait": "soon" }), "wait"),
        (json!({ "message": "a", "wait": "11m" }), "wait"),
        (json!({ "message": "a", "metadata": [] }), "metadata"),
        (json!({ "message": "a", "targets": "echo", "metadata": { "skill": 5 } }), "metadata.skill"),
        (json!({ "message": "a", "target": "echo" }), "target"),
        (json!({ "message": "a", "targets": "echo", "metadata": { "targets": "other" } }), "metadata.targets"),
        (json!({ "message": "a", "skill": "acting", "metadata": { "skillHint": "moving" } }), "metadata.skillHint"),
    ];
    for (body, member) in wrong {
        let (status, refusal) = running.post("/api/dispatch", "bob", &body).await;
        assert_eq!((status, &refusal["code"]), (400, &json!("INVALID")), "{body}: {refusal}");
        assert_eq!(refusal["problems"][0]["key"], member, "{body}: {refusal}");
    }
    let refused = [
        ("bob", json!({ "message": "a", "targets": "ecko" }), 404, "NOT_FOUND"),
        ("bob", json!({ "message": "a", "targets": "~fanout" }), 404, "NOT_FOUND"),
        ("cat", json!({ "message": "a", "targets": "other" }), 403, "FORBIDDEN"),
        ("bob", json!({ "message": "a", "targets": "echo", "skill": "flying" }), 400, "SKILL_NOT_OFFERED"),
        ("bob", json!({ "message": "a", "taskId": "none" }), 404, "NOT_FOUND"),
    ];
    for (key, body, status, code) in refused {
        let (given, refusal) = running.post("/api/dispatch", key, &body).await;
        assert_eq!((given, &refusal["code"]), (status, &json!(code)), "{body}: {refusal}");
    }
    let forced = json!({ "message": "a", "targets": "echo", "skill": "flying", "force": true, "wait": "30s" });
    assert_eq!(running.post("/api/dispatch", "bob", &forced).await.0, 200);
    let (_, list) = running.get("/api/tasks", "vic").await;
    assert_eq!(list["items"].as_array().unwrap().len(), 1, "{list}");
    running.stop().await;
}
