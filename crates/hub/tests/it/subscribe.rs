//! `/api/bus/subscribe`: the feed over a WebSocket, to whom it is shown, what ends it, and what a client can send to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use switchboard_engine::Settings;
use switchboard_engine::clock::SimulatedClock;
use switchboard_host::config::Config;
use switchboard_host::config::size::Count;
use switchboard_host::config::time_span::TimeSpan;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use crate::running::{Running, START, folder};

const ALL: &str = "/api/bus/subscribe?topic=%23";
const HANDSHAKE: [&str; 4] = [
    "Connection: keep-alive, Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];

struct Client(WebSocketStream<TcpStream>);

impl Client {
    async fn open(running: &Running, path: &str, key: &str) -> Self {
        let authorization = format!("Authorization: Bearer {key}");
        let headers = [&HANDSHAKE[..], &[&authorization]].concat();
        let (status, head, stream) = begin(running, path, &headers).await;
        assert_eq!(status, 101, "{head}");
        assert!(head.contains("sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"), "{head}");
        Self(WebSocketStream::from_raw_socket(stream, Role::Client, None).await)
    }

    async fn next(&mut self) -> Value {
        loop {
            match self.0.next().await.unwrap().unwrap() {
                Message::Text(text) => return serde_json::from_str(&text).unwrap(),
                Message::Ping(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    async fn topics(&mut self, count: usize) -> Vec<String> {
        let mut topics = Vec::new();
        for _ in 0..count {
            topics.push(self.next().await["topic"].as_str().unwrap().to_owned());
        }
        topics
    }

    /// The code that it is closed with; 0 if it is cut. Items before that are skipped.
    async fn closed(mut self) -> u16 {
        loop {
            match self.0.next().await {
                Some(Ok(Message::Close(Some(close)))) => return close.code.into(),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return 0,
            }
        }
    }
}

/// Sends a handshake and reads the head of the answer.
async fn begin(running: &Running, path: &str, headers: &[&str]) -> (u16, String, TcpStream) {
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{}\r\n\r\n", headers.join("\r\n"));
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    (head[9..12].parse().unwrap(), head, stream)
}

const DONE: [&str; 4] = ["task.received.echo", "task.artifact.echo", "task.completed.echo", "outcome.echo.-"];

#[tokio::test]
async fn a_websocket_has_what_its_key_may_see_by_topic_and_goes_on_after_a_cursor() {
    let data = folder();
    let running = Running::in_folder(data.path()).await;
    let mut all = Client::open(&running, ALL, "vic").await;
    let mut some =
        Client::open(&running, "/api/bus/subscribe?topic=task.completed.*&topic=outcome.%23&agent=echo", "vic").await;
    let mut own = Client::open(&running, ALL, "bob").await;
    let mut foreign = Client::open(&running, ALL, "cat").await;
    let task = running.send("bob", "echo", "one").await;
    running.send("cat", "echo", "two").await;
    let first = all.next().await;
    assert_eq!((&first["topic"], &first["source"]["caller"]), (&json!(DONE[0]), &json!("bob")));
    assert_eq!(first["payload"]["message"]["parts"][0]["text"], "one");
    assert_eq!(all.topics(7).await, [&DONE[1..], &DONE[..]].concat());
    assert_eq!(some.topics(4).await, [DONE[2], DONE[3], DONE[2], DONE[3]]);
    assert_eq!(own.topics(4).await, DONE);
    // The first that another caller gets is of its own task.
    let item = foreign.next().await;
    assert_eq!((&item["topic"], &item["source"]["caller"]), (&json!(DONE[0]), &json!("cat")));
    let after = format!("{ALL}&from={}", first["id"].as_str().unwrap());
    assert_eq!(Client::open(&running, &after, "vic").await.topics(7).await, [&DONE[1..], &DONE[..]].concat());
    let brief =
        format!("/api/bus/subscribe?topic=task.%23&view=brief&from=oldest&task={}", task["id"].as_str().unwrap());
    let newest = Client::open(&running, &brief, "bob").await.next().await;
    assert_eq!((&newest["payload"], &newest["source"]["taskId"]), (&Value::Null, &task["id"]));
    running.stop().await;

    // What was written before this start is not in memory, and a key without a role does not read it back.
    let running = Running::in_folder(data.path()).await;
    let mut late = Client::open(&running, &format!("{ALL}&from=oldest"), "bob").await;
    assert_eq!(late.next().await["topic"], "gap");
    running.send("bob", "echo", "three").await;
    assert_eq!(late.topics(4).await, DONE);
    running.stop().await;
}

#[tokio::test]
async fn what_opens_no_websocket_is_refused() {
    let data = folder();
    let running = Running::in_folder(data.path()).await;
    let (status, refusal) = running.ask(&format!("GET {ALL}"), "bob", &[], "").await;
    assert_eq!((status, &refusal["code"], &refusal["success"]), (426, &json!("UPGRADE_REQUIRED"), &json!(false)));
    let bob = "Authorization: Bearer bob";
    let without = |name: &str| -> Vec<&str> {
        HANDSHAKE.into_iter().filter(|header| !header.starts_with(name)).chain([bob]).collect()
    };
    let with = |more: &'static str| [&HANDSHAKE[..], &[more]].concat();
    let none = "/api/bus/subscribe";
    for (path, headers, right) in [
        (ALL, without("Upgrade"), 426),
        (ALL, without("Connection"), 426),
        (ALL, without("Sec-WebSocket-Version"), 426),
        (ALL, without("Sec-WebSocket-Key"), 400),
        (none, with(bob), 400),
        ("/api/bus/subscribe?topic=a..b", with(bob), 400),
        ("/api/bus/subscribe?topic=a&before=now", with(bob), 400),
        ("/api/bus/subscribe?topic=a&from=x", with(bob), 400),
        (ALL, HANDSHAKE.to_vec(), 401),
        (ALL, with("Sec-WebSocket-Protocol: switchboard, bearer.nobody"), 401),
        // Of another protocol's words nothing is taken for a key, nor at any other path.
        (ALL, with("Sec-WebSocket-Protocol: bearer.bob"), 401),
        ("/api/feed", vec!["Sec-WebSocket-Protocol: switchboard, bearer.bob"], 401),
        (ALL, [with(bob), vec!["Sec-WebSocket-Protocol: switchboard, bearer.vic"]].concat(), 401),
        (ALL, [with(bob), vec!["Origin: https://elsewhere.example"]].concat(), 403),
    ] {
        let (status, head, _) = begin(&running, path, &headers).await;
        assert_eq!(status, right, "{path} {headers:?}: {head}");
        assert_eq!(head.contains("upgrade: websocket\r\n"), right == 426, "{head}");
    }
    let protocols = with("Sec-WebSocket-Protocol: switchboard, bearer.bob");
    let (status, head, stream) = begin(&running, ALL, &protocols).await;
    assert_eq!((status, head.contains("sec-websocket-protocol: switchboard\r\n")), (101, true), "{head}");
    let mut opened = Client(WebSocketStream::from_raw_socket(stream, Role::Client, None).await);
    running.send("bob", "echo", "hello").await;
    assert_eq!(opened.topics(4).await, DONE);
    running.stop().await;
}

#[tokio::test]
async fn a_websocket_ends_with_its_key_with_the_server_and_with_a_message_of_its_client() {
    let data = folder();
    let running = Running::in_folder(data.path()).await;
    for (message, code) in [
        (Message::text("hello"), 1003),
        (Message::binary(vec![1, 2, 3]), 1003),
        (Message::text("x".repeat(100_000)), 1009),
        (Message::Close(None), 1000),
    ] {
        let mut client = Client::open(&running, ALL, "vic").await;
        client.0.send(message.clone()).await.unwrap();
        let closed = client.closed().await;
        // A close without a code is answered in kind, and the end of the connection may come first.
        assert!(closed == code || (code == 1000 && closed == 0), "{closed} to {code}");
    }
    let mut quiet = Client::open(&running, ALL, "vic").await;
    quiet.0.send(Message::Ping(vec![7].into())).await.unwrap();
    assert_eq!(quiet.0.next().await.unwrap().unwrap(), Message::Pong(vec![7].into()));
    running.send("bob", "echo", "hello").await;
    assert_eq!(quiet.topics(4).await, DONE);
    let revoked = Client::open(&running, ALL, "bob").await;
    running.revoke("bob");
    assert_eq!(revoked.closed().await, 1008);
    let ((), code) = tokio::join!(running.stop(), quiet.closed());
    assert_eq!(code, 1001);
}

#[tokio::test]
async fn frames_that_are_none_end_the_connection_and_nothing_else() {
    let panics = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&panics);
    std::panic::set_hook(Box::new(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
    }));
    let data = folder();
    let running = Running::in_folder(data.path()).await;
    let bob = [&HANDSHAKE[..], &["Authorization: Bearer bob"]].concat();
    let mut seed = 7u64;
    for round in 0..64 {
        let (_, _, mut stream) = begin(&running, ALL, &bob).await;
        let noise: Vec<u8> = match round {
            // An unmasked frame, one that goes on for ever, one without an end, a reserved bit.
            0 => vec![0x81, 0x01, b'x'],
            1 => [&[0x81, 0xff][..], &[0xff; 12]].concat(),
            2 => vec![0x01, 0x81, 0, 0, 0, 0, b'x'],
            3 => vec![0xf1, 0x80, 0, 0, 0, 0],
            _ => std::iter::repeat_with(|| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                seed.to_le_bytes()[5]
            })
            .take(round * 4)
            .collect(),
        };
        let _ = stream.write_all(&noise).await;
        let _ = stream.shutdown().await;
        // To its end; it may be reset.
        let _ = stream.read_to_end(&mut Vec::new()).await;
    }
    let mut client = Client::open(&running, ALL, "bob").await;
    running.send("bob", "echo", "hello").await;
    assert_eq!(client.topics(4).await, DONE);
    running.stop().await;
    assert_eq!(panics.load(Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_reads_nothing_is_cut_and_delays_nobody() {
    const LINES: usize = 400;
    let data = folder();
    let settings = |config: &mut Config| {
        config.limits.streams_per_caller = Count::new(1);
        config.server.write_timeout = TimeSpan::from_seconds(5);
    };
    let running = Running::with(data.path(), SimulatedClock::at(START), settings, Settings::default()).await;
    let topic = "/api/bus/subscribe?topic=bulk";
    let slow = Client::open(&running, topic, "vic").await;
    let vic = [&HANDSHAKE[..], &["Authorization: Bearer vic"]].concat();
    assert_eq!(begin(&running, topic, &vic).await.0, 503, "it counts in limits.streams");
    let mut fast = Client::open(&running, topic, "oli").await;
    let line = json!({ "topic": "bulk", "payload": { "text": "x".repeat(60_000) } });
    for _ in 0..LINES {
        assert_eq!(running.post("/publish", "ann", &line).await.0, 202);
    }
    // Readers wait a moment of the clock for the row of an append, which no line of the journal has.
    let time = async {
        loop {
            running.clock.advance(Duration::from_millis(100));
            running.get("/api/tasks?pageSize=1", "ann").await;
        }
    };
    let topics = tokio::select! {
        topics = fast.topics(LINES) => topics,
        () = time => unreachable!(),
    };
    assert_eq!(topics.len(), LINES);
    let freed = async { while begin(&running, topic, &vic).await.0 != 101 {} };
    tokio::time::timeout(crate::HANG_GUARD, freed).await.unwrap();
    drop(slow);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_sends_pings_and_reads_nothing_is_cut_before_their_answers_fill_the_memory() {
    let data = folder();
    let settings = |config: &mut Config| config.server.write_timeout = TimeSpan::from_seconds(1);
    let running = Running::with(data.path(), SimulatedClock::at(START), settings, Settings::default()).await;
    let vic = [&HANDSHAKE[..], &["Authorization: Bearer vic"]].concat();
    let (status, _, mut stream) = begin(&running, ALL, &vic).await;
    assert_eq!(status, 101);
    // Masked with zeros.
    let ping = [&[0x89, 0x80 | 125, 0, 0, 0, 0][..], &[b'x'; 125]].concat();
    let many = ping.repeat(512);
    let cut = async { while stream.write_all(&many).await.is_ok() {} };
    tokio::time::timeout(crate::HANG_GUARD, cut).await.unwrap();
    assert_eq!(running.get("/api/tasks?pageSize=1", "vic").await.0, 200, "nobody else is");
    running.stop().await;
}
