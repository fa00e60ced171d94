//! The activity of a connection, which tells slow clients and idle keep-alive connections from busy ones.
//!
//! The connection's own tasks note it here; one timer per connection checks it now and then (`slow_client`). That is
//! cheaper than a timer per request, and unlike one it also sees a client that never finishes its first request head or
//! never reads its response.

use std::sync::Arc;
use std::task::Poll;

use parking_lot::Mutex;

/// What a connection does. The lock is hardly ever contended: over HTTP/1 all that note anything here are one task.
#[derive(Debug, Default)]
pub(crate) struct Activity(Mutex<ActivitySnapshot>);

/// The activity at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ActivitySnapshot {
    /// Requests whose response is not yet sent.
    pub(super) in_flight: usize,
    pub(super) requests: usize,
    /// Whether bytes of an incomplete request head were read.
    pub(super) partial: bool,
    /// Whether it speaks HTTP/2, where bytes between requests are ordinary.
    pub(super) multiplexed: bool,
    /// Pieces of response bodies that are ready and not yet sent.
    pub(super) unsent: usize,
    /// Changes whenever some of these bytes are sent. HTTP/2 control frames do not count: a client that reads no
    /// responses may well go on sending pings.
    pub(super) progress: usize,
    /// Whether the socket took no more bytes when it was last given some.
    pub(super) blocked: bool,
    /// Changes whenever the socket takes bytes.
    pub(super) written: usize,
    /// Bytes to read and discard in the lingering close, because the client was refused while sending them.
    linger: usize,
}

/// A request in flight; dropped when its response is sent.
pub(crate) struct InFlight(Arc<Activity>);

/// A piece of a response that is ready; dropped when it is sent.
pub(crate) struct UnsentPiece(Arc<Activity>);

impl Activity {
    /// A request's head is complete.
    pub(super) fn begin(self: &Arc<Self>, multiplexed: bool) -> InFlight {
        let mut now = self.0.lock();
        now.in_flight += 1;
        now.requests = now.requests.wrapping_add(1);
        now.partial = false;
        now.multiplexed |= multiplexed;
        InFlight(Arc::clone(self))
    }

    /// A request's body is complete; what was read for it is no partial head.
    pub(super) fn body_is_read(&self) {
        self.0.lock().partial = false;
    }

    /// Asks for a lingering close: the client is refused while it is still sending, and should be able to read why.
    pub(super) fn linger(&self, bytes: usize) {
        self.0.lock().linger = bytes;
    }

    /// The bytes to discard if the connection ends with a lingering close. HTTP/2 ends the one request and not the
    /// connection.
    pub(super) fn lingering_bytes(&self) -> Option<usize> {
        let now = self.0.lock();
        (now.linger > 0 && !now.multiplexed).then_some(now.linger)
    }

    /// Whether no request is in flight and nothing of a response left to send.
    pub(super) fn is_between_requests(&self) -> bool {
        let now = self.0.lock();
        now.in_flight == 0 && now.unsent == 0
    }

    pub(super) fn snapshot(&self) -> ActivitySnapshot {
        *self.0.lock()
    }

    pub(super) fn note_read(&self) {
        self.0.lock().partial = true;
    }

    pub(super) fn note_write(&self, took: &Poll<std::io::Result<usize>>) {
        let mut now = self.0.lock();
        now.blocked = took.is_pending();
        if matches!(took, Poll::Ready(Ok(1..))) {
            now.written = now.written.wrapping_add(1);
        }
    }
}

impl InFlight {
    pub(crate) fn begin_piece(&self) -> UnsentPiece {
        self.0.0.lock().unsent += 1;
        UnsentPiece(Arc::clone(&self.0))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.0.lock().in_flight -= 1;
    }
}

impl UnsentPiece {
    pub(crate) fn note_progress(&self) {
        let mut now = self.0.0.lock();
        now.progress = now.progress.wrapping_add(1);
    }
}

impl Drop for UnsentPiece {
    fn drop(&mut self) {
        self.0.0.lock().unsent -= 1;
    }
}
