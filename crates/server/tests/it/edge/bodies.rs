//! Bodies: how large, how slow, and in what form.

use std::time::Duration;

use crate::edge::running::{Running, request, send_message};
use crate::edge::wire::PATIENCE;

const JSON: &str = "Content-Type: application/json";

#[tokio::test]
async fn a_body_beyond_the_limit_is_refused_declared_or_not() {
    let running = Running::with(|options| options.request_body = 4_096).await;
    let large = send_message(1, "SendMessage", &"x".repeat(5_000));
    let declared = running.ask("POST /a2a", &[JSON], &large).await;
    assert_eq!(declared.status, 413, "{declared:?}");
    assert_eq!(declared.json()["error"]["code"], -32600);
    assert_eq!(declared.json()["error"]["data"][0]["reason"], "REQUEST_TOO_LARGE");
    assert_eq!(declared.json()["error"]["data"][0]["metadata"]["limit"], "limits.requestBody");
    assert!(declared.body.contains("4096 bytes"), "{declared:?}");

    let mut chunked = String::new();
    for piece in large.as_bytes().chunks(1_000) {
        chunked.push_str(&format!("{:x}\r\n{}\r\n", piece.len(), std::str::from_utf8(piece).unwrap()));
    }
    chunked.push_str("0\r\n\r\n");
    let headers = [JSON, "Transfer-Encoding: chunked"];
    let counted = running.ask("POST /a2a/v1/message:send", &headers, &chunked).await;
    assert_eq!((counted.status, &counted.json()["code"]), (413, &(-32600).into()), "{counted:?}");
    let rest = running.ask("POST /a2a/message:send", &headers, &chunked).await;
    assert_eq!((rest.status, &rest.json()["error"]["status"]), (413, &"RESOURCE_EXHAUSTED".into()), "{rest:?}");

    let fits = send_message(1, "SendMessage", "fits");
    let padded = format!("{fits}{}", " ".repeat(4_096 - fits.len()));
    assert_eq!(running.ask("POST /a2a", &[JSON], &padded).await.status, 200, "the limit itself is allowed");
}

#[tokio::test]
async fn a_client_in_the_middle_of_a_large_body_still_reads_why_it_was_refused() {
    let running = Running::with(|options| options.request_body = 1 << 20).await;
    let mut wire = running.connect().await;
    let body = vec![b' '; 1_500_000];
    let head = request("POST /a2a", &[JSON, &format!("Content-Length: {}", body.len())], "");
    wire.send(&head).await;
    // The server may close once it has seen enough.
    let _ = wire.try_send(&body).await;
    assert_eq!(wire.reply().await.status, 413);

    let mut polite = running.connect().await;
    polite.send(&request("POST /a2a", &[JSON, "Expect: 100-continue", "Content-Length: 99999999"], "")).await;
    assert_eq!(polite.reply().await.status, 413, "no invitation to send what will not be read");
}

#[tokio::test]
async fn a_client_that_sends_everything_before_it_reads_is_told_the_limit() {
    let running = Running::with(|options| options.request_body = 1 << 20).await;
    let body = " ".repeat(14 << 20);
    let declared = format!("Content-Length: {}", body.len());
    // Of a body without a declared length more than the limit is read before it is refused.
    let chunked = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    for (framing, body) in [(declared.as_str(), &body), ("Transfer-Encoding: chunked", &chunked)] {
        let mut wire = running.connect().await;
        wire.send(&request("POST /a2a/echo", &[JSON, framing], "")).await;
        wire.send(body).await;
        let reply = wire.reply().await;
        assert_eq!((reply.status, reply.header("connection")), (413, Some("close")), "{framing}: {reply:?}");
        assert!(reply.body.contains("limits.requestBody"), "{framing}: {reply:?}");
        assert_eq!(wire.rest().await, "", "{framing}");
    }
    // Far beyond that the server reads no more.
    let mut wire = running.connect().await;
    wire.send(&request("POST /a2a/echo", &[JSON, "Content-Length: 9999999999"], "")).await;
    let piece = vec![b' '; 1 << 20];
    let mut sent = 0;
    while sent < 512 && wire.try_send(&piece).await.is_ok() {
        sent += 1;
    }
    assert!(sent < 512, "the server took {sent} MiB of a refused body");
}

