//! Slow client (slowloris) protection: header timeout, write timeout and idle timeout of a connection, checked by one
//! timer. Times are counted in ticks, so a timeout is kept to within one tick.

use std::sync::Arc;
use std::time::Duration;

use super::activity::{Activity, ActivitySnapshot};
use crate::Options;

/// The shortest and the longest tick: a timer can neither be set to zero nor beyond the end of time.
const SHORTEST_TICK: Duration = Duration::from_millis(1);
const LONGEST_TICK: Duration = Duration::from_secs(60 * 60);

/// Checks a connection once per tick.
pub(super) struct SlowClientGuard {
    activity: Arc<Activity>,
    tick: Duration,
    header_timeout: Duration,
    idle_timeout: Duration,
    write_timeout: Duration,
    /// The activity at the last tick.
    last: ActivitySnapshot,
    /// For how long there was no request.
    waited: Duration,
    /// For how long a request head has been incomplete.
    partial_for: Option<Duration>,
    /// For how long the client has read nothing of what is ready for it.
    stalled_for: Duration,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum ClientVerdict {
    Fine,
    /// The client takes too long to send its headers.
    HeaderTimeout,
    /// The client does not read its responses.
    WriteTimeout,
    /// There was no request for the idle timeout.
    Idle,
    /// It was asked to close long ago and has not.
    IgnoresClose,
}

impl SlowClientGuard {
    pub(super) fn new(activity: Arc<Activity>, options: &Options) -> Self {
        let tick = options.header_timeout.min(options.write_timeout).clamp(SHORTEST_TICK, LONGEST_TICK);
        Self {
            activity,
            tick,
            header_timeout: options.header_timeout,
            idle_timeout: options.idle_timeout,
            write_timeout: options.write_timeout,
            last: ActivitySnapshot::default(),
            waited: Duration::ZERO,
            partial_for: None,
            stalled_for: Duration::ZERO,
        }
    }

    pub(super) fn tick(&self) -> Duration {
        self.tick
    }

    /// Whether the connection holds nothing but an incomplete request head.
    pub(super) fn has_only_partial_head(&self) -> bool {
        let seen = self.activity.snapshot();
        seen.partial && !seen.multiplexed && seen.in_flight == 0 && seen.unsent == 0 && !seen.blocked
    }

    pub(super) fn check(&mut self) -> ClientVerdict {
        let seen = self.activity.snapshot();
        let last = std::mem::replace(&mut self.last, seen);
        // The piece that waits now may be younger than the last tick, so its time counts from here.
        let stalled = (seen.unsent > 0 && last.unsent > 0 && seen.progress == last.progress)
            || (seen.blocked && last.blocked && seen.written == last.written);
        self.stalled_for = if stalled { self.stalled_for + self.tick } else { Duration::ZERO };
        if stalled && self.stalled_for >= self.write_timeout {
            return ClientVerdict::WriteTimeout;
        }
        if seen.in_flight > 0 || seen.unsent > 0 || seen.blocked || seen.requests != last.requests {
            self.waited = Duration::ZERO;
            self.partial_for = None;
            return ClientVerdict::Fine;
        }
        self.waited += self.tick;
        let partial = seen.partial && !seen.multiplexed;
        self.partial_for = partial.then(|| self.partial_for.map_or(Duration::ZERO, |so_far| so_far + self.tick));
        // A first request is due since the connection was opened, a later one since its first byte.
        let owed_for = if seen.requests == 0 { Some(self.waited) } else { self.partial_for };
        if owed_for.is_some_and(|owed_for| owed_for >= self.header_timeout.min(LONGEST_TICK)) {
            return ClientVerdict::HeaderTimeout;
        }
        if self.waited >= self.idle_timeout.saturating_add(self.write_timeout) {
            return ClientVerdict::IgnoresClose;
        }
        if self.waited >= self.idle_timeout { ClientVerdict::Idle } else { ClientVerdict::Fine }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use super::ClientVerdict::{Fine, HeaderTimeout, Idle, IgnoresClose, WriteTimeout};
    use super::*;

    /// A tick every ten seconds; a connection is idle after thirty, and responses may wait twenty.
    fn watch(activity: &Arc<Activity>) -> SlowClientGuard {
        let seconds = Duration::from_secs;
        let timeouts = (seconds(10), seconds(30), seconds(20));
        let (header_timeout, idle_timeout, write_timeout) = timeouts;
        let options = Options { header_timeout, idle_timeout, write_timeout, ..Options::default() };
        SlowClientGuard::new(Arc::clone(activity), &options)
    }

    #[test]
    fn a_first_request_is_due_at_once_and_a_later_one_since_its_first_byte() {
        let activity = Arc::new(Activity::default());
        assert_eq!(watch(&activity).check(), HeaderTimeout);
        let mut guard = watch(&activity);
        let request = activity.begin(false);
        assert!((0..100).all(|_| guard.check() == Fine), "a long answer is no idle connection");
        drop(request);
        assert_eq!([(); 5].map(|()| guard.check()), [Fine, Fine, Idle, Idle, IgnoresClose]);
        drop(activity.begin(false));
        assert_eq!(guard.check(), Fine);
        activity.note_read();
        assert_eq!([(); 2].map(|()| guard.check()), [Fine, HeaderTimeout], "it may have begun a moment ago");
        drop(activity.begin(true));
        activity.note_read();
        assert_eq!([(); 4].map(|()| guard.check()), [Fine, Fine, Fine, Idle], "ordinary between HTTP/2 requests");
    }

    #[test]
    fn an_answer_may_wait_as_long_as_some_of_it_goes_out() {
        let activity = Arc::new(Activity::default());
        let mut guard = watch(&activity);
        let unsent = activity.begin(true).begin_piece();
        for _ in 0..10 {
            assert_eq!([(); 2].map(|()| guard.check()), [Fine, Fine]);
            unsent.note_progress();
        }
        let verdicts = [(); 3].map(|()| {
            // Bytes of the protocol itself are no progress.
            activity.note_write(&Poll::Ready(Ok(17)));
            guard.check()
        });
        assert_eq!(verdicts, [Fine, Fine, WriteTimeout]);
        drop(unsent);
        assert_eq!(guard.check(), Fine, "nothing waits");
        activity.note_write(&Poll::Pending);
        assert_eq!([(); 3].map(|()| guard.check()), [Fine, Fine, WriteTimeout], "a socket that takes nothing");
    }
}
