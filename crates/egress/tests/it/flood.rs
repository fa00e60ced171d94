//! Receivers that send without end before they answer: a processor must not be theirs for as long as a call may take.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::CertificateParams;
use switchboard_egress::{BodyEnd, Egress, SendError};
use tokio::io::{AsyncWrite, AsyncWriteExt};

use crate::encryption::{Authority, believing};
use crate::receiver::{LONG, Receiver, loopback_egress, post, read_request};

/// More than the buffers of a connection can hold, far less than what is sent in the time that a call has.
const BOUND: usize = 32 << 20;

/// Writes the same without end, and counts it.
async fn flood(socket: &mut (impl AsyncWrite + Unpin), bytes: &[u8], counter: &AtomicUsize) {
    let piece = bytes.repeat(512);
    while socket.write_all(&piece).await.is_ok() {
        counter.fetch_add(piece.len(), Ordering::SeqCst);
    }
}

async fn is_cut(egress: &Egress, mut receiver: Receiver, scheme: &str, written: &AtomicUsize) {
    let url = format!("{scheme}://localhost:{}/", receiver.address.port());
    assert_eq!(egress.send(post(&url), LONG, 0).await.unwrap_err(), SendError::NotHttp);
    receiver.wait_for_closed(1).await;
    let written = written.load(Ordering::SeqCst);
    assert!(written < BOUND, "{written} bytes were taken");
}

#[tokio::test]
async fn informational_answers_without_end_are_cut() {
    for line in ["HTTP/1.1 103 A\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 102 A\r\nx-filler: x\r\n\r\n"] {
        let written = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&written);
        let receiver = Receiver::start(move |mut socket| {
            let counter = Arc::clone(&counter);
            async move {
                read_request(&mut socket).await;
                flood(&mut socket, line.as_bytes(), &counter).await;
            }
        })
        .await;
        is_cut(&loopback_egress(Vec::new()), receiver, "http", &written).await;
    }
}

#[tokio::test]
async fn encryption_hides_no_flood() {
    // An empty settings frame and a ping, as HTTP/2 has them.
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let ping = [0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    let authority = Authority::new();
    let egress = believing(&authority);
    let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    for (protocol, first, again) in [
        (b"http/1.1".as_slice(), &b""[..], &b"HTTP/1.1 103 A\r\n\r\n"[..]),
        (b"h2".as_slice(), &settings[..], &ping[..]),
    ] {
        let written = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&written);
        let acceptor = authority.acceptor(&params, &[protocol]);
        let (first, again) = (first.to_vec(), again.to_vec());
        let receiver = Receiver::start(move |socket| {
            let (counter, acceptor) = (Arc::clone(&counter), acceptor.clone());
            let (first, again) = (first.clone(), again.clone());
            async move {
                let mut tls = acceptor.accept(socket).await.unwrap();
                if first.is_empty() {
                    read_request(&mut tls).await;
                }
                let _ = tls.write_all(&first).await;
                flood(&mut tls, &again, &counter).await;
            }
        })
        .await;
        is_cut(&egress, receiver, "https", &written).await;
    }
}

#[tokio::test]
async fn some_informational_answers_are_fine_and_every_call_has_its_own_count() {
    let receiver = Receiver::start(|mut socket| async move {
        while read_request(&mut socket).await.is_some() {
            let answer = "HTTP/1.1 103 A\r\n\r\n".repeat(2_000) + "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
            if socket.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    })
    .await;
    let egress = loopback_egress(Vec::new());
    for _ in 0..20 {
        let response = egress.send(post(&receiver.url("/")), LONG, 2).await.unwrap();
        assert_eq!((response.status().as_u16(), response.body().as_ref()), (200, b"ok".as_slice()));
        assert_eq!(response.extensions().get(), Some(&BodyEnd::Complete));
    }
    assert_eq!(receiver.connections(), 1, "all of it came on one connection");
}

#[tokio::test]
async fn a_body_in_tiny_pieces_is_read_to_its_end() {
    const LENGTH: usize = 200_000;
    let receiver = Receiver::start(|mut socket| async move {
        read_request(&mut socket).await;
        let answer = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_owned() + &"1\r\nx\r\n".repeat(LENGTH);
        socket.write_all((answer + "0\r\n\r\n").as_bytes()).await.unwrap();
    })
    .await;
    let response = loopback_egress(Vec::new()).send(post(&receiver.url("/")), LONG, LENGTH).await.unwrap();
    assert_eq!((response.body().len(), response.extensions().get()), (LENGTH, Some(&BodyEnd::Complete)));
}
