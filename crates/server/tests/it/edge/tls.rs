//! TLS: the same server inside it, and peers that do not come that far.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use metrics_exporter_prometheus::PrometheusBuilder;
use rustls::ProtocolVersion;
use rustls::version::{TLS12, TLS13};

use crate::edge::running::{request, send_message};
use crate::edge::secured::{Secured, agreed, shake_hands_over, speaking, trusting};
use crate::edge::wire::{PATIENCE, Wire, small_socket};

const JSON: &str = "Content-Type: application/json";

/// The beginning of a handshake that announces more than it sends.
const HALF_A_HELLO: &[u8] = &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];

#[tokio::test]
async fn everything_is_served_inside_tls_in_both_versions() {
    let secured = Secured::start().await;
    for (version, named) in [(&TLS12, ProtocolVersion::TLSv1_2), (&TLS13, ProtocolVersion::TLSv1_3)] {
        let stream = secured.shake_hands(speaking(&secured.issued, &[version])).await.unwrap();
        assert_eq!(agreed(&stream), (named, None), "without ALPN it is HTTP/1.1 all the same");
        let mut wire = Wire::over(stream);
        wire.send(&request("POST /a2a", &[JSON], &send_message(7, "SendMessage", "in private"))).await;
        let sent = wire.reply().await;
        assert_eq!((sent.status, &sent.json()["id"]), (200, &7.into()), "{sent:?}");
        assert_eq!(sent.json()["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{sent:?}");

        let message = serde_json::json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "streamed" }] });
        let body = serde_json::json!({ "message": message }).to_string();
        wire.send(&request("POST /a2a/message:stream", &[JSON, "A2A-Version: 1.0"], &body)).await;
        let streamed = wire.reply().await;
        assert_eq!(streamed.header("content-type"), Some("text/event-stream"), "{streamed:?}");
        assert!(streamed.body.contains("streamed") && streamed.body.contains("TASK_STATE_COMPLETED"), "{streamed:?}");
    }
    let card = secured.ask("GET /.well-known/agent-card.json", &[], "").await.json();
    assert!(card["supportedInterfaces"][0]["url"].as_str().unwrap().starts_with("https://"), "{card}");

    let address = secured.running.address;
    let (host, page) = (format!("Host: {address}"), format!("Origin: https://{address}"));
    let own_page = secured.ask("GET /healthz", &[&host, &page], "").await;
    assert_eq!((own_page.status, own_page.header("strict-transport-security")), (200, Some("max-age=31536000")));
    let plain_page = secured.ask("GET /healthz", &[&host, &page.replace("https", "http")], "").await;
    assert_eq!(plain_page.status, 403, "{plain_page:?}");
    assert!(plain_page.header("strict-transport-security").is_some(), "a refusal promises it too");
    let promised = [("agents.example.com:8443", true), ("127.0.0.1:41242", true), ("[::1]:41242", true)];
    // All servers of a machine share this name.
    let shared = [("localhost", false), ("LOCALHOST:41242", false), ("localhost.", false), ("app.localhost:1", false)];
    for (host, is_promised) in promised.into_iter().chain(shared).chain([("localhost.example", true)]) {
        let reply = secured.ask("GET /healthz", &[&format!("Host: {host}")], "").await;
        assert_eq!(reply.header("strict-transport-security").is_some(), is_promised, "{host}: {reply:?}");
    }
}

#[tokio::test]
async fn http2_is_negotiated_and_an_unknown_protocol_is_not() {
    let secured = Secured::start().await;
    let offering = |protocols: &[&[u8]]| {
        let mut client = trusting(&secured.issued);
        client.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        client
    };
    let stream = secured.shake_hands(offering(&[b"http/1.1"])).await.unwrap();
    assert_eq!(agreed(&stream).1, Some(&b"http/1.1"[..]));
    let error = secured.shake_hands(offering(&[b"smtp"])).await.unwrap_err();
    assert!(error.to_string().contains("NoApplicationProtocol"), "{error}");

    let stream = secured.shake_hands(offering(&[b"http/1.1", b"h2"])).await.unwrap();
    assert_eq!(agreed(&stream), (ProtocolVersion::TLSv1_3, Some(&b"h2"[..])), "the better one is ours to choose");
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let mut pending = Vec::new();
    for id in 1..=5 {
        let body = Full::new(Bytes::from(send_message(id, "SendMessage", "both ways")));
        let at = format!("https://{}/a2a", secured.running.address);
        let sent = http::Request::post(at).header("content-type", "application/json").body(body).unwrap();
        pending.push((id, sender.send_request(sent)));
    }
    for (id, response) in pending {
        let response = response.await.unwrap();
        assert_eq!((response.status().as_u16(), response.version()), (200, http::Version::HTTP_2));
        assert!(response.headers().contains_key("strict-transport-security"));
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(serde_json::from_slice::<serde_json::Value>(&body).unwrap()["id"], id);
    }
    let local = http::Request::get("https://localhost/healthz").body(Full::default()).unwrap();
    let local = sender.send_request(local).await.unwrap();
    assert!(!local.headers().contains_key("strict-transport-security"), "HTTP/2 has no Host");
}

