//! A webhook receiver on loopback, open for as long as one check needs it.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// The largest request that is read.
const MAX_REQUEST_BYTES: usize = 1 << 20;
/// How many requests are kept.
const MAX_KEPT: usize = 8;
/// How long a request may take to arrive.
const READ_TIMEOUT: Duration = Duration::from_secs(2);
const OK_RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// It reads requests at any time: some agents reply to no client before their webhooks have.
pub(crate) struct Receiver {
    address: SocketAddr,
    bodies: mpsc::Receiver<Value>,
    work: JoinHandle<()>,
}

impl Receiver {
    /// One that responds, or one that accepts connections and never responds.
    pub(crate) async fn start(answers: bool) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (sender, bodies) = mpsc::channel(MAX_KEPT);
        let work = tokio::spawn(async move {
            let mut unanswered = Vec::new();
            while let Ok((socket, _)) = listener.accept().await {
                if !answers {
                    unanswered.push(socket);
                    continue;
                }
                let received = timeout(READ_TIMEOUT, received(socket)).await;
                if let Ok(Ok(Some(body))) = received {
                    // More than these are not read.
                    let _ = sender.try_send(body);
                }
            }
        });
        Ok(Self { address, bodies, work })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/a2a-check", self.address)
    }

    /// The body of the next request that has one.
    pub(crate) async fn next(&mut self, patience: Duration) -> Option<Value> {
        timeout(patience, self.bodies.recv()).await.ok().flatten()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.work.abort();
    }
}

async fn received(mut socket: TcpStream) -> io::Result<Option<Value>> {
    let mut bytes = Vec::new();
    loop {
        if let Some(body) = body(&bytes) {
            socket.write_all(OK_RESPONSE).await?;
            socket.shutdown().await?;
            return Ok(serde_json::from_slice(&body).ok());
        }
        if bytes.len() > MAX_REQUEST_BYTES || socket.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    }
}

/// The body, once it is complete.
fn body(bytes: &[u8]) -> Option<Vec<u8>> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let value = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let rest = &bytes[end..];
    match value("content-length:").and_then(|length| length.parse::<usize>().ok()) {
        Some(length) => rest.get(..length).map(<[u8]>::to_vec),
        None if value("transfer-encoding:") == Some("chunked") => unchunked(rest),
        None => Some(Vec::new()),
    }
}

/// The joined chunks, once the last one has arrived.
fn unchunked(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    loop {
        let line = rest.windows(2).position(|two| two == b"\r\n")?;
        let size = std::str::from_utf8(&rest[..line]).ok()?.split(';').next()?;
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        if size == 0 {
            return Some(whole);
        }
        let begin = line + 2;
        whole.extend_from_slice(rest.get(begin..begin.checked_add(size)?)?);
        rest = rest.get(begin + size + 2..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_taken_when_all_of_it_is_there() {
        assert_eq!(body(b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{"), None);
        assert_eq!(body(b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}").as_deref(), Some(&b"{}"[..]));
        let chunked = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1;x\r\n}\r\n";
        assert_eq!(body(chunked), None);
        assert_eq!(body(&[&chunked[..], b"0\r\n\r\n"].concat()).as_deref(), Some(&b"{}"[..]));
        assert_eq!(body(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n{"), None);
    }
}
