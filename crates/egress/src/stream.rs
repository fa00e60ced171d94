//! A connection, plain or TLS, with the traits that the HTTP client needs.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tokio_rustls::client::TlsStream;

use crate::socket::Socket;
use crate::tls::is_certificate_rejection;

/// A connection to an address that the policy allowed.
pub(crate) enum Stream {
    Plain(TokioIo<Socket>),
    /// Boxed, because the state of a TLS connection is large.
    Encrypted(Box<TokioIo<TlsStream<Socket>>>, CertificateRejected),
}

trait ReadWrite: Read + Write + Unpin {}

impl<T: Read + Write + Unpin> ReadWrite for T {}

/// Whether the server has ended the connection over our client certificate. The HTTP/2 library keeps only the text of
/// an error, so it is recorded here. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct CertificateRejected(Arc<AtomicBool>);

impl CertificateRejected {
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn observe(&self, outcome: &Poll<io::Result<()>>) {
        if let Poll::Ready(Err(error)) = outcome
            && is_certificate_rejection(error)
        {
            self.0.store(true, Ordering::Release);
        }
    }
}

impl Stream {
    pub(crate) fn plain(socket: Socket) -> Self {
        Self::Plain(TokioIo::new(socket))
    }

    pub(crate) fn encrypted(tls: TlsStream<Socket>) -> Self {
        Self::Encrypted(Box::new(TokioIo::new(tls)), CertificateRejected::default())
    }

    fn io(&mut self) -> Pin<&mut dyn ReadWrite> {
        match self {
            Self::Plain(io) => Pin::new(io),
            Self::Encrypted(io, _) => Pin::new(&mut **io),
        }
    }
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        // The client puts it into the extensions of every response, where `Egress` finds the budget of the connection.
        let counted = |socket: &Socket| Connected::new().extra(socket.budget().clone());
        match self {
            Self::Plain(io) => counted(io.inner()),
            Self::Encrypted(io, certificate_rejected) => {
                let (socket, session) = io.inner().get_ref();
                let connected = counted(socket).extra(certificate_rejected.clone());
                if session.alpn_protocol() == Some(b"h2") { connected.negotiated_h2() } else { connected }
            }
        }
    }
}

impl Read for Stream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let stream = self.get_mut();
        let outcome = stream.io().poll_read(context, buffer);
        if let Self::Encrypted(_, certificate_rejected) = stream {
            certificate_rejected.observe(&outcome);
        }
        outcome
    }
}

impl Write for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().io().poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().io().poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().io().poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(io) => io.is_write_vectored(),
            Self::Encrypted(io, _) => io.is_write_vectored(),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().io().poll_write_vectored(context, slices)
    }
}
