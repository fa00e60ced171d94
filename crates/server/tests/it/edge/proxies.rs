//! Where requests come from: addresses that open too many connections, and reverse proxies in between.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use switchboard_server::{Options, Server};
use tokio::net::TcpListener;

use crate::edge::running::{Running, request, send_message};
use crate::edge::wire::{PATIENCE, Wire};

const JSON: &str = "Content-Type: application/json";
const ANN: &str = "X-API-Key: a2a_ann";

#[tokio::test]
async fn one_address_cannot_hold_all_connections() {
    let running = Running::with(|options| {
        options.connections_per_address = 2;
        options.loopback_is_exempt = false;
    })
    .await;
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut wire = running.connect().await;
        wire.send(&request("GET /healthz", &[], "")).await;
        assert_eq!(wire.reply().await.status, 200);
        held.push(wire);
    }
    let refused = running.ask("GET /healthz", &[], "").await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")), "{refused:?}");
    let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("limits.connectionsPerAddress"), "{message}");
    drop(held);
    let freed = async { while running.ask("GET /healthz", &[], "").await.status != 200 {} };
    tokio::time::timeout(PATIENCE, freed).await.expect("the slots were not given back");
}

#[tokio::test]
async fn behind_a_trusted_proxy_each_client_has_its_own_limit() {
    let mut running = Running::keyed_with(|options| {
        options.connections_per_address = 1;
        options.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    })
    .await;
    let of = |client: &str| format!("X-Forwarded-For: {client}");
    let mut busy = running.connect().await;
    let body = send_message(1, "SendMessage", "wait");
    busy.send(&request("POST /a2a/gate", &[JSON, ANN, &of("192.0.2.1")], &body)).await;
    running.began.recv().await.unwrap();
    let refused = running.ask("GET /a2a/gate/tasks", &[ANN, &of("192.0.2.1")], "").await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")), "{refused:?}");
    assert!(refused.body.contains("192.0.2.1") && refused.body.contains("limits.connectionsPerAddress"), "{refused:?}");
    let other = running.ask("GET /a2a/gate/tasks", &[ANN, &of("192.0.2.1, 192.0.2.2")], "").await;
    assert_eq!(other.status, 200, "what a client writes itself does not count: {other:?}");
    let same = running.ask("GET /a2a/gate/tasks", &[ANN, &of("::ffff:192.0.2.1")], "").await;
    assert_eq!(same.status, 503, "it is the same address, written as IPv6: {same:?}");
    running.gate.notify_one();
    assert_eq!(busy.reply().await.status, 200);
    busy.send(&request("POST /a2a/gate", &[JSON, ANN, &of("2001:db8:0:1::1")], &body)).await;
    running.began.recv().await.unwrap();
    for (client, status) in [("2001:db8:0:1:ffff::2", 503), ("2001:db8:0:2::1", 200), ("127.0.0.9", 200)] {
        let reply = running.ask("GET /a2a/gate/tasks", &[ANN, &of(client)], "").await;
        assert_eq!(reply.status, status, "IPv6 is counted by network, and a proxy is exempt: {client}: {reply:?}");
    }
    running.gate.notify_one();
    assert_eq!(busy.reply().await.status, 200);
    assert_eq!(running.ask("GET /a2a/gate/tasks", &[ANN, &of("192.0.2.1")], "").await.status, 200);
}

#[tokio::test]
async fn a_client_cannot_escape_its_limit_with_a_forwarding_header_that_its_proxy_lets_pass() {
    let mut running = Running::keyed_with(|options| {
        options.connections_per_address = 1;
        options.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    })
    .await;
    // The proxy writes X-Real-IP alone; the other header is the client's own, and another one each time.
    let real = "X-Real-IP: 192.0.2.9";
    let mut busy = running.connect().await;
    let body = send_message(1, "SendMessage", "wait");
    busy.send(&request("POST /a2a/gate", &[JSON, ANN, real, "X-Forwarded-For: 198.51.100.1"], &body)).await;
    running.began.recv().await.unwrap();
    let refused = running.ask("GET /a2a/gate/tasks", &[ANN, real, "X-Forwarded-For: 198.51.100.2"], "").await;
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.body.contains("127.0.0.1 has 1 requests under way"), "{refused:?}");
    assert!(refused.body.contains("name no single client"), "{refused:?}");
    let honest = running.ask("GET /a2a/gate/tasks", &[ANN, real], "").await;
    assert_eq!(honest.status, 200, "clients that send no such header are told apart: {honest:?}");
    running.gate.notify_one();
    assert_eq!(busy.reply().await.status, 200);
}

