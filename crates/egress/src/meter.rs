//! How much a receiver may send. Time alone does not bound it: informational answers, pings and session tickets without
//! end would keep a processor busy for as long as a call may take.
//!
//! The count is on the bare connection, so that nothing on top of it is left out, and starts anew with every answer and
//! with every end of a call. Several calls on one connection share it. While one of them is a stream, nothing on the
//! connection is counted: who may send a stream without end gains nothing by sending something else beside it.

use std::sync::Arc;

use parking_lot::Mutex;

/// The longest head of an answer, in bytes. Nobody who answers a webhook needs more.
pub(crate) const LONGEST_HEAD: usize = 64 * 1024;

/// What may come before the head of an answer is complete: a head, and what is read along with it of the body.
const BEFORE_ANSWER: usize = 2 * LONGEST_HEAD;

/// What a body that comes in tiny pieces weighs on the connection, per byte.
const WRAPPING: usize = 8;

/// Counts what comes in on one connection. Clones share the count.
#[derive(Clone)]
pub(crate) struct Meter {
    count: Arc<Mutex<Count>>,
}

struct Count {
    left: usize,
    /// What the bodies that are being read may take.
    bodies: usize,
    /// How many bodies without a bound are being read.
    streams: usize,
    is_over: bool,
}

impl Meter {
    pub(crate) fn new() -> Self {
        Self { count: Arc::new(Mutex::new(Count { left: BEFORE_ANSWER, bodies: 0, streams: 0, is_over: false })) }
    }

    /// Counts bytes that came in; says whether they were allowed. Once they were not, nothing is any more.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        let mut count = self.count.lock();
        if count.streams == 0 {
            count.is_over |= bytes > count.left;
            count.left = count.left.saturating_sub(bytes);
        }
        !count.is_over
    }

    /// Whether more came in than was allowed.
    pub(crate) fn is_over(&self) -> bool {
        self.count.lock().is_over
    }

    /// The head of an answer is there: makes room for its body, however long, for as long as the result is kept.
    pub(crate) fn answered(&self) -> BodyRoom {
        self.count.lock().streams += 1;
        BodyRoom { meter: self.clone(), bytes: None }
    }
}

impl Count {
    fn make_room(&mut self, bytes: usize) {
        self.bodies = self.bodies.saturating_add(bytes);
        self.start_anew();
    }

    fn give_back(&mut self, bytes: Option<usize>) {
        match bytes {
            Some(bytes) => self.bodies = self.bodies.saturating_sub(bytes),
            None => self.streams = self.streams.saturating_sub(1),
        }
        self.start_anew();
    }

    fn start_anew(&mut self) {
        self.left = self.bodies.saturating_add(BEFORE_ANSWER);
    }
}

/// Room for a body; dropping it ends the call.
pub(crate) struct BodyRoom {
    meter: Meter,
    /// `None` for a stream.
    bytes: Option<usize>,
}

impl BodyRoom {
    /// From here on only so much of the body is wanted.
    pub(crate) fn bound(&mut self, maximum_body: usize) {
        let bytes = maximum_body.saturating_mul(WRAPPING).saturating_add(BEFORE_ANSWER);
        let mut count = self.meter.count.lock();
        count.give_back(self.bytes.replace(bytes));
        count.make_room(bytes);
    }
}

impl Drop for BodyRoom {
    fn drop(&mut self) {
        self.meter.count.lock().give_back(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounded(meter: &Meter, maximum_body: usize) -> BodyRoom {
        let mut room = meter.answered();
        room.bound(maximum_body);
        room
    }

    #[test]
    fn a_stream_has_no_bound_and_leaves_none_lifted_behind() {
        let meter = Meter::new();
        let (first, second) = (meter.answered(), meter.answered());
        let body = bounded(&meter, 0);
        drop(first);
        assert!(meter.take(usize::MAX) && meter.take(usize::MAX), "one of them is still read");
        drop(second);
        assert!(meter.take(2 * BEFORE_ANSWER), "the body has its room");
        drop(body);
        assert!(meter.take(BEFORE_ANSWER) && !meter.take(1));
        assert!(!meter.answered().meter.take(0), "what is over stays over");
    }

    #[test]
    fn starts_anew_with_every_answer_but_never_after_it_was_over() {
        let meter = Meter::new();
        assert!(meter.take(BEFORE_ANSWER));
        let body = bounded(&meter, 10);
        assert!(meter.take(10 * WRAPPING + 2 * BEFORE_ANSWER));
        drop(body);
        let (first, second) = (bounded(&meter, 0), bounded(&meter, 0));
        drop(first);
        assert!(meter.take(2 * BEFORE_ANSWER), "the other body still has its room");
        assert!(!meter.take(1) && meter.is_over());
        drop(second);
        assert!(!meter.take(0));
    }
}
