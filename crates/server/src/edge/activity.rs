//! What a connection is doing, so that slow peers and forgotten connections can be told from busy ones.
//!
//! The connection's own tasks note it here; one timer per connection checks it now and then (`slow_client`). That is cheaper
//! than a timer per request, and unlike one it also sees a client that never finishes its first bytes or never takes
//! its answer, and leaves an idle keep-alive connection alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;

/// What a connection is doing. Each field is read for itself, so no ordering is needed between them.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    /// Requests whose response is not yet handed over.
    in_flight: AtomicUsize,
    /// Requests so far.
    requests: AtomicUsize,
    /// Whether bytes came that belong to no request yet: a head that is not complete.
    partial: AtomicBool,
    /// Whether it speaks HTTP/2, where bytes between requests are ordinary.
    multiplexed: AtomicBool,
    /// Pieces of response bodies that are ready and that the peer has not made room for.
    unsent: AtomicUsize,
    /// Changes whenever some of that goes out. What HTTP/2 says about itself does not count: a peer that takes no
    /// answers may well go on asking whether we are alive.
    progress: AtomicUsize,
    /// Whether the socket took no more bytes when it was last given some.
    blocked: AtomicBool,
    /// Changes whenever the socket takes bytes.
    written: AtomicUsize,
    /// Bytes to take and throw away at the end, because the client was refused in the middle of sending them.
    linger: AtomicUsize,
}

/// What a look at a connection sees.
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

/// A request under way; dropped when its response is handed over.
pub(crate) struct InFlight(Arc<Activity>);

/// A piece of a response that is ready; dropped when it has gone out.
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

    /// The client is refused while it is still sending, so the connection ends, and in a way that lets it read why.
    pub(super) fn linger(&self, bytes: usize) {
        self.linger.store(bytes, Ordering::Relaxed);
    }

    /// Whether the connection ends like that. HTTP/2 ends the one request and not the connection.
    pub(super) fn is_lingering(&self) -> bool {
        self.linger.load(Ordering::Relaxed) > 0 && !self.multiplexed.load(Ordering::Relaxed)
    }

    /// The bytes to take and throw away then.
    pub(super) fn lingering_bytes(&self) -> usize {
        self.linger.load(Ordering::Relaxed)
    }

    /// Whether neither a request is under way nor anything left to send of a response.
    pub(super) fn is_between_requests(&self) -> bool {
        self.in_flight.load(Ordering::Relaxed) == 0 && self.unsent.load(Ordering::Relaxed) == 0
    }

    /// How it stands now.
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

    /// Bytes came.
    pub(super) fn note_read(&self) {
        self.partial.store(true, Ordering::Relaxed);
    }

    /// The socket was given bytes.
    pub(super) fn note_write(&self, took: &Poll<std::io::Result<usize>>) {
        self.blocked.store(took.is_pending(), Ordering::Relaxed);
        if matches!(took, Poll::Ready(Ok(1..))) {
            self.written.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl InFlight {
    /// A piece of the response is ready.
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
    /// Some of it goes out.
    pub(crate) fn note_progress(&self) {
        self.0.progress.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for UnsentPiece {
    fn drop(&mut self) {
        self.0.unsent.fetch_sub(1, Ordering::Relaxed);
    }
}
