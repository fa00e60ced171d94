//! A stream that has told the end of its task leaves its connection to the next call.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use switchboard_client::CallContext;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

use super::script::{COMPLETED, card, event, task};
use crate::wire::read_request;
use crate::world::{client, say};

const STREAMS: usize = 8;

/// Answers any number of requests on a connection: the card, and streams that end with their task.
async fn serve(mut socket: TcpStream) -> std::io::Result<()> {
    loop {
        let (head, _) = read_request(&mut socket).await?;
        let answer = if head.starts_with("GET") {
            let card = card(false).to_string();
            format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{card}", card.len())
        } else {
            let event = event(json!({ "task": task(COMPLETED, "done") }));
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
            format!("{head}{:x}\r\n{event}\r\n0\r\n\r\n", event.len())
        };
        socket.write_all(answer.as_bytes()).await?;
    }
}

#[tokio::test]
async fn a_stream_that_has_ended_leaves_its_connection_to_the_next() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let accepted = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&accepted);
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move { serve(socket).await.is_ok() });
        }
    });
    let client = client(&url, |_| {});
    for _ in 0..STREAMS {
        let mut stream = client.stream(&CallContext::default(), say("hello")).await.unwrap();
        while stream.next().await.unwrap().is_some() {}
    }
    // The card's is one of them, and one may be opened while another is given back.
    let connections = accepted.load(Ordering::SeqCst);
    assert!(connections < STREAMS, "{connections} connections for {STREAMS} streams");
}
