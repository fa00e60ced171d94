//! Stopping: nobody new comes in, nobody inside is cut off in the middle of an answer.

use std::time::Duration;

use tokio::net::TcpStream;

use crate::edge::running::{Running, request, send_message};
use crate::edge::wire::PATIENCE;

const JSON: &str = "Content-Type: application/json";

#[tokio::test]
async fn a_stop_answers_what_is_under_way_and_takes_nobody_in() {
    let mut running = Running::open().await;
    let mut idle = running.connect().await;
    idle.send(&request("GET /healthz", &[], "")).await;
    assert_eq!(idle.reply().await.status, 200);
    let mut blocked = running.connect().await;
    blocked.send(&request("POST /a2a/gate", &[JSON], &send_message(1, "SendMessage", "finish me"))).await;
    running.began.recv().await.unwrap();

    running.stop();
    assert_eq!(idle.rest().await, "", "an idle connection is closed at once");
    assert!(TcpStream::connect(running.address).await.is_err(), "nobody listens any more");
    assert!(!running.serving.is_finished(), "a request is still under way");
    running.gate.notify_one();
    let reply = blocked.reply().await;
    assert_eq!(reply.json()["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{reply:?}");
    assert_eq!(blocked.rest().await, "");
    tokio::time::timeout(PATIENCE, running.serving).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn a_stop_ends_streams_with_the_time_to_come_back() {
    let mut running = Running::open().await;
    let mut stream = running.connect().await;
    stream.send(&request("POST /a2a/gate", &[JSON], &send_message(1, "SendStreamingMessage", "hold"))).await;
    let head = stream.head().await;
    assert_eq!(head.header("content-type"), Some("text/event-stream"), "{head:?}");
    running.began.recv().await.unwrap();
    running.stop();
    let mut seen = String::new();
    while let Some(chunk) = stream.chunk().await {
        seen.push_str(&chunk);
    }
    assert!(seen.ends_with("retry: 1000\n\n"), "{seen:?}");
    assert!(!seen.contains("COMPLETED"), "{seen:?}");
    tokio::time::timeout(PATIENCE, running.serving).await.unwrap().unwrap().unwrap();
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
async fn with_the_kernel_stopped_beside_it_blocked_senders_get_their_task() {
    let mut running = Running::open().await;
    let mut blocked = running.connect().await;
    blocked.send(&request("POST /a2a/gate", &[JSON], &send_message(1, "SendMessage", "later"))).await;
    running.began.recv().await.unwrap();
    running.stop();
    let kernel = running.engine.clone();
    let stopping = tokio::spawn(async move { kernel.shutdown().await });
    running.gate.notify_one();
    let reply = blocked.reply().await;
    assert!(reply.json()["result"]["task"]["id"].is_string(), "a committed message is never an error: {reply:?}");
    tokio::time::timeout(PATIENCE, running.serving).await.unwrap().unwrap().unwrap();
    tokio::time::timeout(PATIENCE, stopping).await.unwrap().unwrap().unwrap();
}
