//! Responses that are written without the HTTP library: to a connection that is closed before its request is read
//! (load shedding, plain HTTP on a TLS port), and in place of the library's own bare errors.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;

/// For the client to take the answer. Closing at once would often destroy it on its way.
const LINGER: Duration = Duration::from_secs(1);

/// Connections that get a 503 at the same time; further ones are just closed.
pub(super) const CONCURRENT_REJECTIONS: usize = 64;

/// A whole response with a REST error as its body. `status` is the code and its phrase; each of the further `headers` has
/// the end of its line.
pub(super) fn render(status: &str, headers: &str, name: &str, message: &str) -> String {
    let code: u16 = status.get(..3).and_then(|code| code.parse().ok()).unwrap_or(400);
    let body = serde_json::json!({ "error": { "code": code, "status": name, "message": message } }).to_string();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{headers}connection: close\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Sends a response and closes gracefully: our side first, then what the client still sends is thrown away.
pub(super) async fn send_and_close(mut stream: TcpStream, response: String) {
    let sending = async {
        stream.write_all(response.as_bytes()).await?;
        stream.shutdown().await?;
        let mut ignored = [0; 4096];
        while stream.read(&mut ignored).await? > 0 {}
        Ok::<(), std::io::Error>(())
    };
    // A client that is gone, or reads nothing, is closed all the same.
    let _ = tokio::time::timeout(LINGER, sending).await;
}

/// Load shedding: a connection beyond the limits is closed with a 503 response, which costs one small write.
pub(super) async fn shed(stream: TcpStream, message: String, _slot: OwnedSemaphorePermit) {
    let response = render("503 Service Unavailable", "retry-after: 1\r\n", "UNAVAILABLE", &message);
    send_and_close(stream, response).await;
}
