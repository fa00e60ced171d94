//! No skill runs above its mode without a decision, whichever way a message takes.

use serde_json::{Value, json};
use switchboard_a2a::{Message, Role, TaskId};
use switchboard_engine::{Agent, AgentError, Call, Hosted, Manifest, TaskHandle, Turn, Verdict};

use super::{AGENTS, Gates, state};

/// Has `ops` say hello.
struct Boss;

impl Agent for Boss {
    fn manifest(&self) -> Manifest {
        Manifest::new("Boss", "Has another agent do it")
    }

    async fn run(&self, _: Turn, task: TaskHandle) -> Result<(), AgentError> {
        let call = Call { skill: Some("hello".to_owned()), ..Call::new("ops", Message::text(Role::User, "")) };
        let child = task.call(call).await?;
        child.end().await.map_err(|error| AgentError::new(error.to_string()))?;
        Ok(task.complete_with(child.snapshot().status.state.as_str()).await?)
    }
}

/// Every task of `ops`, by what it does.
async fn tasks(gates: &Gates) -> Vec<(String, String)> {
    let (_, page) = gates.running.get("/api/tasks?agent=ops&pageSize=100", "ann").await;
    let rows = page["items"].as_array().unwrap();
    rows.iter()
        .map(|row| (row["taskId"].as_str().unwrap().to_owned(), row["state"].as_str().unwrap().to_owned()))
        .collect()
}

#[tokio::test]
async fn a_gated_skill_waits_at_every_address_in_both_versions_and_as_a_child() {
    let gates = Gates::with(AGENTS, vec![Hosted::new("boss", Boss)], |_| {}).await;
    let running = &gates.running;
    let message = |skill: &str, more: Value| {
        let mut metadata = more;
        metadata["skill"] = skill.into();
        json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "x" }], "metadata": metadata })
    };
    let old = json!({ "messageId": "m", "role": "user", "kind": "message", "metadata": { "skill": "hello" },
        "parts": [{ "kind": "text", "text": "x" }] });
    let rest = |skill: &str| json!({ "message": message(skill, json!({})) });
    let rpc = |method: &str, message: Value| json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": { "message": message } });
    let ops = json!({ "targets": "ops" });
    let sends = [
        ("/a2a/ops/message:send", rest("hello")),
        ("/ops/message:send", rest("hello")),
        ("/a2a/ops", rpc("SendMessage", message("hello", json!({})))),
        ("/a2a/ops", rpc("message/send", old.clone())),
        ("/a2a/message:send", json!({ "message": message("hello", ops.clone()) })),
        ("/a2a", rpc("SendMessage", message("hello", ops.clone()))),
        // A skill that nobody has: the agent may do anything.
        ("/a2a/ops/message:send", rest("helo")),
        // Two places for it, of which the agent may read either.
        ("/a2a/ops/message:send", json!({ "message": message("file", json!({ "skillHint": "hello" })) })),
        (
            "/a2a/ops/message:send",
            json!({ "message": message("file", json!({})), "metadata": { "skillHint": "hello" } }),
        ),
        ("/api/dispatch", json!({ "message": "x", "targets": "ops", "skill": "hello", "wait": "30s" })),
        ("/api/dispatch", json!({ "message": "hello", "targets": "ops", "force": true, "skill": "x", "wait": "30s" })),
        ("/api/dispatch", json!({ "message": "x", "targets": ["ops", "open"], "skill": "hello", "wait": "0s" })),
        ("/api/a2a/chat", json!({ "agent": "ops", "message": "x", "skill": "hello" })),
        ("/api/a2a/delegate", json!({ "agent": "ops", "skill": "hello", "message": "x" })),
        (
            "/a2a/boss/message:send",
            json!({ "message": message("", json!({})), "configuration": { "returnImmediately": true } }),
        ),
    ];
    for (count, (path, body)) in sends.iter().enumerate() {
        let (status, answer) = running.post(path, "bob", body).await;
        assert!((200..300).contains(&status), "{path} {body}: {status} {answer}");
        let waited = tokio::time::timeout(crate::HANG_GUARD, async {
            while tasks(&gates).await.iter().filter(|(_, state)| state == "auth_required").count() <= count {}
        });
        waited.await.unwrap_or_else(|_| panic!("{path} {body} does not wait: {answer}"));
        let all = tasks(&gates).await;
        assert_eq!(all.len(), count + 1, "{path} {body}: {answer}");
        assert!(all.iter().all(|(_, state)| state == "auth_required"), "{path} {body}: {all:?}");
    }
    // Each of them begins once it is approved, so it was the gate that they waited for.
    for (id, _) in tasks(&gates).await {
        gates.decide("oli", &TaskId::from(id.as_str()), Verdict::Approve, "").await.unwrap();
    }
    let waited = tokio::time::timeout(crate::HANG_GUARD, async {
        while !tasks(&gates).await.iter().all(|(_, state)| state == "completed") {}
    });
    waited.await.expect("they end");
    gates.stop().await;
}

#[tokio::test]
async fn the_caller_s_stream_stays_open_while_its_skill_waits() {
    let gates = Gates::start().await;
    let body = json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "x" }],
        "metadata": { "skill": "hello" } } });
    let mut stream = gates.running.stream_of("/a2a/ops/message:stream", "bob", &body).await;
    let id = loop {
        let frame = stream.next().await;
        let status = &frame.data["statusUpdate"];
        if status["status"]["state"] == "TASK_STATE_AUTH_REQUIRED" {
            break TaskId::from(status["taskId"].as_str().unwrap());
        }
    };
    gates.decide("oli", &id, Verdict::Approve, "").await.unwrap();
    let rest = stream.rest_of_text().await;
    assert!(rest.contains("TASK_STATE_COMPLETED") && rest.contains("greeting"), "{rest}");
    gates.stop().await;
}

#[tokio::test]
async fn a_follow_up_names_no_skill_that_was_not_approved_and_a_next_turn_is_asked_about() {
    let gates = Gates::start().await;
    let id = gates.held("", "hold").await;
    gates.decide("oli", &id, Verdict::Approve, "").await.unwrap();
    gates.reach(&id, "WORKING").await;
    let send = async |skill: &str| {
        let message = json!({ "messageId": "n", "role": "ROLE_USER", "taskId": id.as_str(), "parts": [{ "text": "x" }],
            "metadata": { "skill": skill } });
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": { "message": message,
            "configuration": { "returnImmediately": true } } });
        gates.running.post("/a2a/ops", "bob", &call).await.1
    };
    for skill in ["hello", "ask", "unheard"] {
        let refused = send(skill).await;
        assert_eq!(refused["error"]["code"], -32602, "{skill}: {refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains("begin a new task"), "{refused}");
    }
    assert!(send("file").await["result"]["task"].is_object(), "what needs no approval may be named");
    let canceled = gates.cancel(&id).await;
    assert_eq!(state(&canceled), "CANCELED", "{canceled}");
    gates.stop().await;
}
