//! A client that knows no more HTTP than a test needs, so that the bytes on the wire are the test's own.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

/// A hang guard: a wait this long is a failure, not slowness, even with one core for a dozen programs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

pub(crate) struct Wire {
    stream: BufReader<Box<dyn Pipe>>,
}

/// A socket, or TLS on one.
pub(crate) trait Pipe: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Pipe for T {}

/// A response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Wire {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).await.unwrap())
    }

    /// A connection whose receiving side holds little, so that what is not read is soon felt by the sender.
    pub(crate) async fn connect_small(address: SocketAddr) -> Self {
        Self::over(small_socket(address).await)
    }

    pub(crate) fn over(pipe: impl Pipe + 'static) -> Self {
        Self { stream: BufReader::new(Box::new(pipe)) }
    }

    pub(crate) async fn send(&mut self, text: &str) {
        self.stream.get_mut().write_all(text.as_bytes()).await.unwrap();
    }

    /// Sends as much as the server takes; it may hang up in between.
    pub(crate) async fn try_send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.get_mut().write_all(bytes).await
    }

    /// The next response, whole.
    pub(crate) async fn reply(&mut self) -> Reply {
        let mut reply = self.head().await;
        if let Some(length) = reply.header("content-length") {
            let mut body = vec![0; length.parse().unwrap()];
            timeout(PATIENCE, self.stream.read_exact(&mut body)).await.unwrap().unwrap();
            reply.body = String::from_utf8(body).unwrap();
        } else if reply.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = self.chunk().await {
                reply.body.push_str(&chunk);
            }
        }
        reply
    }

    /// The next response, unless the server hangs up instead.
    pub(crate) async fn try_reply(&mut self) -> Option<Reply> {
        let read = timeout(PATIENCE, self.stream.fill_buf()).await.expect("neither an answer nor an end");
        if read.is_ok_and(|bytes| !bytes.is_empty()) { Some(self.reply().await) } else { None }
    }

    /// The next response, if its first byte has come.
    pub(crate) async fn reply_at_hand(&mut self) -> Option<Reply> {
        let begun = timeout(Duration::ZERO, self.stream.fill_buf()).await.is_ok_and(|read| read.is_ok());
        if begun { Some(self.reply().await) } else { None }
    }

    /// Status and headers of the next response.
    pub(crate) async fn head(&mut self) -> Reply {
        let status = self.line().await;
        let status = status.split(' ').nth(1).unwrap_or_else(|| panic!("no status line: {status:?}"));
        let status = status.parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = self.line().await;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        Reply { status, headers, body: String::new() }
    }

    /// The next piece of a chunked body; none at its end.
    pub(crate) async fn chunk(&mut self) -> Option<String> {
        let length = usize::from_str_radix(&self.line().await, 16).unwrap();
        let mut chunk = vec![0; length + 2];
        timeout(PATIENCE, self.stream.read_exact(&mut chunk)).await.unwrap().unwrap();
        chunk.truncate(length);
        (length > 0).then(|| String::from_utf8(chunk).unwrap())
    }

    /// Everything until the server hangs up.
    pub(crate) async fn rest(&mut self) -> String {
        let mut rest = Vec::new();
        // A reset is a way to hang up too.
        let _ = timeout(PATIENCE, self.stream.read_to_end(&mut rest)).await.expect("the server did not hang up");
        String::from_utf8(rest).unwrap()
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        timeout(PATIENCE, self.stream.read_line(&mut line)).await.unwrap().unwrap();
        line.trim_end().to_owned()
    }
}

/// A socket whose receiving side holds little.
pub(crate) async fn small_socket(address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(64 << 10).unwrap();
    socket.connect(address).await.unwrap()
}