#[tokio::test]
async fn only_trusted_proxies_say_which_address_the_client_has() {
    let trusted = ["127.0.0.0/8", "10.0.0.0/8", "fd00::/8"];
    // Without a slot for any address, the refusal names the one that counts; trusted ones need none.
    let running = Running::keyed_with(|options| {
        options.connections_per_address = 0;
        options.trusted_proxies = trusted.map(|network| network.parse().unwrap()).to_vec();
    })
    .await;
    for (headers, client) in [
        (&["X-Forwarded-For: 192.0.2.9"][..], Some("192.0.2.9")),
        (&["X-Forwarded-For: 1.1.1.1, 192.0.2.9, 10.0.0.7"], Some("192.0.2.9")),
        (&["X-Forwarded-For: 1.1.1.1", "X-Forwarded-For: 192.0.2.9:4711"], Some("192.0.2.9")),
        (&["X-Forwarded-For: \u{e9}, 203.0.113.5"], Some("203.0.113.5")),
        (&["X-Forwarded-For: [2001:db8::7]"], Some("2001:db8::7")),
        (&["X-Real-IP: 2001:db8::7"], Some("2001:db8::7")),
        (&["Forwarded: proto=https;For=\"[2001:db8::7]:4711\";by=10.0.0.2"], Some("2001:db8::7")),
        (&["Forwarded: for=192.0.2.9, for=10.1.1.1"], Some("192.0.2.9")),
        (
            &["Forwarded: for=192.0.2.9", "X-Forwarded-For: 1.1.1.1, 192.0.2.9", "X-Real-IP: 192.0.2.9"],
            Some("192.0.2.9"),
        ),
        // A client's own header passes most proxies, so that one of these may be its own: the proxy counts.
        (&["Forwarded: for=1.1.1.1", "X-Forwarded-For: 192.0.2.9"], Some("127.0.0.1")),
        (&["X-Forwarded-For: 1.1.1.1", "X-Real-IP: 192.0.2.9"], Some("127.0.0.1")),
        (&["X-Forwarded-For: 192.0.2.9, unknown, 10.0.0.7"], Some("127.0.0.1")),
        (&["Forwarded: for=_hidden"], Some("127.0.0.1")),
        (&["X-Forwarded-For: 10.0.0.7"], None),
        (&["X-Forwarded-For: ,"], None),
        (&[], None),
    ] {
        let reply = running.ask("GET /healthz", headers, "").await;
        assert_eq!(reply.status, if client.is_some() { 503 } else { 200 }, "{headers:?}: {reply:?}");
        let named = format!("{} has 0 requests under way", client.unwrap_or_default());
        assert!(client.is_none() || reply.body.contains(&named), "{headers:?}: {reply:?}");
    }
    let direct = Running::keyed_with(|options| {
        options.connections_per_address = 0;
        options.trusted_proxies = vec!["10.0.0.0/8".parse().unwrap()];
    })
    .await;
    let spoofed = direct.ask("GET /healthz", &["X-Forwarded-For: 192.0.2.9"], "").await;
    assert_eq!(spoofed.status, 200, "this machine is no proxy: {spoofed:?}");
}

#[tokio::test]
async fn an_open_server_refuses_what_comes_through_a_proxy() {
    let trusting = Running::with(|options| options.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()]).await;
    for running in [Running::open().await, trusting] {
        for header in [
            "Forwarded: for=192.0.2.1",
            "X-Forwarded-For: 192.0.2.1",
            "X-Forwarded-Proto: https",
            "X-Forwarded-Anything: x",
            "X-Real-IP: 192.0.2.1",
            "Via: 1.1 proxy",
        ] {
            let name = header.split(':').next().unwrap().to_ascii_lowercase();
            for head in ["GET /healthz", "GET /.well-known/agent-card.json", "GET /a2a/tasks", "GET /nowhere"] {
                let refused = running.ask(head, &[header], "").await;
                assert_eq!(refused.status, 403, "{head} with {header}: {refused:?}");
                assert!(refused.body.contains(&name), "{refused:?}");
                assert!(refused.body.contains("switchboard keys create"), "{refused:?}");
            }
            let rpc = running.ask("POST /a2a", &[JSON, header], &send_message(3, "SendMessage", "x")).await;
            assert_eq!((rpc.status, &rpc.json()["id"]), (403, &3.into()), "{rpc:?}");
        }
        assert_eq!(running.ask("GET /healthz", &["X-Forwarder: x"], "").await.status, 200);
    }
    let keyed = Running::keyed().await;
    assert_eq!(
        keyed.ask("GET /a2a/tasks", &[ANN, "X-Forwarded-For: 192.0.2.1", "Via: 1.1 proxy"], "").await.status,
        200
    );
}

#[tokio::test]
async fn an_ipv4_peer_of_an_ipv6_socket_is_known_by_its_ipv4_address() {
    let running = Running::keyed().await;
    // Where the system keeps the families apart there is no such peer.
    let Ok(listener) = TcpListener::bind("[::ffff:127.0.0.1]:0").await else { return };
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, listener.local_addr().unwrap().port()));
    let trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    let options = Options { open: false, connections_per_address: 0, trusted_proxies, ..Options::default() };
    let server = Server::new(running.engine.clone(), options, Arc::clone(&running.keys) as _);
    tokio::spawn(server.run(listener, std::future::pending()));
    // Without a slot for any address, the refusal names the one that counts. The peer itself needs none.
    for (forwarded, client) in [
        (&b""[..], None),
        (b"X-Forwarded-For: 192.0.2.9\r\n", Some("192.0.2.9")),
        // What a client wrote before its proxy hides nothing, even if it is no UTF-8.
        (b"X-Forwarded-For: \xe9, 203.0.113.5\r\n", Some("203.0.113.5")),
    ] {
        let mut wire = Wire::connect(address).await;
        let head = [&b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"[..], forwarded, b"\r\n"].concat();
        wire.try_send(&head).await.unwrap();
        let reply = wire.reply().await;
        assert_eq!(reply.status, if client.is_some() { 503 } else { 200 }, "{client:?}: {reply:?}");
        let named = format!("{} has 0 requests under way", client.unwrap_or_default());
        assert!(client.is_none() || reply.body.contains(&named), "{client:?}: {reply:?}");
    }
}
