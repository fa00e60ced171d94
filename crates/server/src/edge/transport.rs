//! The transport of HTTP: the bare socket, or TLS on it.
//!
//! Bytes that are read are noted here and not at the socket, because bytes of the TLS handshake do not begin a request.

use std::future::poll_fn;
use std::io::{ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::server::TlsStream;

use super::activity::Activity;
use super::http2_preface::Http2Preface;
use super::parse_errors::ParseErrors;
use super::socket::Socket;

/// What a client may still be sending of a request that could not be read.
const LINGERING_BYTES: usize = 1 << 20;

pub(super) struct Transport {
    layer: Layer,
    activity: Arc<Activity>,
    /// What was read to tell HTTP/2 from HTTP/1, and is yet to be replayed.
    preface: Http2Preface,
    /// Replacements of the HTTP library's own errors.
    parse_errors: Option<Arc<ParseErrors>>,
    /// A replacement on its way: what is left of it, and how many bytes it stands for.
    replacement: Option<(Bytes, usize)>,
}

enum Layer {
    Plain(Socket),
    /// Boxed, because its state is large and most servers have none.
    Tls(Box<TlsStream<Socket>>),
}

impl Transport {
    pub(super) fn plain(socket: Socket, activity: Arc<Activity>) -> Self {
        Self::over(Layer::Plain(socket), activity)
    }

    pub(super) fn tls(stream: TlsStream<Socket>, activity: Arc<Activity>) -> Self {
        Self::over(Layer::Tls(Box::new(stream)), activity)
    }

    fn over(layer: Layer, activity: Arc<Activity>) -> Self {
        Self { layer, activity, preface: Http2Preface::default(), parse_errors: None, replacement: None }
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
        let Some(parse_errors) = self.parse_errors.as_ref().filter(|_| self.activity.is_between_requests()) else {
            return false;
        };
        let Some(answer) = parse_errors.instead_of(bytes) else { return false };
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
            let written = ready!(self.layer.poll_write(context, answer))?;
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
            while self.preface.may_be_http2() && !self.preface.is_complete() {
                let mut buffer = ReadBuf::new(self.preface.rest());
                ready!(self.layer.poll_read(context, &mut buffer))?;
                let read = buffer.filled().len();
                if read == 0 {
                    return Poll::Ready(Ok(false));
                }
                self.preface.length += read;
                self.activity.note_read();
            }
            Poll::Ready(Ok(self.preface.may_be_http2()))
        })
        .await
    }
}

impl AsyncRead for Transport {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        this.preface.replay(buffer);
        let replayed = buffer.filled().len() > before;
        // What came right behind the preface is taken along: a reader that gets a head in pieces makes more room for it.
        let read = this.layer.poll_read(context, buffer);
        if buffer.filled().len() > before {
            this.activity.note_read();
        }
        if replayed { Poll::Ready(Ok(())) } else { read }
    }
}

impl Layer {
    fn poll_read(&mut self, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        match self {
            Self::Plain(socket) => Pin::new(socket).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }

    fn poll_write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        match self {
            Self::Plain(socket) => Pin::new(socket).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }
}

impl AsyncWrite for Transport {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        let this = self.get_mut();
        if this.begins_replacement(bytes) {
            return this.poll_replacement(context);
        }
        this.layer.poll_write(context, bytes)
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
        match &mut this.layer {
            Layer::Plain(socket) => Pin::new(socket).poll_write_vectored(context, slices),
            Layer::Tls(stream) => Pin::new(stream).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.layer {
            Layer::Plain(socket) => socket.is_write_vectored(),
            Layer::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        match &mut self.get_mut().layer {
            Layer::Plain(socket) => Pin::new(socket).poll_flush(context),
            Layer::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        match &mut self.get_mut().layer {
            Layer::Plain(socket) => Pin::new(socket).poll_shutdown(context),
            Layer::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
