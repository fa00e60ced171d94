//! A last word to a client that is turned away before its request is read, rather than a closed connection. It costs one
//! small write.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// For the client to take the answer. Closing at once would often destroy it on its way.
const PATIENCE: Duration = Duration::from_secs(1);

/// Why, in the words of HTTP.
pub(super) struct EarlyResponse {
    /// Status code and phrase.
    pub(super) status: &'static str,
    /// Headers beyond those that every response has, each with the end of its line.
    pub(super) headers: &'static str,
    /// The whole body, JSON.
    pub(super) body: String,
}

/// Says it, and closes.
pub(super) async fn send(mut stream: TcpStream, response: EarlyResponse) {
    let EarlyResponse { status, headers, body } = response;
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{headers}connection: close\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let sending = async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await?;
        let mut ignored = [0; 4096];
        while stream.read(&mut ignored).await? > 0 {}
        Ok::<(), std::io::Error>(())
    };
    // A client that is gone, or does not listen, has had its chance.
    let _ = tokio::time::timeout(PATIENCE, sending).await;
}
