//! Server-sent events out of a chunked body, as far as a load generator needs them: `data` lines and blank lines.

use bytes::{Buf, BytesMut};

use crate::connection::Connection;
use crate::failure::Failure;

pub(crate) struct EventStream<'a> {
    connection: &'a mut Connection,
    /// Decoded and not yet read.
    decoded: BytesMut,
    /// The data of the event being read.
    data: Vec<u8>,
    ended: bool,
}

impl<'a> EventStream<'a> {
    pub(crate) fn new(connection: &'a mut Connection) -> Self {
        Self { connection, decoded: BytesMut::new(), data: Vec::new(), ended: false }
    }

    /// The next event's data, or None when the server has ended the stream.
    pub(crate) async fn next(&mut self) -> Result<Option<&[u8]>, Failure> {
        self.data.clear();
        loop {
            while let Some(end) = memchr::memchr(b'\n', &self.decoded) {
                let line = self.decoded[..end].strip_suffix(b"\r").unwrap_or(&self.decoded[..end]);
                let blank = line.is_empty();
                if let Some(value) = line.strip_prefix(b"data:") {
                    self.data.extend_from_slice(value.strip_prefix(b" ").unwrap_or(value));
                }
                self.decoded.advance(end + 1);
                if blank && !self.data.is_empty() {
                    return Ok(Some(&self.data));
                }
            }
            if self.ended {
                return Ok(None);
            }
            self.ended = !self.connection.read_chunk(&mut self.decoded).await?;
        }
    }
}
