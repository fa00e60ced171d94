//! A connection's socket, below TLS if there is TLS: notes written bytes in the activity, and closes lingeringly.

use std::io::{IoSlice, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::activity::Activity;
use super::lingering_close::LingeringClose;

pub(super) struct Socket {
    stream: TcpStream,
    activity: Arc<Activity>,
    /// Once our side is closed.
    linger: Option<LingeringClose>,
}

impl Socket {
    pub(super) fn new(stream: TcpStream, activity: Arc<Activity>) -> Self {
        Self { stream, activity, linger: None }
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        let this = self.get_mut();
        let took = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.activity.note_write(&took);
        took
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let this = self.get_mut();
        let took = Pin::new(&mut this.stream).poll_write_vectored(context, slices);
        this.activity.note_write(&took);
        took
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let this = self.get_mut();
        let linger = match &mut this.linger {
            Some(linger) => linger,
            none => {
                ready!(Pin::new(&mut this.stream).poll_shutdown(context))?;
                let Some(bytes) = this.activity.lingering_bytes() else { return Poll::Ready(Ok(())) };
                none.insert(LingeringClose::new(bytes))
            }
        };
        linger.poll(&mut this.stream, context).map(Ok)
    }
}
