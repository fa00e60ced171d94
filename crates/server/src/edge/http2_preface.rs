//! The HTTP/2 connection preface, which tells HTTP/2 from HTTP/1.
//!
//! The bytes are kept and replayed to the protocol, together with what follows them on the socket.
//!
//! The ready-made detection hands the bytes on in pieces, for which every connection keeps a buffer of twice the size;
//! this halves the memory of an open stream.

use tokio::io::ReadBuf;

/// What every HTTP/2 connection begins with, and no HTTP/1 request does.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

#[derive(Default)]
pub(super) struct Http2Preface {
    bytes: [u8; PREFACE.len()],
    pub(super) length: usize,
    replayed: usize,
}

impl Http2Preface {
    /// Whether the bytes so far are the beginning of the preface.
    pub(super) fn may_be_http2(&self) -> bool {
        PREFACE.starts_with(&self.bytes[..self.length])
    }

    pub(super) fn is_complete(&self) -> bool {
        self.length == PREFACE.len()
    }

    pub(super) fn rest(&mut self) -> &mut [u8] {
        &mut self.bytes[self.length..]
    }

    /// Gives the kept bytes to a reader, as far as it has room.
    pub(super) fn replay(&mut self, buffer: &mut ReadBuf<'_>) {
        let end = self.length.min(self.replayed + buffer.remaining());
        buffer.put_slice(&self.bytes[self.replayed..end]);
        self.replayed = end;
    }
}
