//! Graceful shutdown: new work is refused, requests in flight are answered, and tasks that end in time are seen.

use std::time::Duration;

use switchboard_engine::Settings;
use tokio::net::TcpStream;

use crate::edge::running::{Running, request, send_message};
use crate::edge::wire::PATIENCE;

const JSON: &str = "Content-Type: application/json";

#[tokio::test]
async fn a_stop_answers_what_is_under_way_and_begins_nothing_new() {
    let mut running = Running::open().await;
    let mut idle = running.connect().await;
    idle.send(&request("GET /healthz", &[], "")).await;
    assert_eq!(idle.reply().await.status, 200);
    let mut blocked = running.connect().await;
    blocked.send(&request("POST /a2a/gate", &[JSON], &send_message(1, "SendMessage", "finish me"))).await;
    running.began.recv().await.unwrap();

    let kernel = running.stop_all().await;
    let unready = running.ask("GET /readyz", &[], "").await;
    assert_eq!((unready.status, unready.header("retry-after")), (503, Some("5")), "{unready:?}");
    assert_eq!(unready.json()["reason"], "the server is stopping");
    idle.send(&request("POST /a2a/echo", &[JSON], &send_message(2, "SendMessage", "too late"))).await;
    let refused = idle.reply().await;
    assert_eq!(refused.json()["error"]["code"], -32603, "{refused:?}");
    assert_eq!(refused.header("retry-after"), Some("5"), "{refused:?}");
    assert!(!running.serving.is_finished(), "a request is still under way");

    running.gate.notify_one();
    let reply = blocked.reply().await;
    assert_eq!(reply.json()["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{reply:?}");
    assert_eq!(blocked.rest().await, "");
    assert_eq!(idle.rest().await, "");
    tokio::time::timeout(PATIENCE, running.serving).await.unwrap().unwrap().unwrap();
    assert!(TcpStream::connect(running.address).await.is_err(), "the socket is closed");
    tokio::time::timeout(PATIENCE, kernel).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn a_stream_sees_its_task_end_during_the_stop() {
    let mut running = Running::open().await;
    let mut stream = running.connect().await;
    stream.send(&request("POST /a2a/gate", &[JSON], &send_message(1, "SendStreamingMessage", "finish me"))).await;
    assert_eq!(stream.head().await.status, 200);
    running.began.recv().await.unwrap();
    running.stop_all().await;
    running.gate.notify_one();
    let mut seen = String::new();
    while let Some(chunk) = stream.chunk().await {
        seen.push_str(&chunk);
    }
    assert!(seen.contains("TASK_STATE_COMPLETED") && !seen.contains("retry:"), "{seen:?}");
    tokio::time::timeout(PATIENCE, running.serving).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn when_the_drain_time_is_over_streams_end_with_the_time_to_come_back() {
    let settings = Settings { drain: Duration::from_millis(50), ..Settings::default() };
    let mut running = Running::with_settings(|_| {}, settings).await;
    let mut stream = running.connect().await;
    stream.send(&request("POST /a2a/gate", &[JSON], &send_message(1, "SendStreamingMessage", "hold"))).await;
    let head = stream.head().await;
    assert_eq!(head.header("content-type"), Some("text/event-stream"), "{head:?}");
    running.began.recv().await.unwrap();
    running.stop_all().await;
    let mut seen = String::new();
    while let Some(chunk) = stream.chunk().await {
        seen.push_str(&chunk);
    }
    assert!(seen.ends_with("retry: 1000\n\n"), "{seen:?}");
    assert!(!seen.contains("COMPLETED"), "{seen:?}");
    tokio::time::timeout(PATIENCE, running.serving).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn a_stop_does_not_wait_for_requests_that_are_not_whole() {
    let mut running = Running::open().await;
    let mut half_a_head = running.connect().await;
    half_a_head.send("GET /heal").await;
    let mut half_a_body = running.connect().await;
    let whole = request("POST /a2a/echo", &[JSON], &send_message(1, "SendMessage", "cut off"));
    half_a_body.send(&whole[..whole.len() - 5]).await;
    // An answered request on a connection that came later: the others have been read.
    assert_eq!(running.ask("GET /healthz", &[], "").await.status, 200);
    running.stop_all().await;
    // The drain time of this server is an hour.
    tokio::time::timeout(PATIENCE, running.serving).await.unwrap().unwrap().unwrap();
    assert_eq!(half_a_head.rest().await, "");
    let refused = half_a_body.rest().await;
    assert!(refused.is_empty() || refused.starts_with("HTTP/1.1 503 "), "{refused:?}");
}

#[tokio::test]
async fn a_stop_does_not_wait_for_ever() {
    let mut running = Running::with(|options| options.drain = Duration::from_millis(50)).await;
    let mut blocked = running.connect().await;
    blocked.send(&request("POST /a2a/gate", &[JSON], &send_message(1, "SendMessage", "never"))).await;
    running.began.recv().await.unwrap();
    running.stop();
    tokio::time::timeout(PATIENCE, running.serving).await.unwrap().unwrap().unwrap();
    assert_eq!(blocked.rest().await, "", "cut, since the drain time is over");
}

#[tokio::test]
async fn blocked_senders_get_their_task_even_if_it_does_not_end() {
    let settings = Settings { drain: Duration::from_millis(50), ..Settings::default() };
    let mut running = Running::with_settings(|_| {}, settings).await;
    let mut blocked = running.connect().await;
    blocked.send(&request("POST /a2a/gate", &[JSON], &send_message(1, "SendMessage", "never"))).await;
    running.began.recv().await.unwrap();
    let kernel = running.stop_all().await;
    let reply = blocked.reply().await;
    assert!(reply.json()["result"]["task"]["id"].is_string(), "a committed message is never an error: {reply:?}");
    tokio::time::timeout(PATIENCE, running.serving).await.unwrap().unwrap().unwrap();
    tokio::time::timeout(PATIENCE, kernel).await.unwrap().unwrap().unwrap();
}
