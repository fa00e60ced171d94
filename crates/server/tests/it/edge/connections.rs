//! Connections: reused, pipelined, multiplexed, too slow, too many.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

use crate::edge::running::{Running, request, send_message};
use crate::edge::wire::{PATIENCE, Wire};

const JSON: &str = "Content-Type: application/json";

#[tokio::test]
async fn one_connection_carries_many_requests_also_in_advance() {
    let running = Running::open().await;
    let mut wire = running.connect().await;
    for id in 1..=3 {
        wire.send(&request("POST /a2a", &[JSON], &send_message(id, "SendMessage", "again"))).await;
        let reply = wire.reply().await;
        assert_eq!((reply.status, &reply.json()["id"]), (200, &id.into()), "{reply:?}");
        let artifact = &reply.json()["result"]["task"]["status"]["state"];
        assert_eq!(artifact, "TASK_STATE_COMPLETED");
    }
    let ahead: String =
        (10..20).map(|id| request("POST /a2a", &[JSON], &send_message(id, "SendMessage", "ahead"))).collect();
    wire.send(&ahead).await;
    for id in 10..20 {
        assert_eq!(wire.reply().await.json()["id"], id, "answers come in the order of the requests");
    }
    wire.send(&request("GET /healthz", &["Connection: close"], "")).await;
    assert_eq!(wire.reply().await.status, 200);
    assert_eq!(wire.rest().await, "");
    // Bytes that might have been the beginning of HTTP/2 are not lost.
    let mut slow = running.connect().await;
    for piece in ["P", "R", "OPFIND /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"] {
        slow.send(piece).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(slow.reply().await.status, 405, "PROPFIND is no method of ours");
}

#[tokio::test]
async fn http2_without_tls_serves_the_same() {
    let running = Running::open().await;
    let stream = TcpStream::connect(running.address).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let at = |path: &str| format!("http://{}{path}", running.address);
    let mut pending = Vec::new();
    for id in 1..=5 {
        let body = Full::new(Bytes::from(send_message(id, "SendMessage", "both ways")));
        let sent = http::Request::post(at("/a2a")).header("content-type", "application/json").body(body).unwrap();
        pending.push((id, sender.send_request(sent)));
    }
    for (id, response) in pending {
        let response = response.await.unwrap();
        assert_eq!((response.status().as_u16(), response.version()), (200, http::Version::HTTP_2));
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let answer: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(answer["id"], id);
    }
    let head = http::Request::head(at("/healthz")).body(Full::default()).unwrap();
    let response = sender.send_request(head).await.unwrap();
    assert_eq!(response.headers()["content-length"], "15");
    assert!(response.into_body().collect().await.unwrap().to_bytes().is_empty());
    let rebound = http::Request::get("http://evil.example/healthz").body(Full::default()).unwrap();
    assert_eq!(sender.send_request(rebound).await.unwrap().status(), 403, "the authority is the host here");
}

#[tokio::test]
async fn a_client_that_does_not_finish_its_headers_is_let_go() {
    let running = Running::with(|options| options.header_timeout = Duration::from_millis(300)).await;
    let mut slow = Vec::new();
    for beginning in ["", "P", "PRI * HT", "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: "] {
        let mut wire = running.connect().await;
        // On a slow machine it may be let go before it has said anything.
        let _ = wire.try_send(beginning.as_bytes()).await;
        slow.push((beginning, wire));
    }
    for (beginning, mut wire) in slow {
        assert_eq!(wire.rest().await, "", "{beginning:?}");
    }
    let mut second = served_once(&running).await;
    let _ = second.try_send(b"GET /healthz HTTP/1.1\r\nHost: local").await;
    assert_eq!(second.rest().await, "", "a later request has no more time than the first");
}

/// A connection that was in time with its first request. Where connections have little time, a slow machine may need
/// more than one.
async fn served_once(running: &Running) -> Wire {
    let served = async {
        loop {
            let mut wire = running.connect().await;
            let sent = wire.try_send(request("GET /healthz", &[], "").as_bytes()).await;
            if sent.is_ok()
                && let Some(reply) = wire.try_reply().await
            {
                assert_eq!(reply.status, 200, "{reply:?}");
                return wire;
            }
        }
    };
    tokio::time::timeout(PATIENCE, served).await.expect("no connection was served")
}

#[tokio::test]
async fn an_idle_connection_is_closed_and_one_with_a_long_answer_is_not() {
    let mut running = Running::with(|options| {
        options.header_timeout = Duration::from_millis(250);
        options.idle_timeout = Duration::from_millis(500);
    })
    .await;
    let waiting = request("POST /a2a/gate", &[JSON], &send_message(1, "SendMessage", "wait"));
    let mut busy = loop {
        let mut wire = running.connect().await;
        let _ = wire.try_send(waiting.as_bytes()).await;
        tokio::select! {
            began = running.began.recv() => {
                began.unwrap();
                break wire;
            }
            // It was too late with its request, so it is no busy connection; the next one may be quicker.
            reply = wire.try_reply() => assert!(reply.is_none(), "no test has let it go: {reply:?}"),
        }
    };
    let mut idle = served_once(&running).await;
    assert_eq!(idle.rest().await, "");
    // The idle one is closed, so the busy one has waited longer than that.
    running.gate.notify_one();
    assert_eq!(busy.reply().await.status, 200);
}

#[tokio::test]
async fn headers_have_a_limit() {
    let running = Running::with(|options| {
        options.request_headers = 8 << 10;
        options.headers = 20;
    })
    .await;
    let large = format!("X-Large: {}", "x".repeat(9 << 10));
    let many: Vec<String> = (0..25).map(|number| format!("X-{number}: x")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let long = format!("GET /healthz?{}", "x".repeat(9 << 10));
    for (head, headers, limit) in [
        ("GET /healthz", [large.as_str()].as_slice(), "limits.requestHeaders"),
        (&long, &[], "limits.requestHeaders"),
        ("GET /healthz", &many, "limits.headers"),
    ] {
        let plain = running.ask(head, headers, "").await;
        assert_eq!((plain.status, &plain.json()["error"]["status"]), (431, &"RESOURCE_EXHAUSTED".into()), "{plain:?}");
        assert!(plain.body.contains(limit), "{plain:?}");
        let headers = [headers, &["Content-Type: application/json"]].concat();
        let body = send_message(6, "SendMessage", "x");
        let rpc = running.ask(&head.replace("GET /healthz", "POST /a2a"), &headers, &body).await;
        assert_eq!((rpc.status, &rpc.json()["id"]), (431, &6.into()), "{rpc:?}");
        let info = &rpc.json()["error"]["data"][0];
        assert_eq!((&info["reason"], &info["metadata"]["limit"]), (&"REQUEST_HEADERS_TOO_LARGE".into(), &limit.into()));
        let rest = running.ask(&head.replace("/healthz", "/a2a/tasks"), &headers, "").await;
        assert_eq!((rest.status, &rest.json()["error"]["code"]), (431, &431.into()), "{rest:?}");
        let rest = running.ask(&head.replace("/healthz", "/a2a/v1/tasks"), &headers, "").await;
        assert_eq!((rest.status, &rest.json()["data"]["limit"]), (431, &limit.into()), "{rest:?}");
    }
    assert_eq!(running.ask("GET /healthz", &["X-Large: x"], "").await.status, 200);
}

#[tokio::test]
async fn a_request_that_cannot_be_read_is_told_why() {
    // The number is in docs/calling.md; it is the library's, so a new one may have another.
    const LONGEST: usize = 65_534;
    let running = Running::with(|options| options.request_headers = 1 << 20).await;
    let head = |bytes: usize| format!("GET /healthz?{}", "x".repeat(bytes - "/healthz?".len()));
    assert_eq!(running.ask(&head(LONGEST), &[], "").await.status, 200);
    let refused = running.ask(&head(LONGEST + 1), &[], "").await;
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (414, &414.into()), "{refused:?}");
    assert!(refused.body.contains("65534 bytes"), "{refused:?}");

    // Far beyond the limits the HTTP library answers before there is a request.
    let running = Running::with(|options| {
        options.request_headers = 8 << 10;
        options.headers = 20;
    })
    .await;
    let large = format!("X-Large: {}", "x".repeat(500 << 10));
    let many: Vec<String> = (0..2_000).map(|number| format!("X-{number}: x")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for headers in [&[large.as_str()][..], &many] {
        for head in ["GET /healthz", "POST /a2a"] {
            let refused = running.ask(head, headers, "").await;
            assert_eq!(
                (refused.status, refused.header("content-type")),
                (431, Some("application/json")),
                "{refused:?}"
            );
            assert_eq!(refused.json()["error"]["status"], "RESOURCE_EXHAUSTED", "{refused:?}");
            let info = &refused.json()["error"]["details"][0];
            assert_eq!(
                (&info["reason"], &info["metadata"]["maxHeaders"]),
                (&"REQUEST_HEADERS_TOO_LARGE".into(), &"20".into()),
                "{refused:?}"
            );
            assert!(
                refused.body.contains("limits.headers") && refused.body.contains("limits.requestHeaders"),
                "{refused:?}"
            );
        }
        // Also behind requests that were answered.
        let mut wire = running.connect().await;
        wire.send(&request("GET /healthz", &[], "")).await;
        assert_eq!(wire.reply().await.status, 200);
        let _ = wire.try_send(request("GET /healthz", headers, "").as_bytes()).await;
        assert_eq!(wire.reply().await.json()["error"]["code"], 431);
        assert_eq!(wire.rest().await, "", "the connection ends");
    }
    let mut wire = running.connect().await;
    wire.send("GET /healthz HTTP/1.1\r\nno colon\r\n\r\n").await;
    assert_eq!(wire.reply().await.json()["error"]["code"], 400);
}

#[tokio::test]
async fn headers_beyond_the_limit_are_told_over_http2_too() {
    let running = Running::with(|options| options.request_headers = 8 << 10).await;
    let stream = TcpStream::connect(running.address).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    for size in [9 << 10, 60 << 10] {
        let asked = http::Request::get(format!("http://{}/healthz", running.address));
        let asked = asked.header("x-large", "x".repeat(size)).body(Full::<Bytes>::default()).unwrap();
        let response = sender.send_request(asked).await.unwrap();
        assert_eq!(response.status(), 431);
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert!(String::from_utf8_lossy(&body).contains("limits.requestHeaders"), "{body:?}");
    }
}

#[tokio::test]
async fn a_connection_beyond_the_cap_is_told_so() {
    let running = Running::with(|options| options.connections = 1).await;
    let mut first = running.connect().await;
    first.send(&request("GET /healthz", &[], "")).await;
    assert_eq!(first.reply().await.status, 200);
    let mut second = running.connect().await;
    second.send(&request("GET /healthz", &[], "")).await;
    let refused = second.reply().await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")), "{refused:?}");
    assert!(refused.json()["error"]["message"].as_str().unwrap().contains("limits.connections"), "{refused:?}");
    assert_eq!(second.rest().await, "");
    first.send(&request("GET /healthz", &[], "")).await;
    assert_eq!(first.reply().await.status, 200, "who is in stays in");
    drop(first);
    let freed = async { while running.ask("GET /healthz", &[], "").await.status != 200 {} };
    tokio::time::timeout(PATIENCE, freed).await.expect("the place was not given back");
}
