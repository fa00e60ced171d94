//! What a connection is doing, so that slow senders and forgotten connections can be told from busy ones.
//!
//! One timer per connection looks at this now and then. That is cheaper than a timer per request, and unlike one it
//! also sees a client that never finishes its first bytes, and leaves an idle keep-alive connection alone.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// What a connection is doing. Written by the connection's own tasks, so no ordering is needed between the fields.
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
}

/// A request under way; dropped with its response.
pub(crate) struct InFlight(Arc<Activity>);

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
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Looks at a connection once per tick and says when it has waited long enough.
pub(crate) struct Watch {
    activity: Arc<Activity>,
    /// What was seen at the last tick.
    requests: usize,
    /// For how long nothing but waiting was seen.
    waited: Duration,
    was_partial: bool,
}

/// What to do about a connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is in order.
    Fine,
    /// The client takes too long to send its headers.
    TooSlow,
    /// Nothing has been asked for a long time.
    Idle,
}

impl Watch {
    pub(crate) fn new(activity: Arc<Activity>) -> Self {
        Self { activity, requests: 0, waited: Duration::ZERO, was_partial: false }
    }

    /// Judges what happened in the last `tick`, which is the header timeout.
    pub(crate) fn judge(&mut self, tick: Duration, idle_timeout: Duration) -> Verdict {
        let requests = self.activity.requests.load(Ordering::Relaxed);
        let busy = self.activity.in_flight.load(Ordering::Relaxed) > 0 || requests != self.requests;
        self.requests = requests;
        if busy {
            self.waited = Duration::ZERO;
            self.was_partial = false;
            return Verdict::Fine;
        }
        self.waited += tick;
        let multiplexed = self.activity.multiplexed.load(Ordering::Relaxed);
        let partial = self.activity.partial.load(Ordering::Relaxed) && !multiplexed;
        // A first request is owed since the connection was opened, a later one since its first byte.
        let too_slow = requests == 0 || (partial && self.was_partial);
        self.was_partial = partial;
        if too_slow {
            return Verdict::TooSlow;
        }
        if self.waited >= idle_timeout { Verdict::Idle } else { Verdict::Fine }
    }
}

/// A socket that notes when bytes come.
pub(crate) struct Watched {
    stream: TcpStream,
    activity: Arc<Activity>,
}

impl Watched {
    pub(crate) fn new(stream: TcpStream, activity: Arc<Activity>) -> Self {
        Self { stream, activity }
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            this.activity.partial.store(true, Ordering::Relaxed);
        }
        read
    }
}

impl AsyncWrite for Watched {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_secs(10);
    const IDLE: Duration = Duration::from_secs(30);

    #[test]
    fn a_connection_that_asks_nothing_is_too_slow_and_an_idle_one_is_left_for_a_while() {
        let activity = Arc::new(Activity::default());
        let mut silent = Watch::new(Arc::clone(&activity));
        assert_eq!(silent.judge(TICK, IDLE), Verdict::TooSlow);

        let mut watch = Watch::new(Arc::clone(&activity));
        let request = activity.begin(false);
        assert_eq!(watch.judge(TICK, IDLE), Verdict::Fine);
        for _ in 0..100 {
            assert_eq!(watch.judge(TICK, IDLE), Verdict::Fine, "a long answer is no idle connection");
        }
        drop(request);
        assert_eq!(watch.judge(TICK, IDLE), Verdict::Fine);
        assert_eq!(watch.judge(TICK, IDLE), Verdict::Fine);
        assert_eq!(watch.judge(TICK, IDLE), Verdict::Idle);
    }

    #[test]
    fn a_head_that_trickles_in_after_a_first_request_is_too_slow_on_the_second_look() {
        let activity = Arc::new(Activity::default());
        let mut watch = Watch::new(Arc::clone(&activity));
        drop(activity.begin(false));
        assert_eq!(watch.judge(TICK, IDLE), Verdict::Fine);
        activity.partial.store(true, Ordering::Relaxed);
        assert_eq!(watch.judge(TICK, IDLE), Verdict::Fine, "it may have begun a moment ago");
        assert_eq!(watch.judge(TICK, IDLE), Verdict::TooSlow);
    }

    #[test]
    fn bytes_between_http2_requests_are_ordinary() {
        let activity = Arc::new(Activity::default());
        let mut watch = Watch::new(Arc::clone(&activity));
        drop(activity.begin(true));
        activity.partial.store(true, Ordering::Relaxed);
        let verdicts = [(); 4].map(|()| watch.judge(TICK, IDLE));
        assert_eq!(verdicts, [Verdict::Fine, Verdict::Fine, Verdict::Fine, Verdict::Idle]);
    }
}
