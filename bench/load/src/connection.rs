//! One keep-alive HTTP/1.1 connection: writes a request, reads the reply by its framing, and nothing more.

use bytes::{Buf, BytesMut};
use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::event_stream::EventStream;
use crate::failure::Failure;
use crate::target::Target;

pub(crate) struct Connection {
    stream: TcpStream,
    input: BytesMut,
}

pub(crate) struct Head {
    status: u16,
    framing: Framing,
    is_event_stream: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Framing {
    Length(usize),
    Chunked,
    Unknown,
}

impl Connection {
    pub(crate) async fn open(target: &Target) -> Result<Self, Failure> {
        let stream = TcpStream::connect(target.address).await?;
        stream.set_nodelay(true)?;
        // Small, because `subscriptions` opens thousands; a busy one grows to what its replies need.
        Ok(Self { stream, input: BytesMut::with_capacity(4 * 1024) })
    }

    /// Sends a request and reads its whole reply, which must have status 200.
    pub(crate) async fn call(&mut self, request: &[u8]) -> Result<BytesMut, Failure> {
        self.stream.write_all(request).await?;
        let head = self.read_head().await?;
        let body = self.read_body(&head).await?;
        if head.status != 200 {
            return Err(status(&head, &body));
        }
        Ok(body)
    }

    /// Sends a request whose reply is a stream of events.
    pub(crate) async fn call_streaming(&mut self, request: &[u8]) -> Result<EventStream<'_>, Failure> {
        self.stream.write_all(request).await?;
        let head = self.read_head().await?;
        if head.status == 200 && head.is_event_stream && head.framing == Framing::Chunked {
            return Ok(EventStream::new(self));
        }
        // JSON-RPC answers an early error as a plain reply: its body says what went wrong.
        let body = self.read_body(&head).await?;
        Err(status(&head, &body))
    }

    async fn read_head(&mut self) -> Result<Head, Failure> {
        loop {
            if let Some(end) = memmem::find(&self.input, b"\r\n\r\n") {
                let head = parse_head(&self.input[..end])?;
                self.input.advance(end + 4);
                return Ok(head);
            }
            self.fill().await?;
        }
    }

    async fn read_body(&mut self, head: &Head) -> Result<BytesMut, Failure> {
        match head.framing {
            Framing::Length(length) => {
                while self.input.len() < length {
                    self.fill().await?;
                }
                Ok(self.input.split_to(length))
            }
            Framing::Chunked => {
                let mut body = BytesMut::new();
                while self.read_chunk(&mut body).await? {}
                Ok(body)
            }
            Framing::Unknown => Err(Failure::Http("neither content-length nor chunked")),
        }
    }

    /// Appends the next chunk to `decoded`; false after the last one.
    pub(crate) async fn read_chunk(&mut self, decoded: &mut BytesMut) -> Result<bool, Failure> {
        let (line, length) = loop {
            if let Some(end) = memchr::memchr(b'\n', &self.input) {
                let text = std::str::from_utf8(&self.input[..end]).map_err(|_| Failure::Http("chunk length"))?;
                let digits = text.split(';').next().unwrap_or("").trim();
                break (end + 1, usize::from_str_radix(digits, 16).map_err(|_| Failure::Http("chunk length"))?);
            }
            self.fill().await?;
        };
        let whole = line + length + 2;
        while self.input.len() < whole {
            self.fill().await?;
        }
        decoded.extend_from_slice(&self.input[line..line + length]);
        self.input.advance(whole);
        Ok(length > 0)
    }

    async fn fill(&mut self) -> Result<(), Failure> {
        self.input.reserve(2 * 1024);
        if self.stream.read_buf(&mut self.input).await? == 0 {
            return Err(Failure::Closed);
        }
        Ok(())
    }
}

fn status(head: &Head, body: &[u8]) -> Failure {
    let excerpt = &body[..body.len().min(200)];
    Failure::Status { status: head.status, body: String::from_utf8_lossy(excerpt).into_owned() }
}

fn parse_head(bytes: &[u8]) -> Result<Head, Failure> {
    let text = std::str::from_utf8(bytes).map_err(|_| Failure::Http("head is not text"))?;
    let mut lines = text.split("\r\n");
    let status_line = lines.next().unwrap_or("");
    let status = status_line.split(' ').nth(1).and_then(|code| code.parse().ok());
    let mut head =
        Head { status: status.ok_or(Failure::Http("status line"))?, framing: Framing::Unknown, is_event_stream: false };
    for line in lines {
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        let value = value.trim();
        if name.eq_ignore_ascii_case("content-length") {
            head.framing = Framing::Length(value.parse().map_err(|_| Failure::Http("content-length"))?);
        } else if name.eq_ignore_ascii_case("transfer-encoding") && value.eq_ignore_ascii_case("chunked") {
            head.framing = Framing::Chunked;
        } else if name.eq_ignore_ascii_case("content-type") {
            head.is_event_stream = value.starts_with("text/event-stream");
        }
    }
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    /// A server that answers the first request with these pieces, each flushed by itself, and says no more.
    async fn connect_to(pieces: &'static [&'static str]) -> Connection {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let target = Target { address: listener.local_addr().unwrap(), path: "/".to_owned() };
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            let mut request = [0u8; 1];
            stream.read_exact(&mut request).await.unwrap();
            for piece in pieces {
                stream.write_all(piece.as_bytes()).await.unwrap();
                tokio::task::yield_now().await;
            }
            stream.shutdown().await.unwrap();
            // Closing with unread requests would reset the connection and take the reply back.
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).await.unwrap();
        });
        Connection::open(&target).await.unwrap()
    }

    #[tokio::test]
    async fn a_reply_in_pieces_is_read_whole_and_the_next_one_after_it() {
        let pieces = &[
            "HTTP/1.1 200 OK\r\nContent-Le",
            "ngth: 5\r\n\r\nhe",
            "lloHTTP/1.1 503 Busy\r\ncontent-length: 4\r\n\r\nlate",
        ];
        let mut connection = connect_to(pieces).await;
        assert_eq!(&connection.call(b"x").await.unwrap()[..], b"hello");
        assert!(matches!(connection.call(b"x").await, Err(Failure::Status { status: 503, body }) if body == "late"));
        assert!(matches!(connection.call(b"x").await, Err(Failure::Closed)));
    }

    #[tokio::test]
    async fn events_cross_chunk_borders_and_comments_are_no_events() {
        let pieces = &[
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
            "8\r\nid: 1\nda\r\n",
            "A\r\nta: one\n\n:\r\n8\r\n ping\n\nd\r",
            "\n7\r\nata:two\r\n2\r\n\n\n\r\n0\r\n\r\n",
        ];
        let mut connection = connect_to(pieces).await;
        let mut events = connection.call_streaming(b"x").await.unwrap();
        assert_eq!(events.next().await.unwrap(), Some(&b"one"[..]));
        assert_eq!(events.next().await.unwrap(), Some(&b"two"[..]));
        assert_eq!(events.next().await.unwrap(), None);
    }

    #[tokio::test]
    async fn an_error_instead_of_a_stream_says_what_it_was() {
        let mut connection = connect_to(&["HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{\"id\": 1}"]).await;
        let failure = connection.call_streaming(b"x").await.err().unwrap();
        assert_eq!(failure.to_string(), "HTTP status 200: {\"id\": 1}");
    }
}
