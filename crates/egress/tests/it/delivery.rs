//! What comes back from receivers that behave, and from those that do not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Method, Request, header};
use switchboard_egress::{BodyEnd, Egress, Options, SendError, TimeoutPhase};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};

use crate::receiver::{LONG, Receiver, SHORT, loopback, loopback_egress, post, read_request};

#[tokio::test]
async fn a_request_arrives_as_it_was_written_and_the_answer_comes_back() {
    let answer = "HTTP/1.1 202 Accepted\r\nset-cookie: a=b\r\ncontent-encoding: gzip\r\nretry-after: 7\r\n\
                  content-length: 4\r\n\r\n\x1f\x08ok";
    let (receiver, requests) = Receiver::answering(answer).await;
    let egress = loopback_egress(Vec::new());
    for _ in 0..2 {
        let request = Request::post(receiver.url("/hook?token=1#part"))
            .header("authorization", "Bearer secret")
            .header("host", "inside.internal")
            .body(Bytes::from_static(b"{\"a\":1}"))
            .unwrap();
        let response = egress.send(request, LONG, 1024).await.unwrap();
        assert_eq!(response.status(), 202);
        assert_eq!(response.headers()["retry-after"], "7");
        assert_eq!(response.body().as_ref(), b"\x1f\x08ok", "nothing is unpacked");
        assert_eq!(response.extensions().get(), Some(&BodyEnd::Complete));
    }
    let expected = format!(
        "POST /hook?token=1 HTTP/1.1\r\nauthorization: Bearer secret\r\nhost: {}\r\ncontent-length: 7\r\n\r\n{{\"a\":1}}",
        receiver.address
    );
    assert_eq!(*requests.lock(), [expected.clone(), expected], "no cookie, no referer, no agent, no other host");
    assert_eq!(receiver.connections(), 1, "the connection is used again");
}

#[tokio::test]
async fn a_redirect_is_an_answer() {
    let (inside, _) = Receiver::answering("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let location = inside.url("/secret");
    for status in [301, 302, 303, 307, 308] {
        let location = location.clone();
        let receiver = Receiver::start(move |mut socket| {
            let answer = format!("HTTP/1.1 {status} Go\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n");
            async move {
                read_request(&mut socket).await;
                socket.write_all(answer.as_bytes()).await.unwrap();
            }
        })
        .await;
        let response = loopback_egress(Vec::new()).send(post(&receiver.url("/")), LONG, 0).await.unwrap();
        assert_eq!(response.status(), status);
        assert_eq!(response.headers()[header::LOCATION], *inside.url("/secret"));
    }
    assert_eq!(inside.connections(), 0);
}

#[tokio::test]
async fn a_receiver_that_hangs_costs_the_time_it_was_given() {
    let receiver = Receiver::start(|mut socket| async move {
        // Reads on and never answers, until the client leaves.
        while read_request(&mut socket).await.is_some() {}
    })
    .await;
    let error = loopback_egress(Vec::new()).send(post(&receiver.url("/secret")), SHORT, 0).await.unwrap_err();
    assert_eq!(error, SendError::Timeout { phase: TimeoutPhase::Response });
    assert_eq!(error.to_string(), "timed out while waiting for the answer");
}

#[tokio::test]
async fn a_connection_that_ends_before_the_head_is_broken() {
    let egress = loopback_egress(Vec::new());
    for part in ["", "HTTP/1.1 200", "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n"] {
        let receiver = Receiver::start(move |mut socket| async move {
            read_request(&mut socket).await;
            socket.write_all(part.as_bytes()).await.unwrap();
        })
        .await;
        let error = egress.send(post(&receiver.url("/secret")), LONG, 0).await.unwrap_err();
        assert_eq!(error, SendError::Broken, "after {part:?}");
        assert_eq!(error.to_string(), "the connection was closed before an answer came");
    }
    let (chatty, _) = Receiver::answering("220 mail.internal ESMTP ready\r\n\r\n").await;
    assert_eq!(egress.send(post(&chatty.url("/")), LONG, 0).await.unwrap_err(), SendError::NotHttp);
}

#[tokio::test]
async fn a_body_that_stalls_or_breaks_off_takes_nothing_from_the_head() {
    let head = "HTTP/1.1 500 No\r\ncontent-length: 100\r\n\r\npart";
    let stalls = Receiver::start(move |mut socket| async move {
        read_request(&mut socket).await;
        socket.write_all(head.as_bytes()).await.unwrap();
        read_request(&mut socket).await;
    })
    .await;
    let breaks = Receiver::start(move |mut socket| async move {
        read_request(&mut socket).await;
        socket.write_all(head.as_bytes()).await.unwrap();
    })
    .await;
    let egress = loopback_egress(Vec::new());
    for (receiver, total, end) in [(&stalls, SHORT * 2, BodyEnd::Late), (&breaks, LONG, BodyEnd::Broken)] {
        let response = loop {
            match egress.send(post(&receiver.url("/")), total, 1024).await {
                // A slow machine may not have come so far.
                Err(SendError::Timeout { .. }) if end == BodyEnd::Late => {}
                sent => break sent.unwrap(),
            }
        };
        assert_eq!((response.status().as_u16(), response.body().as_ref()), (500, b"part".as_slice()));
        assert_eq!(response.extensions().get(), Some(&end));
    }
}

#[tokio::test]
async fn a_gigabyte_is_cut_where_the_caller_said() {
    const CHUNK: usize = 64 * 1024;
    const GIGABYTE: usize = 1 << 30;
    for head in [format!("HTTP/1.1 200 OK\r\ncontent-length: {GIGABYTE}\r\n\r\n"), "HTTP/1.1 200 OK\r\n\r\n".to_owned()]
    {
        let written = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&written);
        let mut receiver = Receiver::start(move |mut socket| {
            let (counter, head) = (Arc::clone(&counter), head.clone());
            async move {
                read_request(&mut socket).await;
                socket.write_all(head.as_bytes()).await.unwrap();
                let chunk = vec![b'x'; CHUNK];
                while counter.load(Ordering::SeqCst) < GIGABYTE && socket.write_all(&chunk).await.is_ok() {
                    counter.fetch_add(CHUNK, Ordering::SeqCst);
                }
            }
        })
        .await;
        let egress = loopback_egress(Vec::new());
        let response = egress.send(post(&receiver.url("/")), LONG, 100_000).await.unwrap();
        assert_eq!(response.body().len(), 100_000);
        assert_eq!(response.extensions().get(), Some(&BodyEnd::Cut));
        receiver.wait_for_closed(1).await;
        assert!(written.load(Ordering::SeqCst) < GIGABYTE / 4, "the connection was given up, not drained");
    }
}

