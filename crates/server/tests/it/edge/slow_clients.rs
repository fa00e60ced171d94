//! Slow clients, which do not read their responses: they lose their connection, and no other client does.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Empty;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::edge::running::{Running, request, send_message};
use crate::edge::wire::PATIENCE;

const JSON: &str = "Content-Type: application/json";

/// An answer holds it twice, and that is more than the sender's buffer takes; the receiver's is kept small.
const LARGE: usize = 3 << 20;

/// Asks something of the server until it is answered with 200.
async fn served_again(running: &Running, head: &str, body: &str) {
    let status = async || running.try_ask(head, &[JSON, "Connection: close"], body).await.map(|reply| reply.status);
    let asking = async { while status().await != Some(200) {} };
    tokio::time::timeout(PATIENCE, asking).await.expect("the place was never given back");
}

#[tokio::test]
async fn an_answer_that_is_not_read_costs_the_connection() {
    let running = Running::with(|options| {
        options.connections = 1;
        options.write_timeout = Duration::from_millis(200);
    })
    .await;
    // Who would read it over the wire could be cut as well, if the machine is slow.
    let task = running.make_task(&"x".repeat(LARGE)).await;
    let mut wire = running.connect_small().await;
    wire.send(&request(&format!("GET /tasks/{task}"), &[], "")).await;
    served_again(&running, "GET /healthz", "").await;
    let read = wire.rest().await.len();
    assert!(read < 2 * LARGE, "the answer was whole, {read} bytes, so nothing was cut");
}

#[tokio::test]
async fn a_stream_that_is_not_read_gives_its_place_back() {
    let mut running = Running::with(|options| {
        options.streams = 1;
        options.write_timeout = Duration::from_millis(200);
    })
    .await;
    // A stream that has nothing to say is not late, so it keeps the one place.
    let mut quiet = running.connect().await;
    quiet.send(&request("POST /a2a/gate", &[JSON], &send_message(1, "SendStreamingMessage", "watch"))).await;
    assert_eq!(quiet.head().await.status, 200);
    running.began.recv().await.unwrap();
    let refused = running.ask("POST /a2a/message:stream", &[JSON], &message("while it is taken")).await;
    assert_eq!(refused.status, 503, "{refused:?}");
    drop(quiet);

    // One that is not read has it too, for as long as it is not cut.
    let large = request("POST /a2a", &[JSON], &send_message(1, "SendStreamingMessage", &"x".repeat(LARGE)));
    let mut unread = loop {
        let mut wire = running.connect_small().await;
        wire.send(&large).await;
        // The place of the one before is given back when the server sees that it has gone.
        if wire.head().await.status == 200 {
            break wire;
        }
    };
    served_again(&running, "POST /a2a/message:stream", &message("after it was cut")).await;
    let read = unread.rest().await.len();
    assert!(read < 2 * LARGE, "the stream was whole, {read} bytes, so nothing was cut");
}

fn message(text: &str) -> String {
    let message = serde_json::json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": text }] });
    serde_json::json!({ "message": message }).to_string()
}

#[tokio::test]
async fn an_http2_client_that_makes_no_room_is_cut_although_it_pings() {
    let mut running = Running::with(|options| options.write_timeout = Duration::from_millis(200)).await;
    let task = running.make_task(&"x".repeat(100_000)).await;

    // Who waits for an agent is not late, neither for one answer nor for the next event.
    let mut blocked = running.connect().await;
    blocked.send(&request("POST /a2a/gate", &[JSON], &send_message(2, "SendMessage", "wait"))).await;
    running.began.recv().await.unwrap();
    let mut quiet = running.connect().await;
    quiet.send(&request("POST /a2a/gate", &[JSON], &send_message(3, "SendStreamingMessage", "watch"))).await;
    running.began.recv().await.unwrap();

    // Without any room the answers stay where they are; with a little, HTTP/2 holds what is left of them.
    for room in [0, 1_000] {
        // A slow machine may be cut before its first answer, and then tries again.
        let asking = async { while !is_cut_with_answers_unread(&running, task.as_str(), room).await {} };
        let cut = tokio::time::timeout(PATIENCE, asking).await;
        assert!(cut.is_ok(), "with room for {room} bytes the connection was never cut");
    }

    running.gate.notify_waiters();
    assert_eq!(blocked.reply().await.status, 200);
    assert!(quiet.reply().await.body.contains("TASK_STATE_COMPLETED"));
}

/// Asks ten times without making room for the answers and waits for the connection to end; false if it ended before any
/// answer came.
async fn is_cut_with_answers_unread(running: &Running, task: &str, room: u32) -> bool {
    let stream = TcpStream::connect(running.address).await.unwrap();
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.timer(TokioTimer::new()).initial_stream_window_size(room);
    builder.keep_alive_interval(Duration::from_millis(20)).keep_alive_while_idle(true);
    let Ok((mut sender, connection)) = builder.handshake(TokioIo::new(stream)).await else { return false };
    let connection = tokio::spawn(connection);
    let mut unread = Vec::new();
    for _ in 0..10 {
        let uri = format!("http://{}/tasks/{task}", running.address);
        let asked = http::Request::get(uri).body(Empty::<Bytes>::new()).unwrap();
        let Ok(response) = sender.send_request(asked).await else { break };
        assert_eq!(response.status(), 200);
        unread.push(response);
    }
    // However it ends.
    let _ = connection.await;
    !unread.is_empty()
}

#[tokio::test]
async fn an_http2_connection_carries_64_requests_at_a_time() {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    const EMPTY_SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
    const MAX_CONCURRENT_STREAMS: u16 = 3;
    let running = Running::open().await;
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    stream.write_all(PREFACE).await.unwrap();
    stream.write_all(EMPTY_SETTINGS).await.unwrap();
    let mut head = [0; 9];
    stream.read_exact(&mut head).await.unwrap();
    assert_eq!(head[3], 4, "the first frame is SETTINGS: {head:?}");
    let mut settings = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
    stream.read_exact(&mut settings).await.unwrap();
    let found = settings.chunks(6).find(|setting| setting[..2] == MAX_CONCURRENT_STREAMS.to_be_bytes());
    assert_eq!(found.map(|setting| &setting[2..]), Some(&64_u32.to_be_bytes()[..]), "{settings:?}");
}
