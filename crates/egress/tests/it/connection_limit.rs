//! So many connections and no more, whatever the peer does to keep them.

use std::future::pending;

use bytes::Bytes;
use http::Request;
use rcgen::CertificateParams;
use switchboard_egress::{Egress, Options, SendError, TimeoutPhase};

use crate::encryption::Authority;
use crate::receiver::{LONG, Receiver, SHORT, loopback, post, read_request};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

fn small(connections: usize) -> Options {
    let allowlist = loopback();
    Options { allowlist, connections, idle_timeout: SHORT, connect_timeout: LONG, ..Options::default() }
}

#[tokio::test]
async fn no_more_are_open_than_may_be() {
    let egress = Egress::new(small(2)).unwrap();
    let mut hanging =
        Receiver::start(|mut socket| async move { while read_request(&mut socket).await.is_some() {} }).await;
    let (another, _) = Receiver::answering(OK).await;
    let url = hanging.url("/");
    let calls = [(); 2].map(|()| {
        let (egress, request) = (egress.clone(), post(&url));
        tokio::spawn(async move { egress.send(request, LONG, 0).await })
    });
    hanging.wait_for_opened(2).await;
    let error = egress.send(post(&another.url("/")), SHORT, 0).await.unwrap_err();
    assert_eq!(error, SendError::Timeout { phase: TimeoutPhase::Connect });
    // New rules bring no new room.
    egress.reload(loopback(), &[]);
    let error = egress.send(post(&another.url("/")), SHORT, 0).await.unwrap_err();
    assert_eq!((error, another.connections()), (SendError::Timeout { phase: TimeoutPhase::Connect }, 0));

    for call in calls {
        call.abort();
    }
    assert_eq!(egress.send(post(&another.url("/")), LONG, 0).await.unwrap().status(), 200);
    hanging.wait_for_closed(2).await;
}

#[tokio::test]
async fn waiting_for_room_is_connecting() {
    let egress = Egress::new(Options { connect_timeout: SHORT, idle_timeout: LONG, ..small(1) }).unwrap();
    let (first, _) = Receiver::answering(OK).await;
    let (second, _) = Receiver::answering(OK).await;
    assert_eq!(egress.send(post(&first.url("/")), LONG, 0).await.unwrap().status(), 200);
    let error = egress.send(post(&second.url("/")), LONG, 0).await.unwrap_err();
    assert_eq!(error, SendError::ConnectionLimit);
    assert_eq!(egress.send(post(&first.url("/")), LONG, 0).await.unwrap().status(), 200, "it needs no other one");
}

#[tokio::test]
async fn idle_ones_make_room() {
    let egress = Egress::new(small(2)).unwrap();
    for _ in 0..6 {
        let (mut receiver, _) = Receiver::answering(OK).await;
        assert_eq!(egress.send(post(&receiver.url("/")), LONG, 0).await.unwrap().status(), 200);
        tokio::spawn(async move { receiver.wait_for_closed(1).await });
    }
}

#[tokio::test]
async fn who_takes_nothing_in_keeps_no_connection() {
    let authority = Authority::new();
    let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    let egress = Egress::new(Options { extra_roots: vec![authority.root.clone()], ..small(1) }).unwrap();
    let (well, _) = Receiver::answering(OK).await;
    for protocol in [None, Some(b"http/1.1".as_slice()), Some(b"h2")] {
        let acceptor = protocol.map(|protocol| authority.acceptor(&params, &[protocol]));
        let deaf = Receiver::start(move |socket| {
            let acceptor = acceptor.clone();
            async move {
                match acceptor {
                    Some(acceptor) => {
                        let _held = acceptor.accept(socket).await;
                        pending().await
                    }
                    None => {
                        let _held = socket;
                        pending().await
                    }
                }
            }
        })
        .await;
        let scheme = if protocol.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://localhost:{}/", deaf.address.port());
        let request = Request::post(url).body(Bytes::from(vec![b'x'; 32 << 20])).unwrap();
        // Whether the call or our patience ends first is all the same.
        let error = loop {
            // A slow machine may not even be connected in that time.
            match egress.send(request.clone(), SHORT, 0).await.unwrap_err() {
                SendError::Timeout { phase: TimeoutPhase::Connect | TimeoutPhase::Tls } => {}
                error => break error,
            }
        };
        assert!(matches!(error, SendError::Timeout { phase: TimeoutPhase::Response } | SendError::Broken), "{error}");
        let answer = egress.send(post(&well.url("/")), LONG, 0).await;
        assert_eq!(answer.unwrap().status(), 200, "the only connection is free again after {protocol:?}");
    }
}