#[tokio::test]
async fn a_peer_that_does_not_finish_its_handshake_is_let_go() {
    // A recorder of this thread, on which everything here runs: the counter is this server's alone.
    let recorder = PrometheusBuilder::new().build_recorder();
    let metrics = recorder.handle();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let secured = Secured::with(|options| options.header_timeout = Duration::from_millis(500)).await;
    let mut stalled = Vec::new();
    for beginning in [&[], &HALF_A_HELLO[..1], HALF_A_HELLO] {
        let mut wire = secured.running.connect().await;
        // On a slow machine it may be let go before it has said anything.
        let _ = wire.try_send(beginning).await;
        stalled.push(wire);
    }
    for mut wire in stalled {
        assert_eq!(wire.rest().await, "");
    }
    let told = metrics.render();
    assert!(told.contains("a2a_failed_handshakes_total 3"), "{told}");
    let mut silent = loop {
        // A slow machine may need more than one try to be done in time.
        if let Ok(stream) = secured.shake_hands(trusting(&secured.issued)).await {
            break Wire::over(stream);
        }
    };
    assert_eq!(silent.rest().await, "", "and one that is done buys no more time for the first request");
}

#[tokio::test]
async fn a_handshake_under_way_counts_as_a_connection_and_holds_up_neither_others_nor_a_stop() {
    let mut secured = Secured::with(|options| {
        options.connections = 2;
        options.header_timeout = Duration::from_secs(60 * 60);
        options.drain = Duration::from_secs(60 * 60);
    })
    .await;
    let mut stalled = secured.running.connect().await;
    stalled.try_send(HALF_A_HELLO).await.unwrap();
    let mut other = secured.connect().await;
    other.send(&request("GET /healthz", &[], "")).await;
    assert_eq!(other.reply().await.status, 200, "the others are served meanwhile");
    let refused = secured.shake_hands(trusting(&secured.issued)).await;
    assert!(refused.is_err(), "both places are taken");
    secured.running.stop_all().await;
    assert_eq!(stalled.rest().await, "");
    assert_eq!(other.rest().await, "");
    tokio::time::timeout(PATIENCE, secured.running.serving).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn plain_http_on_a_tls_port_gets_an_error() {
    let secured = Secured::start().await;
    let plain = secured.running.ask("GET /healthz", &[], "").await;
    assert_eq!((plain.status, plain.header("connection")), (400, Some("close")), "{plain:?}");
    assert!(plain.json()["error"]["message"].as_str().unwrap().contains("https://"), "{plain:?}");
    let mut noise = secured.running.connect().await;
    noise.try_send(&[0; 64]).await.unwrap();
    let alert = noise.rest().await;
    assert!(!alert.contains("HTTP"), "{alert:?}");
}

#[tokio::test]
async fn an_answer_that_is_not_read_costs_the_connection_inside_tls_too() {
    let secured = Secured::with(|options| {
        options.connections = 1;
        options.write_timeout = Duration::from_millis(200);
    })
    .await;
    let large = "x".repeat(3 << 20);
    let task = secured.running.make_task(&large).await;
    let stream = small_socket(secured.running.address).await;
    let mut wire = Wire::over(shake_hands_over(stream, trusting(&secured.issued)).await.unwrap());
    wire.send(&request(&format!("GET /tasks/{task}"), &[], "")).await;
    let served_again = async { while secured.shake_hands(trusting(&secured.issued)).await.is_err() {} };
    tokio::time::timeout(PATIENCE, served_again).await.expect("the place was never given back");
    let read = wire.rest().await.len();
    assert!(read < 2 * large.len(), "the answer was whole, {read} bytes, so nothing was cut");
}

#[tokio::test]
async fn a_client_refused_in_the_middle_of_sending_can_read_why() {
    let secured = Secured::with(|options| options.request_body = 1_000).await;
    let mut wire = secured.connect().await;
    let body = send_message(1, "SendMessage", &"x".repeat(200_000));
    // It may hang up before everything is sent.
    let _ = wire.try_send(request("POST /a2a", &[JSON], &body).as_bytes()).await;
    let refused = wire.reply().await;
    assert_eq!(refused.status, 413, "{refused:?}");
    assert_eq!(wire.rest().await, "");
}