#[tokio::test]
async fn compressed_bodies_are_refused_in_words() {
    let running = Running::open().await;
    let body = send_message(5, "SendMessage", "x");
    let reply = running.ask("POST /a2a", &[JSON, "Content-Encoding: gzip"], &body).await;
    assert_eq!(reply.json()["error"]["code"], -32005, "{reply:?}");
    assert_eq!(reply.json()["id"], 5);
    assert!(reply.body.contains("gzip"), "{reply:?}");
    let identity = running.ask("POST /a2a", &[JSON, "Content-Encoding: identity"], &body).await;
    assert!(identity.json()["result"].is_object(), "{identity:?}");
}

#[tokio::test]
async fn a_body_that_stops_coming_is_not_waited_for() {
    let running = Running::with(|options| options.header_timeout = Duration::from_millis(200)).await;
    let begun = request("POST /a2a", &[JSON, "Content-Length: 100"], "{\"jsonrpc\"");
    let (mut wire, reply) = loop {
        let mut wire = running.connect().await;
        let _ = wire.try_send(begun.as_bytes()).await;
        // On a slow machine it may be let go before its headers are there, and then there is nothing to answer.
        if let Some(reply) = wire.try_reply().await {
            break (wire, reply);
        }
    };
    assert_eq!((reply.status, reply.header("connection")), (408, Some("close")), "{reply:?}");
    assert!(reply.body.contains("200 ms"), "{reply:?}");
    assert_eq!(reply.json()["error"]["data"][0]["reason"], "REQUEST_TIMEOUT", "{reply:?}");
    assert_eq!(wire.rest().await, "", "the connection is of no use any more");
}

#[tokio::test]
async fn a_body_that_only_drips_is_not_waited_for_and_the_bytes_of_a_large_one_buy_it_time() {
    let running = Running::with(|options| options.body_timeout = Duration::from_millis(300)).await;
    let large = request("POST /a2a", &[JSON], &send_message(1, "SendMessage", &"x".repeat(1 << 20)));
    let (most, rest) = large.split_at(large.len() - 10);
    let mut large = running.connect().await;
    large.send(most).await;
    for head in ["POST /a2a", "POST /a2a/message:send"] {
        let mut wire = running.connect().await;
        wire.send(&request(head, &[JSON, "Content-Length: 100000"], "{")).await;
        let mut drops = tokio::time::interval(Duration::from_millis(20));
        let dripping = async {
            loop {
                drops.tick().await;
                // The server may have hung up by now; its answer says why.
                let sent = wire.try_send(b" ").await;
                if let Some(reply) = wire.reply_at_hand().await {
                    break reply;
                }
                assert!(sent.is_ok(), "the server hung up without an answer");
            }
        };
        let reply = tokio::time::timeout(PATIENCE, dripping).await.expect("the server waits for ever");
        assert_eq!((reply.status, reply.header("connection")), (408, Some("close")), "{reply:?}");
        assert!(reply.body.contains("300 ms") && reply.body.contains("server.bodyTimeout"), "{reply:?}");
        assert!(reply.body.contains("REQUEST_TIMEOUT"), "{reply:?}");
    }
    // Two that began later have had all their time by now.
    large.send(rest).await;
    assert_eq!(large.reply().await.status, 200);
}

#[tokio::test]
async fn nonsense_never_takes_the_server_down() {
    let running = Running::open().await;
    let deep = "[".repeat(200_000);
    let long_name = format!("GET /a2a/{}/tasks", "n".repeat(20_000));
    for (head, body) in [
        ("POST /a2a", "\u{0}"),
        ("POST /a2a", "{"),
        ("POST /a2a", "null"),
        ("POST /a2a", deep.as_str()),
        ("POST /a2a/%zz/message:send", "{}"),
        ("GET /tasks/%ff%fe?pageSize=%", ""),
        ("DELETE /", ""),
        (long_name.as_str(), ""),
    ] {
        let reply = running.ask(head, &[JSON], body).await;
        assert!((200..500).contains(&reply.status), "{head}: {reply:?}");
        assert!(reply.json()["error"].is_object(), "{head}: {reply:?}");
    }
    for bytes in [
        "\0\0\0\0",
        "GET / HTTP/9.9\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nnot a frame at all",
        "\r\n\r\n\r\nhello\r\n\r\n",
    ] {
        let mut wire = running.connect().await;
        wire.send(bytes).await;
        wire.rest().await;
    }
    assert_eq!(running.ask("GET /healthz", &[], "").await.status, 200);
}
