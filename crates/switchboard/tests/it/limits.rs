//! Invariant 12: every limit is a setting that is documented, reaches the part that enforces it, and is hit in a test.
//!
//! Here each limit that a client can run into is set in `switchboard.yaml` and run into over HTTP, with the real program.
//! That every other setting reaches its option is shown by `serve/settings/tests.rs`; what the option does is tested in
//! the crate that enforces it.

use serde_json::{Value, json};

use crate::http::{Answer, connect, request};
use crate::program::Workspace;
use crate::server::Server;

/// A setting, what to write under `limits`, and what runs into it.
type Hit = (&'static str, &'static str, fn(&Server));

#[rustfmt::skip]
const HITS: &[Hit] = &[
    ("connections", "connections: 1", a_second_connection_is_refused),
    ("event", "event: 2KiB", |server| is_refused(server.message("echo", "send", &long(3_000), ""), 400, "limits.event")),
    ("headers", "headers: 20", |server| is_refused(with_headers(server, &many()), 431, "limits.headers")),
    ("nesting", "nesting: 10", |server| is_refused(server.post(SEND, "", &nested(20)), 400, "10 levels")),
    ("page", "page: 8KiB", a_page_is_cut),
    ("parkedPerCaller", "parkedPerCaller: 1", a_second_question_is_refused),
    ("parkedTasks", "parkedTasks: 1", a_second_question_is_refused),
    ("parts", "parts: 2", |server| is_refused(server.post(SEND, "", &message("hello", 3)), 400, "limit of 2")),
    ("queuedTurns", "{ runningTasks: 1, queuedTurns: 1 }", a_third_task_is_refused),
    ("requestBody", "requestBody: 2KiB", |server| is_refused(server.message("echo", "send", &long(3_000), ""), 413, "limits.requestBody")),
    ("requestHeaders", "requestHeaders: 4KiB", |server| is_refused(with_headers(server, &[long(5_000)]), 431, "limits.requestHeaders")),
    ("runningPerAgent", "runningPerAgent: 1", a_second_task_waits),
    ("runningPerCaller", "runningPerCaller: 1", a_second_task_waits),
    ("runningTasks", "runningTasks: 1", a_second_task_waits),
    ("streams", "streams: 1", a_second_stream_is_refused),
    ("streamsPerCaller", "streamsPerCaller: 1", a_second_stream_is_refused),
    ("task", "{ event: 2KiB, task: 4KiB }", a_task_that_grows_too_large_fails),
];

/// Those that no client runs into over loopback: it only waits a moment longer, or is exempt. Tests of the crates that
/// enforce them do.
const ELSEWHERE: [&str; 7] = [
    "connectionsPerAddress",
    "contexts",
    "remoteTasks",
    "responseBytes",
    "responseBytesPerCaller",
    "uncommittedBytes",
    "uncommittedEvents",
];

const SEND: &str = "/a2a/probe/message:send";

fn long(bytes: usize) -> String {
    "x".repeat(bytes)
}

fn many() -> Vec<String> {
    vec!["x".to_owned(); 25]
}

fn message(text: &str, parts: usize) -> String {
    let parts = vec![json!({ "text": text }); parts];
    let configuration = json!({ "returnImmediately": true });
    json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": parts }, "configuration": configuration })
        .to_string()
}

fn nested(levels: usize) -> String {
    let data = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    message("hello", 1).replace("{\"text\":\"hello\"}", &format!("{{\"data\":{data}}}"))
}

fn with_headers(server: &Server, values: &[String]) -> Answer {
    let names: Vec<String> = (0..values.len()).map(|number| format!("X-{number}")).collect();
    let headers: Vec<_> = names.iter().zip(values).map(|(name, value)| (name.as_str(), value.as_str())).collect();
    request(&server.address, "GET", "/healthz", &headers, "")
}

/// Gives a task to the probe and does not wait for it.
fn start(server: &Server, text: &str) -> Value {
    server.post(SEND, "", &message(text, 1)).json()["task"].take()
}

#[track_caller]
fn is_refused(answer: Answer, status: u16, said: &str) {
    let (found, text) = (answer.status, answer.text());
    assert!(found == status && text.contains(said), "no {status} with {said:?}: {found} {text}");
}

fn a_second_connection_is_refused(server: &Server) {
    let _first = connect(&server.address);
    // It is accepted before whatever connects later.
    is_refused(server.get("/healthz", ""), 503, "limits.connections");
}

fn a_page_is_cut(server: &Server) {
    for _ in 0..3 {
        assert_eq!(server.message("echo", "send", &long(3_000), "").status, 200);
    }
    let page = server.get("/a2a/tasks?pageSize=3", "").json();
    assert_eq!((page["tasks"].as_array().map(Vec::len), &page["totalSize"]), (Some(1), &json!(3)));
}

