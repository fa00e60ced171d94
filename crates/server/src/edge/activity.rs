//! The activity of a connection, which tells slow clients and idle keep-alive connections from busy ones.
//!
//! The connection's own tasks note it here; one timer per connection checks it now and then (`slow_client`). That is
//! cheaper than a timer per request, and unlike one it also sees a client that never finishes its first request head or
//! never reads its response.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;

/// What a connection does. Each field is read for itself, so no ordering is needed between them.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    /// Requests whose response is not yet sent.
    in_flight: AtomicUsize,
    requests: AtomicUsize,
    /// Whether bytes of an incomplete request head were read.
    partial: AtomicBool,
    /// Whether it speaks HTTP/2, where bytes between requests are ordinary.
    multiplexed: AtomicBool,
    /// Pieces of response bodies that are ready and not yet sent.
    unsent: AtomicUsize,
    /// Changes whenever some of these bytes are sent. HTTP/2 control frames do not count: a client that reads no
    /// responses may well go on sending pings.
    progress: AtomicUsize,
    /// Whether the socket took no more bytes when it was last given some.
    blocked: AtomicBool,
    /// Changes whenever the socket takes bytes.
    written: AtomicUsize,
    /// Bytes to read and discard in the lingering close, because the client was refused while sending them.
    linger: AtomicUsize,
}

/// The activity at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ActivitySnapshot {
    pub(super) in_flight: usize,
    pub(super) requests: usize,
    pub(super) partial: bool,
    pub(super) multiplexed: bool,
    pub(super) unsent: usize,
    pub(super) progress: usize,
    pub(super) blocked: bool,
    pub(super) written: usize,
}

/// A request in flight; dropped when its response is sent.
pub(crate) struct InFlight(Arc<Activity>);

/// A piece of a response that is ready; dropped when it is sent.
pub(crate) struct UnsentPiece(Arc<Activity>);

impl Activity {
    /// A request's head is complete.
    pub(crate) fn begin(self: &Arc<Self>, multiplexed: bool) -> InFlight {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.partial.store(false, Ordering::Relaxed);
        if multiplexed {
            self.multiplexed.store(true, Ordering::Relaxed);
        }
        InFlight(Arc::clone(self))
    }

    /// A request's body is complete; what was read for it is no partial head.
    pub(crate) fn body_is_read(&self) {
        self.partial.store(false, Ordering::Relaxed);
    }

    /// Asks for a lingering close: the client is refused while it is still sending, and should be able to read why.
    pub(super) fn linger(&self, bytes: usize) {
        self.linger.store(bytes, Ordering::Relaxed);
    }

    /// Whether the connection ends with a lingering close. HTTP/2 ends the one request and not the connection.
    pub(super) fn is_lingering(&self) -> bool {
        self.linger.load(Ordering::Relaxed) > 0 && !self.multiplexed.load(Ordering::Relaxed)
    }

    /// The bytes to discard then.
    pub(super) fn lingering_bytes(&self) -> usize {
        self.linger.load(Ordering::Relaxed)
    }

    /// Whether no request is in flight and nothing of a response left to send.
    pub(super) fn is_between_requests(&self) -> bool {
        self.in_flight.load(Ordering::Relaxed) == 0 && self.unsent.load(Ordering::Relaxed) == 0
    }

    pub(super) fn snapshot(&self) -> ActivitySnapshot {
        ActivitySnapshot {
            in_flight: self.in_flight.load(Ordering::Relaxed),
            requests: self.requests.load(Ordering::Relaxed),
            partial: self.partial.load(Ordering::Relaxed),
            multiplexed: self.multiplexed.load(Ordering::Relaxed),
            unsent: self.unsent.load(Ordering::Relaxed),
            progress: self.progress.load(Ordering::Relaxed),
            blocked: self.blocked.load(Ordering::Relaxed),
            written: self.written.load(Ordering::Relaxed),
        }
    }

    pub(super) fn note_read(&self) {
        self.partial.store(true, Ordering::Relaxed);
    }

    pub(super) fn note_write(&self, took: &Poll<std::io::Result<usize>>) {
        self.blocked.store(took.is_pending(), Ordering::Relaxed);
        if matches!(took, Poll::Ready(Ok(1..))) {
            self.written.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl InFlight {
    pub(crate) fn begin_piece(&self) -> UnsentPiece {
        self.0.unsent.fetch_add(1, Ordering::Relaxed);
        UnsentPiece(Arc::clone(&self.0))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl UnsentPiece {
    pub(crate) fn note_progress(&self) {
        self.0.progress.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for UnsentPiece {
    fn drop(&mut self) {
        self.0.unsent.fetch_sub(1, Ordering::Relaxed);
    }
}
