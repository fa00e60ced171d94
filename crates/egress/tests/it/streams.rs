//! Bodies that come in pieces, over whatever way: as they come, for as long as they come, and until the client hangs up.

use std::time::Duration;

use bytes::Bytes;
use http::Version;
use switchboard_egress::{BodyEnd, BodyError, Egress, Options, ResponseBody, SendError, TimeoutPhase};
use tokio::io::AsyncWriteExt;

use crate::encryption::Authority;
use crate::receiver::{LONG, Receiver, SHORT, loopback, loopback_egress, post, read_request};
use crate::streamer::{Streamer, WAYS, Way};

/// Much shorter than the silence in these tests.
const IDLE: Duration = Duration::from_millis(20);

/// A client that may have one connection and keeps it hardly any longer than it is used.
fn hasty(authority: &Authority) -> Egress {
    Egress::new(Options {
        allowlist: loopback(),
        extra_roots: vec![authority.root.clone()],
        connections: 1,
        connect_timeout: LONG,
        idle_timeout: IDLE,
        ..Options::default()
    })
    .unwrap()
}

async fn open(egress: &Egress, streamer: &Streamer, way: Way) -> ResponseBody {
    let response = egress.open(post(&streamer.url), LONG).await.unwrap();
    let version = if way == Way::Second { Version::HTTP_2 } else { Version::HTTP_11 };
    assert_eq!((response.status().as_u16(), response.version()), (200, version));
    assert!(response.extensions().is_empty());
    response.into_body()
}

fn piece(text: &'static str) -> Result<Option<Bytes>, BodyError> {
    Ok(Some(Bytes::from_static(text.as_bytes())))
}

#[tokio::test]
async fn every_piece_is_there_before_the_next_is_sent() {
    let authority = Authority::new();
    for way in WAYS {
        let mut streamer = Streamer::start(&authority, way).await;
        let mut body = open(&hasty(&authority), &streamer, way).await;
        for text in ["one", "two", "three"] {
            streamer.send("");
            streamer.send(text);
            assert_eq!(body.next(LONG).await, piece(text), "{way:?}");
        }
        streamer.end();
        assert_eq!(body.next(LONG).await, Ok(None), "{way:?}");
        assert_eq!(body.next(LONG).await, Ok(None), "{way:?}: it stays at its end");
    }
}

#[tokio::test]
async fn silence_is_late_for_who_waits_and_harms_nothing() {
    let authority = Authority::new();
    for way in WAYS {
        let mut streamer = Streamer::start(&authority, way).await;
        let egress = hasty(&authority);
        let mut body = open(&egress, &streamer, way).await;
        streamer.send("before");
        assert_eq!(body.next(LONG).await, piece("before"));
        let error = body.next(SHORT).await.unwrap_err();
        assert_eq!((error, error.to_string().as_str()), (BodyError::Late, "the answer fell silent for too long"));
        streamer.send("after");
        assert_eq!(body.next(LONG).await, piece("after"), "{way:?}: many times the idle time has passed");

        // Neither new rules nor the end of the whole client take it away.
        egress.reload(loopback(), &[]);
        drop(egress);
        assert_eq!(body.next(SHORT).await, Err(BodyError::Late));
        streamer.send("at last");
        streamer.end();
        assert_eq!(body.collect(100, LONG).await, (Bytes::from_static(b"at last"), BodyEnd::Complete), "{way:?}");
    }
}

#[tokio::test]
async fn a_torn_body_is_no_end() {
    let authority = Authority::new();
    for way in WAYS {
        let streamer = Streamer::start(&authority, way).await;
        let mut body = open(&hasty(&authority), &streamer, way).await;
        streamer.send("part");
        assert_eq!(body.next(LONG).await, piece("part"));
        streamer.tear();
        for _ in 0..2 {
            assert_eq!(body.next(LONG).await, Err(BodyError::Broken), "{way:?}: however often one asks");
        }
        assert_eq!(body.collect(100, LONG).await, (Bytes::new(), BodyEnd::Broken));
    }
    assert_eq!(BodyError::Broken.to_string(), "the connection was closed in the middle of the answer");
}

#[tokio::test]
async fn who_drops_a_body_hangs_up_and_makes_room() {
    let authority = Authority::new();
    let (another, _) = Receiver::answering("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n").await;
    for way in WAYS {
        let mut streamer = Streamer::start(&authority, way).await;
        let egress = hasty(&authority);
        let mut body = open(&egress, &streamer, way).await;
        streamer.send("part");
        assert_eq!(body.next(LONG).await, piece("part"));
        let error = egress.send(post(&another.url("/")), SHORT, 0).await.unwrap_err();
        assert_eq!(error, SendError::Timeout { phase: TimeoutPhase::Connect }, "{way:?}: the one connection is taken");
        drop(body);
        streamer.wait_for_hang_up().await;
        streamer.receiver.wait_for_closed(1).await;
        assert_eq!(egress.send(post(&another.url("/")), LONG, 0).await.unwrap().status(), 200, "{way:?}");
    }
}

#[tokio::test]
async fn a_stream_may_be_longer_than_anything_that_is_collected() {
    const PIECE: usize = 64 * 1024;
    const PIECES: usize = 128;
    let authority = Authority::new();
    for way in WAYS {
        let mut streamer = Streamer::start(&authority, way).await;
        let mut body = open(&hasty(&authority), &streamer, way).await;
        for _ in 0..PIECES {
            streamer.send(vec![b'x'; PIECE]);
        }
        streamer.end();
        let mut length = 0;
        while let Some(piece) = body.next(LONG).await.unwrap() {
            length += piece.len();
        }
        assert_eq!(length, PIECES * PIECE, "{way:?}");

        let streamer = Streamer::start(&authority, way).await;
        let body = open(&hasty(&authority), &streamer, way).await;
        streamer.send(vec![b'x'; PIECE]);
        let (bytes, end) = body.collect(100, LONG).await;
        assert_eq!((bytes.len(), end), (100, BodyEnd::Cut), "{way:?}");
        streamer.wait_for_hang_up().await;
    }
}

#[tokio::test]
async fn a_body_that_ends_well_leaves_its_connection_for_the_next() {
    let (receiver, _) = Receiver::answering("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
    let egress = loopback_egress(Vec::new());
    for _ in 0..3 {
        let mut body = egress.open(post(&receiver.url("/")), LONG).await.unwrap().into_body();
        assert_eq!((body.next(LONG).await, body.next(LONG).await), (piece("ok"), Ok(None)));
    }
    assert_eq!(receiver.connections(), 1);
}

#[tokio::test]
async fn before_the_head_the_time_is_bounded_and_a_short_body_is_broken() {
    let egress = loopback_egress(Vec::new());
    let hanging = Receiver::start(|mut socket| async move { while read_request(&mut socket).await.is_some() {} }).await;
    let error = egress.open(post(&hanging.url("/")), SHORT).await.unwrap_err();
    assert_eq!(error, SendError::Timeout { phase: TimeoutPhase::Response });

    let short = Receiver::start(|mut socket| async move {
        read_request(&mut socket).await;
        socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\npart").await.unwrap();
    })
    .await;
    let mut body = egress.open(post(&short.url("/")), LONG).await.unwrap().into_body();
    assert_eq!((body.next(LONG).await, body.next(LONG).await), (piece("part"), Err(BodyError::Broken)));
}
