//! Turns away a connection beyond the cap, with an answer rather than a closed door. It costs one small write and
//! never reads a request.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;

/// Connections being told at the same time; further ones are just closed.
pub(super) const AT_ONCE: usize = 64;

/// For the client to take the answer. Closing at once would often destroy it on its way.
const FAREWELL: Duration = Duration::from_secs(1);

/// Says that the server is full, and closes.
pub(super) async fn turn_away(mut stream: TcpStream, connections: usize, _farewell: OwnedSemaphorePermit) {
    let body = format!(
        "{{\"error\":{{\"code\":503,\"status\":\"UNAVAILABLE\",\"message\":\"{connections} connections are open, as many \
         as limits.connections allows, try again later\"}}}}"
    );
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let farewell = async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await?;
        let mut ignored = [0; 4096];
        while stream.read(&mut ignored).await? > 0 {}
        Ok::<(), std::io::Error>(())
    };
    // A client that is gone, or does not listen, has had its chance.
    let _ = tokio::time::timeout(FAREWELL, farewell).await;
}