fn a_second_question_is_refused(server: &Server) {
    let asked = server.message("probe", "send", "ask", "").json();
    assert_eq!(asked["task"]["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    is_refused(server.message("probe", "send", "ask", ""), 503, "retryAfterMs");
}

fn a_second_task_waits(server: &Server) {
    start(server, "hold");
    let waits = start(server, "hold");
    assert_eq!(waits["metadata"]["switchboard/queuePosition"], 1, "{waits}");
}

fn a_third_task_is_refused(server: &Server) {
    a_second_task_waits(server);
    is_refused(server.post(SEND, "", &message("hold", 1)), 503, "retryAfterMs");
}

fn a_second_stream_is_refused(server: &Server) {
    let mut first = server.message("probe", "stream", "hold", "");
    first.until("TASK_STATE_WORKING");
    is_refused(server.message("probe", "stream", "hold", ""), 503, "retryAfterMs");
}

fn a_task_that_grows_too_large_fails(server: &Server) {
    let task = server.message("probe", "send", "stream:200", "").json()["task"].take();
    assert_eq!(task["status"]["state"], "TASK_STATE_FAILED", "{task}");
    assert_eq!(task["metadata"]["switchboard/reason"], "too_large");
}

#[test]
fn invariant_12_every_limit_of_a_client_is_run_into() {
    let schema = Workspace::new().run(&["config", "schema"]).json();
    let limits = schema["$defs"]["Limits"]["properties"].as_object().unwrap();
    for key in limits.keys().filter(|key| !ELSEWHERE.contains(&key.as_str())) {
        assert!(HITS.iter().any(|(hit, ..)| hit == key), "limits.{key} needs a row here that runs into it");
    }
    for (key, setting, hit) in HITS {
        assert!(limits.contains_key(*key), "limits.{key} is no setting any more");
        let setting = setting.trim_matches(['{', '}', ' ']);
        let workspace = Workspace::new().file("switchboard.yaml", format!("limits: {{ {setting} }}"));
        println!("limits.{key}");
        hit(&Server::start(&workspace));
    }
}

/// The limits that are no settings, as docs/calling.md states them: what is just within one is taken.
#[test]
fn every_fixed_limit_is_as_documented() {
    let server = Server::start(&Workspace::new());
    let send = |member: &str, value: Value, key: &str| {
        let mut body: Value = serde_json::from_str(&message("hello", 1)).unwrap();
        body["message"][member] = value;
        let headers = [("A2A-Version", "1.0"), ("Idempotency-Key", key)];
        request(&server.address, "POST", SEND, &headers, &body.to_string())
    };
    let reference = |number: usize| format!("018f0000-0000-7000-8000-{number:012}");
    let references = |count: usize| json!((0..count).map(reference).collect::<Vec<_>>());
    assert_eq!(send("contextId", json!(long(256)), &long(255)).status, 200);
    is_refused(send("referenceTaskIds", references(100), "b"), 404, "TASK_NOT_FOUND");
    is_refused(send("contextId", json!(long(257)), "c"), 400, "contextId");
    is_refused(send("referenceTaskIds", references(101), "d"), 400, "referenceTaskIds");
    is_refused(send("contextId", json!("c"), &long(256)), 400, "Idempotency-Key");
    let with_id = |bytes: usize| {
        let params = serde_json::from_str::<Value>(&message("hello", 1)).unwrap();
        // In quotation marks, which count.
        let request = json!({ "jsonrpc": "2.0", "id": long(bytes - 2), "method": "SendMessage", "params": params });
        server.post("/a2a/probe", "", &request.to_string()).json()
    };
    assert_eq!(with_id(1_024)["id"], long(1_022));
    let refused = with_id(1_025);
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&Value::Null, &json!(-32600)), "{refused}");
    let last_words = |bytes: usize| {
        let task = server.message("probe", "send", &format!("big:{bytes}"), "").json();
        task["task"]["status"]["message"]["parts"][0]["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(last_words(32 << 10).len(), 32 << 10);
    let beginning = last_words((32 << 10) + 1);
    assert_eq!(beginning.chars().take_while(|character| *character == 'x').count(), 500, "{beginning}");

    let page = include_str!("../../../../docs/calling.md");
    let (_, fixed) = page.split_once("\n## Limits\n").expect("the page has a section on limits");
    for row in [
        "| `Idempotency-Key` | 255 visible ASCII characters |",
        "| `contextId` | 256 bytes |",
        "| `referenceTaskIds` of a message | 100 |",
        "| `id` of a JSON-RPC request | 1,024 bytes |",
        "| answer that the last status message repeats whole | 32 KiB |",
        "| beginning of a longer one | 500 characters |",
    ] {
        assert!(fixed.contains(row), "docs/calling.md does not say {row}");
    }
}

#[test]
fn every_reason_a_task_can_end_for_is_documented() {
    let page = include_str!("../../../../docs/calling.md");
    for reason in switchboard_engine::reason::Reason::ALL {
        let word = reason.as_str();
        assert!(page.contains(&format!("| `{word}` |")), "docs/calling.md does not explain the reason {word}");
    }
}
