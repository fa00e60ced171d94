//! JSON that no `serde_json::Value` can hold, such as `1e400`, in what callers and agents send: it goes through as it came,
//! and neither the feed nor the projector stands still because of it.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_a2a::extension::Payload;
use switchboard_a2a::extension::worldstate_delta::WorldstateDelta;
use switchboard_engine::clock::SimulatedClock;
use switchboard_engine::{Agent, AgentError, Hosted, Manifest, Replies, Settings, TaskHandle, Turn};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::health::{counted, server, until};
use crate::remote::passing;
use crate::remote::script::{Reply, Scripted, card, frame, task};
use crate::running::{Running, START, folder};

const STEP: Duration = Duration::from_millis(100);

/// A number that is too large for 64 bits of floating point, half of a surrogate pair, and a long integer.
fn values() -> [String; 3] {
    ["1e400".to_owned(), r#""\ud800""#.to_owned(), "9".repeat(500)]
}

/// All of them as one value.
fn list() -> String {
    format!("[{}]", values().join(","))
}

/// A body as text: the client of these tests cannot read one with such values.
fn text(body: Value) -> String {
    match body {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

async fn asked(running: &Running, head: &str, key: &str, body: &str) -> String {
    let (status, answer) = running.ask(head, key, &["Accept: application/json"], body).await;
    let answer = text(answer);
    assert_eq!(status, 200, "{head}: {answer}");
    answer
}

/// What an event stream sends until a line that begins so.
async fn streamed(running: &Running, path: &str, end: &str) -> String {
    let mut socket = TcpStream::connect(running.address).await.unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer vic\r\n\r\n");
    socket.write_all(head.as_bytes()).await.unwrap();
    let (mut lines, mut read) = (BufReader::new(socket).lines(), String::new());
    let reading = async {
        loop {
            let line = lines.next_line().await.unwrap().expect("the stream goes on");
            read.push_str(&line);
            if line.starts_with(end) {
                return;
            }
        }
    };
    tokio::time::timeout(crate::HANG_GUARD, reading).await.expect("it has the line");
    read
}

#[tokio::test]
async fn what_a_caller_sends_is_shown_as_it_came_wherever_it_is_shown() {
    let (data, clock, list) = (folder(), SimulatedClock::at(START), list());
    let running = server(data.path(), &clock).await;
    let message = |text: &str, task: &str| {
        let parts = format!(r#"[{{"text":"{text}"}},{{"data":{list}}}]"#);
        let message = format!(r#""messageId":"{text}","role":"ROLE_USER","parts":{parts},"metadata":{{"own":{list}}}"#);
        format!(r#"{{"message":{{{message}{task}}}}}"#)
    };
    asked(&running, "POST /a2a/echo/message:send", "bob", &message("ask", "")).await;
    let (_, page) = running.get("/api/tasks", "bob").await;
    let id = page["items"][0]["taskId"].as_str().unwrap().to_owned();
    let answer = message("so", &format!(r#","taskId":"{id}""#));
    asked(&running, "POST /a2a/echo/message:send", "bob", &answer).await;

    // A dispatch takes the same, to one agent and to several.
    for targets in [r#""echo""#, r#"["echo","other"]"#] {
        let parts = format!(r#"[{{"text":"hello"}},{{"data":{list}}}]"#);
        let body = format!(r#"{{"parts":{parts},"metadata":{{"own":{list}}},"targets":{targets},"wait":"30s"}}"#);
        let answer = asked(&running, "POST /api/dispatch", "bob", &body).await;
        assert_eq!(answer.matches(&list).count(), 2, "its parts and its metadata: {answer}");
    }

    for (path, key) in [
        ("/api/feed?from=oldest&pageSize=100", "vic"),
        ("/api/feed?before=now&pageSize=100", "vic"),
        ("/api/feed?from=oldest&topic=task.received.%23", "vic"),
        ("/api/feed?from=oldest&topic=inbox.decided.%23", "vic"),
        (format!("/api/feed?from=oldest&task={id}").as_str(), "bob"),
        (format!("/api/tasks/{id}").as_str(), "vic"),
        ("/api/bus/history?limit=1000", "vic"),
    ] {
        let answer = asked(&running, &format!("GET {path}"), key, "").await;
        assert!(answer.contains(&list), "{path}: {answer}");
    }
    for (path, key) in [
        ("/api/feed?from=oldest&pageSize=100&view=brief", "vic"),
        ("/api/feed?before=now&pageSize=100&view=brief", "vic"),
        ("/api/feed?from=oldest&topic=outcome.%23", "vic"),
        ("/api/tasks", "vic"),
        (format!("/api/tasks/{id}/tree").as_str(), "vic"),
        (format!("/api/a2a/task/{id}").as_str(), "bob"),
        ("/api/flows", "vic"),
        ("/api/invocations", "vic"),
        ("/api/overview", "vic"),
    ] {
        let (status, answer) = running.get(path, key).await;
        assert!(status == 200 && answer.is_object(), "{path}: {status} {answer}");
    }

    running.send("bob", "echo", "fail").await;
    let all = streamed(&running, "/api/feed?from=oldest", "event: task.failed.echo").await;
    assert!(all.contains(&list), "{all}");
    let brief = streamed(&running, "/api/feed?from=oldest&view=brief", "event: task.").await;
    assert!(!brief.contains("payload"), "{brief}");
    let fails = |health: &Value| health["totals"]["successes"].as_u64() < health["totals"]["outcomes"].as_u64();
    until(&running, "/api/health", "vic", fails).await;
    running.stop().await;
}

#[tokio::test]
async fn a_body_that_is_read_to_the_end_is_refused_by_the_member_that_cannot_be_read() {
    let data = folder();
    let running = Running::in_folder(data.path()).await;
    for value in values() {
        let body = format!(r#"{{"topic":"release.published","payload":{{"value":{value}}}}}"#);
        let (status, refusal) = running.ask("POST /publish", "ann", &[], &body).await;
        assert_eq!((status, &refusal["problems"][0]["key"]), (400, &json!("payload")), "{value}: {refusal}");
        let body = format!(r#"{{"message":{value},"targets":"echo"}}"#);
        let (status, refusal) = running.ask("POST /api/dispatch", "bob", &[], &body).await;
        assert_eq!((status, &refusal["problems"][0]["key"]), (400, &json!("message")), "{value}: {refusal}");
    }
    running.stop().await;
}

/// Brackets in a string that would be read as JSON, in a string of the same kind, and so on: were they read, they would
/// end the process.
fn hidden_brackets() -> String {
    (0..100).fold("1".to_owned(), |inner, _| {
        let inner = format!("{}{inner}{}", "[".repeat(100), "]".repeat(100));
        let escaped = inner.replace('\\', r"\u005c").replace('"', r"\u0022");
        format!(r#"{{"$serde_json::private::RawValue":"{escaped}"}}"#)
    })
}

#[tokio::test]
async fn a_body_that_hides_how_deep_it_is_is_refused_wherever_it_comes_in() {
    let data = folder();
    let running = Running::in_folder(data.path()).await;
    let deep = hidden_brackets();
    let message = format!(r#"{{"messageId":"m","role":"ROLE_USER","parts":[{{"data":{deep}}}]}}"#);
    for (path, key, body) in [
        ("/a2a/echo/message:send", "bob", format!(r#"{{"message":{message}}}"#)),
        ("/api/dispatch", "bob", format!(r#"{{"message":{deep},"targets":"echo"}}"#)),
        ("/publish", "ann", format!(r#"{{"topic":"release.published","payload":{deep}}}"#)),
        ("/api/agents", "ann", format!(r#"{{"name":"far","url":"http://127.0.0.1:1","headers":{deep}}}"#)),
        ("/api/a2a/probe", "ann", format!(r#"{{"url":{deep}}}"#)),
    ] {
        let (status, refusal) = running.ask(&format!("POST {path}"), key, &[], &body).await;
        assert_eq!(status, 400, "{path}: {refusal}");
        assert!(text(refusal).contains("nested deeper than the limit of 64 levels"), "{path}");
    }
    running.send("bob", "echo", "still here").await;
    running.stop().await;
}

/// Replies with what it is told.
struct Mirror;

impl Agent for Mirror {
    fn manifest(&self) -> Manifest {
        let mut manifest = Manifest::new("Mirror", "Replies with what it is told");
        manifest.replies = Replies::Either;
        manifest
    }

    async fn run(&self, turn: Turn, task: TaskHandle) -> Result<(), AgentError> {
        task.reply(turn.message.parts).await?;
        Ok(())
    }
}

#[tokio::test]
async fn a_reply_in_place_of_a_task_has_what_its_agent_says() {
    let (data, files, clock, list) = (folder(), folder(), SimulatedClock::at(START), list());
    let own = vec![Hosted::new("mirror", Mirror)];
    let running = Running::beside(data.path(), files.path(), own, &clock, |_| {}, Settings::default()).await;
    let body = format!(r#"{{"parts":[{{"data":{list}}}],"targets":"mirror","wait":"30s"}}"#);
    let answer = asked(&running, "POST /api/dispatch", "bob", &body).await;
    assert!(answer.starts_with(r#"{"message":"#) && answer.contains(&list), "{answer}");
    running.stop().await;
}

#[tokio::test]
async fn changes_with_values_that_cannot_be_read_are_published_without_them() {
    let mut changes: Vec<String> = values()
        .iter()
        .map(|value| format!(r#"{{"domain":"board","path":"open","op":"set","value":{value}}}"#))
        .collect();
    changes.push(r#"{"domain":"board","path":"open","op":"inc","value":-1}"#.to_owned());
    let metadata = format!(r#"{{"{}":{{"deltas":[{}]}}}}"#, WorldstateDelta::URI, changes.join(","));
    let artifact = format!(r#"{{"artifactId":"a","parts":[{{"text":"closed one"}}],"metadata":{metadata}}}"#);
    let update = format!(r#"{{"artifactUpdate":{{"taskId":"r","contextId":"rc","artifact":{artifact}}}}}"#);
    let mut begun = task("TASK_STATE_WORKING", "m");
    begun["artifacts"] = json!([]);
    let status = json!({ "state": "TASK_STATE_COMPLETED" });
    let frames = vec![
        frame(None, json!({ "task": begun })),
        format!("data: {{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{update}}}\n\n"),
        frame(None, json!({ "statusUpdate": { "taskId": "r", "contextId": "rc", "status": status } })),
    ];
    let mut streams = card(false);
    streams["capabilities"] = json!({ "streaming": true, "extensions": [{ "uri": WorldstateDelta::URI }] });
    let remote = Scripted::with_card(streams, move |asked, _| match asked.method() {
        "SendStreamingMessage" => Reply::Events(frames.clone()),
        "GetTask" => Reply::Result(task("TASK_STATE_COMPLETED", "m")),
        _ => Reply::Error(-32601),
    })
    .await;
    let (data, files, clock) = (folder(), folder(), SimulatedClock::at(START));
    let agents = format!("agents:\n  - name: far\n    url: {}\n", remote.url());
    std::fs::write(files.path().join("agents.yaml"), agents).unwrap();
    let running = Running::of_workspace_at(data.path(), files.path(), &clock).await;
    let path = "/a2a/far/.well-known/agent-card.json";
    let known = async { while !running.get(path, "ann").await.1.to_string().contains(WorldstateDelta::URI) {} };
    passing(&clock, STEP, known).await;

    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "go" }] });
    let body = json!({ "message": message, "configuration": { "returnImmediately": true } });
    let (status, answer) = running.post("/a2a/far/message:send", "ann", &body).await;
    assert_eq!(status, 200, "{answer}");
    let path = "/api/feed?from=oldest&topic=world.state.delta";
    let published = async {
        loop {
            let (status, page) = running.get(path, "vic").await;
            assert_eq!(status, 200, "{page}");
            if page["items"] != json!([]) {
                return page;
            }
        }
    };
    let page = passing(&clock, STEP, published).await;
    let deltas = page["items"][0]["payload"]["deltas"].as_array().unwrap();
    let shown: Vec<&Value> = deltas.iter().map(|delta| &delta["value"]).collect();
    assert_eq!(shown, [&Value::Null, &Value::Null, &Value::Null, &json!(-1)], "{page}");
    let counting = counted(&running, 1);
    passing(&clock, STEP, counting).await;
    // What the task itself has is as it came.
    let list = asked(&running, "GET /api/feed?from=oldest&topic=task.artifact.%23", "vic", "").await;
    assert!(values().iter().all(|value| list.contains(value)), "{list}");
    running.stop().await;
}
