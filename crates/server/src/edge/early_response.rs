//! Responses that are written without the HTTP library: to a connection that is closed before its request is read
//! (load shedding, plain HTTP on a TLS port), and in place of the library's own bare errors.

use std::time::Duration;

use bytes::Bytes;
use switchboard_a2a::{Dialect, Error, ErrorKind};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;

use crate::Options;

/// For the client to take the answer. Closing at once would often destroy it on its way.
const LINGER: Duration = Duration::from_secs(1);

/// Connections that get a 503 at the same time; further ones are just closed.
pub(super) const CONCURRENT_REJECTIONS: usize = 64;

/// Every response of ours has it, and none of the library's.
const OURS: &[u8] = b"x-request-id:";

const NO_STORE: &str = "cache-control: no-store\r\n";

/// A whole response with a REST error as its body. `status` is the code and its phrase; each of the further `headers` has
/// the end of its line.
pub(super) fn render(status: &str, headers: &str, name: &str, message: &str) -> String {
    let code: u16 = status.get(..3).and_then(|code| code.parse().ok()).unwrap_or(400);
    let body = serde_json::json!({ "error": { "code": code, "status": name, "message": message } }).to_string();
    with_body(status, headers, &body)
}

fn with_body(status: &str, headers: &str, body: &str) -> String {
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

/// Parse errors: where the HTTP library cannot read a request it answers by itself, with a bare status. That answer is
/// replaced by one that says what was wrong and which setting it is.
pub(super) struct ParseErrors {
    malformed: Bytes,
    address_too_long: Bytes,
    headers_too_large: Bytes,
}

impl ParseErrors {
    pub(super) fn new(options: &Options) -> Self {
        let (headers, bytes) = (options.headers, options.request_headers);
        let too_large = format!(
            "the request has more than {headers} headers, the value of limits.headers, or its address and headers have \
             more than {bytes} bytes, the value of limits.requestHeaders"
        );
        let too_large = Error::with_message(ErrorKind::HeadersTooLarge, too_large)
            .detail("maxHeaders", headers)
            .detail("maxBytes", bytes)
            .encode_rest(Dialect::V1);
        let answer = |status, name, message: &str| render(status, NO_STORE, name, message).into();
        Self {
            malformed: answer("400 Bad Request", "INVALID_ARGUMENT", "the request is not HTTP/1.1 as RFC 9112 has it"),
            address_too_long: answer(
                "414 URI Too Long",
                "INVALID_ARGUMENT",
                "the address of the request has more than 65534 bytes",
            ),
            headers_too_large: with_body(
                "431 Request Header Fields Too Large",
                NO_STORE,
                &String::from_utf8_lossy(&too_large),
            )
            .into(),
        }
    }

    /// What to send instead of a response that the library has made; none if the bytes are no such response.
    pub(super) fn instead_of(&self, bytes: &[u8]) -> Option<Bytes> {
        let status = bytes.strip_prefix(b"HTTP/1.1 ")?.get(..3)?;
        let answer = match status {
            b"400" => &self.malformed,
            b"414" => &self.address_too_long,
            b"431" => &self.headers_too_large,
            _ => return None,
        };
        let is_ours = bytes.windows(OURS.len()).any(|window| window == OURS);
        let is_whole = bytes.ends_with(b"\r\n\r\n");
        (is_whole && !is_ours).then(|| answer.clone())
    }
}
