//! The addresses that are not A2A: health, metrics, the page for people, and the places where nothing is.

use std::sync::Arc;

use switchboard_server::RenderMetrics;

use crate::edge::running::{Running, request, send_message};

const JSON: &str = "Content-Type: application/json";

#[tokio::test]
async fn health_and_readiness_under_all_their_names() {
    let running = Running::open().await;
    for (path, body) in [
        ("/healthz", r#"{"status":"ok"}"#),
        ("/health", r#"{"status":"ok"}"#),
        ("/readyz", r#"{"status":"ready"}"#),
        ("/ready", r#"{"status":"ready"}"#),
    ] {
        let reply = running.ask(&format!("GET {path}"), &[], "").await;
        assert_eq!((reply.status, reply.body.as_str()), (200, body), "{path}");
        let posted = running.ask(&format!("POST {path}"), &[], "").await;
        assert_eq!((posted.status, posted.header("allow")), (405, Some("GET, HEAD")), "{path}");
    }
    running.engine.closing().cancel();
    assert_eq!(running.ask("GET /healthz", &[], "").await.status, 200, "it still listens");
    let unready = running.ask("GET /readyz", &[], "").await;
    assert_eq!((unready.status, unready.header("retry-after")), (503, Some("5")), "{unready:?}");
    assert_eq!(unready.json()["reason"], "the server is stopping");
}

#[tokio::test]
async fn head_is_get_without_the_body() {
    let running = Running::open().await;
    for path in ["/healthz", "/.well-known/agent-card.json", "/tasks"] {
        let get = running.ask(&format!("GET {path}"), &[], "").await;
        let mut wire = running.connect().await;
        wire.send(&format!("HEAD {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")).await;
        let head = wire.head().await;
        assert_eq!((head.status, head.header("content-length")), (200, Some(&*get.body.len().to_string())), "{path}");
        assert_eq!(head.header("content-type"), get.header("content-type"), "{path}");
        assert_eq!(wire.rest().await, "", "{path}");
    }
}

#[tokio::test]
async fn a_stream_has_no_length_and_leaves_its_connection_free() {
    let mut running = Running::open().await;
    let stream = |path: &str| request(&format!("POST {path}"), &[JSON], &send_message(1, "SendStreamingMessage", "x"));
    let mut wire = running.connect().await;
    // Twice over one connection, which is free again after the last chunk.
    for _ in 0..2 {
        wire.send(&stream("/a2a")).await;
        let reply = wire.reply().await;
        assert_eq!((reply.header("content-length"), reply.header("transfer-encoding")), (None, Some("chunked")));
        assert_eq!(reply.header("content-type"), Some("text/event-stream"));
        assert!(reply.body.contains("TASK_STATE_COMPLETED") && reply.body.ends_with("\n\n"), "{reply:?}");
    }
    wire.send(&stream("/a2a/gate")).await;
    let head = wire.head().await;
    assert_eq!((head.header("content-length"), head.header("transfer-encoding")), (None, Some("chunked")));
    running.began.recv().await.unwrap();
    running.gate.notify_one();
    let mut seen = String::new();
    while let Some(chunk) = wire.chunk().await {
        seen.push_str(&chunk);
    }
    assert!(seen.contains("TASK_STATE_COMPLETED"), "{seen:?}");
}

#[tokio::test]
async fn metrics_name_operation_agent_and_outcome() {
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    // Tests run on one thread, the server's tasks too.
    let _counts = metrics::set_default_local_recorder(&recorder);
    switchboard_server::describe_metrics();
    let handle = recorder.handle();
    let running =
        Running::with(|options| options.metrics = Some(RenderMetrics(Arc::new(move || handle.render())))).await;
    for text in ["one", "two"] {
        running.ask("POST /a2a/counted", &[JSON], &send_message(1, "SendMessage", text)).await;
    }
    running.ask("GET /a2a/counted/tasks/none", &[], "").await;
    let reply = running.ask("GET /metrics", &[], "").await;
    assert_eq!(reply.status, 200);
    assert!(reply.header("content-type").unwrap().starts_with("text/plain"), "{reply:?}");
    let count = |labels: &[&str]| {
        let line = reply
            .body
            .lines()
            .find(|line| line.starts_with("a2a_requests_total{") && labels.iter().all(|label| line.contains(label)));
        line.unwrap_or_else(|| panic!("{labels:?} is not in {}", reply.body)).rsplit(' ').next().unwrap().to_owned()
    };
    assert_eq!(count(&["method=\"SendMessage\"", "agent=\"counted\"", "outcome=\"ok\""]), "2");
    assert_ne!(count(&["method=\"GetTask\"", "outcome=\"task_not_found\""]), "0");
    for part in [
        "# HELP a2a_requests_total",
        "a2a_request_duration_seconds_count{method=\"SendMessage\"} 2",
        "a2a_tasks{state=\"completed\"} 2",
        "a2a_tasks{state=\"input_required\"} 0",
        "a2a_agent_up{agent=\"echo\"} 1",
        "a2a_agent_up{agent=\"gate\"} 1",
        "a2a_connections",
    ] {
        assert!(reply.body.contains(part), "{part} is not in {}", reply.body);
    }
    assert!(!reply.body.contains("healthz"), "probes are not A2A requests");
}

#[tokio::test]
async fn a_person_with_a_browser_gets_a_page() {
    let running = Running::open().await;
    for path in ["/", "/a2a", "/a2a/echo", "/a2a/echo/message:send"] {
        let reply =
            running.ask(&format!("GET {path}"), &["Accept: text/html,application/xhtml+xml,*/*;q=0.8"], "").await;
        assert_eq!(reply.status, 200, "{path}");
        assert!(reply.header("content-type").unwrap().starts_with("text/html"), "{path}: {reply:?}");
        assert!(
            reply.body.contains("A2A") && reply.body.contains("/a2a/gate/.well-known/agent-card.json"),
            "{reply:?}"
        );
        assert!(reply.body.contains("Repeats &lt;what&gt; it&#39;s &amp; was &quot;told&quot;"), "{reply:?}");
    }
    let program = running.ask("GET /a2a", &["Accept: application/json"], "").await;
    assert_eq!((program.status, program.header("allow")), (405, Some("POST")), "{program:?}");
    assert!(program.json()["error"]["message"].as_str().unwrap().contains("GET is not possible at /a2a"));
}

#[tokio::test]
async fn at_the_address_of_no_agent_any_method_is_answered_with_those_that_exist() {
    for (running, key) in [(Running::open().await, "X-None: x"), (Running::keyed().await, "X-API-Key: a2a_ann")] {
        for accept in ["Accept: text/html", "Accept: */*"] {
            for head in ["GET /a2a/nope", "GET /a2a/nope/", "DELETE /a2a/nope/jsonrpc", "PUT /a2a/nope/tasks"] {
                let reply = running.ask(head, &[accept, key], "").await;
                let error = &reply.json()["error"];
                assert_eq!((reply.status, &error["status"]), (404, &"NOT_FOUND".into()), "{head}: {reply:?}");
                assert_eq!(error["details"][0]["metadata"]["agents"], "echo,counted,gate", "{head}: {reply:?}");
                assert_eq!(reply.header("allow"), None, "{head}");
            }
        }
        let there = running.ask("GET /a2a/gate", &[], "").await;
        assert_eq!((there.status, there.header("allow")), (405, Some("POST")));
    }
}

#[tokio::test]
async fn where_nothing_is_the_answer_says_what_exists() {
    let running = Running::open().await;
    let reply = running.ask("GET /api/nothing", &[], "").await;
    assert_eq!(reply.status, 404);
    let message = reply.json()["error"]["message"].as_str().unwrap().to_owned();
    for part in ["/api/nothing", "/.well-known/agent-card.json", "POST /a2a", "/healthz"] {
        assert!(message.contains(part), "{part} is not in {message}");
    }
    let wrong = running.ask("PUT /tasks/t1", &[JSON], "{}").await;
    assert_eq!((wrong.status, wrong.header("allow")), (405, Some("GET")), "{wrong:?}");
    let agent = running.ask("POST /a2a/unknown", &[JSON], &send_message(1, "SendMessage", "x")).await;
    assert!(agent.body.contains("echo") && agent.body.contains("gate"), "{agent:?}");
}
