//! A TCP connection with limits: a receive budget, a write timeout, and a connection slot that it holds.
//!
//! A call that is dropped leaves its connection to be closed in the background, where a server that reads nothing could
//! delay the graceful close for ever. That is why the write timeout is here and not with the call.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Sleep, sleep};

use crate::receive_budget::ReceiveBudget;

/// A connection to an address that the policy allowed.
pub(crate) struct Socket {
    tcp: TcpStream,
    budget: ReceiveBudget,
    /// How long the server may accept no bytes.
    write_timeout: Duration,
    /// Runs while the server accepts no bytes.
    write_timer: Option<Pin<Box<Sleep>>>,
    /// The connection slot, released when the connection is closed.
    _permit: OwnedSemaphorePermit,
}

impl Socket {
    pub(crate) fn new(tcp: TcpStream, permit: OwnedSemaphorePermit, write_timeout: Duration) -> Self {
        Self { tcp, budget: ReceiveBudget::new(), write_timeout, write_timer: None, _permit: permit }
    }

    pub(crate) fn budget(&self) -> &ReceiveBudget {
        &self.budget
    }

    /// The outcome of a write, or the timeout of a stalled one.
    fn with_write_timeout<T>(
        &mut self,
        context: &mut Context<'_>,
        outcome: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.write_timer = None;
            return outcome;
        }
        let write_timeout = self.write_timeout;
        let write_timer = self.write_timer.get_or_insert_with(|| Box::pin(sleep(write_timeout)));
        ready!(write_timer.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.tcp).poll_read(context, buffer))?;
        let allowed = self.budget.take(buffer.filled().len() - before);
        Poll::Ready(if allowed { Ok(()) } else { Err(io::Error::other("the other side sent too much")) })
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.tcp).poll_write(context, bytes);
        self.with_write_timeout(context, outcome)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.tcp).poll_write_vectored(context, slices);
        self.with_write_timeout(context, outcome)
    }
}
