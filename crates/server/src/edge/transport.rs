//! The transport of HTTP: the bare socket, or TLS on it.
//!
//! Bytes that are read are noted here and not at the socket, because bytes of the TLS handshake do not begin a request.
//!
//! The first bytes tell HTTP/2 from HTTP/1. They are kept and replayed to the protocol, together with what follows them
//! on the socket. The ready-made detection hands the bytes on in pieces, for which every connection keeps a buffer of
//! twice the size; this halves the memory of an open stream.

use std::future::poll_fn;
use std::io::{ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;

use super::activity::Activity;
use super::early_response::ParseErrors;
use super::socket::Socket;

/// What a client may still be sending of a request that could not be read.
const LINGERING_BYTES: usize = 1 << 20;

/// What every HTTP/2 connection begins with, and no HTTP/1 request does.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(super) struct Transport {
    layer: Layer,
    activity: Arc<Activity>,
    /// The first bytes, how many there are, and how many of them were replayed.
    preface: [u8; PREFACE.len()],
    preface_length: usize,
    replayed: usize,
    /// Replacements of the HTTP library's own errors.
    parse_errors: Option<Arc<ParseErrors>>,
    /// A replacement on its way: what is left of it, and how many bytes it stands for.
    replacement: Option<(Bytes, usize)>,
}

/// The bare socket, or TLS on it: boxed, because its state is large and most servers have none.
pub(super) type Layer = Either<Socket, Box<TlsStream<Socket>>>;

impl Transport {
    pub(super) fn new(layer: Layer, activity: &Arc<Activity>) -> Self {
        Self {
            layer,
            activity: Arc::clone(activity),
            preface: [0; PREFACE.len()],
            preface_length: 0,
            replayed: 0,
            parse_errors: None,
            replacement: None,
        }
    }

    /// From now on the HTTP library's own errors are replaced.
    pub(super) fn replace_parse_errors(&mut self, parse_errors: &Arc<ParseErrors>) {
        self.parse_errors = Some(Arc::clone(parse_errors));
    }

    /// Whether these bytes are to be replaced. The library answers by itself only where there is no request, so that no
    /// part of a response is ever taken for such an answer.
    fn begins_replacement(&mut self, bytes: &[u8]) -> bool {
        if self.replacement.is_some() {
            return true;
        }
        let Some(answer) = self.parse_errors.as_ref().and_then(|errors| errors.instead_of(bytes)) else { return false };
        if !self.activity.is_between_requests() {
            return false;
        }
        // What the client is still sending must not destroy the response on its way.
        self.activity.linger(LINGERING_BYTES);
        self.replacement = Some((answer, bytes.len()));
        true
    }

    /// Writes the replacement; when it is out, the bytes it stands for have been taken.
    fn poll_replacement(&mut self, context: &mut Context<'_>) -> Poll<Result<usize>> {
        while let Some((answer, stands_for)) = &mut self.replacement {
            if answer.is_empty() {
                let taken = *stands_for;
                self.replacement = None;
                return Poll::Ready(Ok(taken));
            }
            let written = ready!(Pin::new(&mut self.layer).poll_write(context, answer))?;
            if written == 0 {
                return Poll::Ready(Err(ErrorKind::WriteZero.into()));
            }
            answer.advance(written);
        }
        Poll::Ready(Ok(0))
    }

    /// Whether the client begins as HTTP/2 does. Reads until that is clear; nothing of it is lost.
    pub(super) async fn speaks_http2(&mut self) -> Result<bool> {
        poll_fn(|context| {
            while self.may_be_http2() && self.preface_length < PREFACE.len() {
                let mut buffer = ReadBuf::new(&mut self.preface[self.preface_length..]);
                ready!(Pin::new(&mut self.layer).poll_read(context, &mut buffer))?;
                let read = buffer.filled().len();
                if read == 0 {
                    return Poll::Ready(Ok(false));
                }
                self.preface_length += read;
                self.activity.note_read();
            }
            Poll::Ready(Ok(self.may_be_http2()))
        })
        .await
    }

    /// Whether the bytes so far are the beginning of the preface.
    fn may_be_http2(&self) -> bool {
        PREFACE.starts_with(&self.preface[..self.preface_length])
    }
}

impl AsyncRead for Transport {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let end = this.preface_length.min(this.replayed + buffer.remaining());
        buffer.put_slice(&this.preface[this.replayed..end]);
        this.replayed = end;
        let replayed = buffer.filled().len() > before;
        // What came right behind the preface is taken along: a reader that gets a head in pieces makes more room for it.
        let read = Pin::new(&mut this.layer).poll_read(context, buffer);
        if buffer.filled().len() > before {
            this.activity.note_read();
        }
        if replayed { Poll::Ready(Ok(())) } else { read }
    }
}

impl AsyncWrite for Transport {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        let this = self.get_mut();
        if this.begins_replacement(bytes) {
            return this.poll_replacement(context);
        }
        Pin::new(&mut this.layer).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let this = self.get_mut();
        // An answer of the library has no body, so it is one slice.
        if let [slice] = slices
            && this.begins_replacement(slice)
        {
            return this.poll_replacement(context);
        }
        Pin::new(&mut this.layer).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.layer.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.get_mut().layer).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.get_mut().layer).poll_shutdown(context)
    }
}