#[tokio::test]
async fn a_head_without_end_is_given_up() {
    let mut receiver = Receiver::start(|mut socket| async move {
        read_request(&mut socket).await;
        let _ = socket.write_all(b"HTTP/1.1 200 OK\r\n").await;
        let line = format!("x-filler: {}\r\n", "x".repeat(8_000));
        while socket.write_all(line.as_bytes()).await.is_ok() {}
    })
    .await;
    let error = loopback_egress(Vec::new()).send(post(&receiver.url("/")), LONG, 0).await.unwrap_err();
    assert_eq!(error, SendError::NotHttp);
    receiver.wait_for_closed(1).await;
}

#[tokio::test]
async fn a_port_without_a_listener_refuses_the_connection() {
    // Bound and never listening, so that no other program gets the port.
    let unheard = TcpSocket::new_v4().unwrap();
    unheard.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = unheard.local_addr().unwrap();
    let egress = loopback_egress(Vec::new());
    let error = egress.send(post(&format!("http://{address}/secret?token=1")), LONG, 0).await.unwrap_err();
    assert_eq!(error.to_string(), "no connection: the connection was refused");
    assert!(matches!(error, SendError::Connect(_)), "{error}");

    let tunnel = Request::connect(format!("http://{address}/")).body(Bytes::new()).unwrap();
    assert_eq!(egress.send(tunnel, LONG, 0).await.unwrap_err(), SendError::Method(Method::CONNECT));
}

#[tokio::test]
async fn a_receiver_that_takes_no_connection_is_given_up_long_before_the_whole_time() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    // The listener does not accept: once its queue is full the system answers no more connections.
    let mut waiting = Vec::new();
    while let Ok(Ok(knock)) = tokio::time::timeout(SHORT, TcpStream::connect(address)).await {
        waiting.push(knock);
        assert!(waiting.len() < 100, "the queue never fills");
    }
    let options = Options { allowlist: loopback(), connect_timeout: SHORT, ..Options::default() };
    let error = Egress::new(options).unwrap().send(post(&format!("http://{address}/")), LONG, 0).await.unwrap_err();
    assert_eq!(error, SendError::Timeout { phase: TimeoutPhase::Connect });
}
