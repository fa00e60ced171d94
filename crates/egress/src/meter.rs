//! How much a receiver may send. Time alone does not bound it: informational answers, pings and session tickets without
//! end would keep a processor busy for as long as a call may take.
//!
//! The count is on the bare connection, so that nothing on top of it is left out, and starts anew with every answer and
//! with every end of a call. Several calls on one connection share it.

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
    is_over: bool,
}

impl Meter {
    pub(crate) fn new() -> Self {
        Self { count: Arc::new(Mutex::new(Count { left: BEFORE_ANSWER, bodies: 0, is_over: false })) }
    }

    /// Counts bytes that came in; says whether they were allowed. Once they were not, nothing is any more.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        let mut count = self.count.lock();
        count.is_over |= bytes > count.left;
        count.left = count.left.saturating_sub(bytes);
        !count.is_over
    }

    /// Whether more came in than was allowed.
    pub(crate) fn is_over(&self) -> bool {
        self.count.lock().is_over
    }

    /// The head of an answer is there: makes room for so much of its body for as long as the result is kept.
    pub(crate) fn answered(&self, maximum_body: usize) -> BodyRoom {
        let bytes = maximum_body.saturating_mul(WRAPPING).saturating_add(BEFORE_ANSWER);
        let mut count = self.count.lock();
        count.bodies = count.bodies.saturating_add(bytes);
        count.start_anew();
        BodyRoom { meter: self.clone(), bytes }
    }
}

impl Count {
    fn start_anew(&mut self) {
        self.left = self.bodies.saturating_add(BEFORE_ANSWER);
    }
}

/// Room for a body; dropping it ends the call.
pub(crate) struct BodyRoom {
    meter: Meter,
    bytes: usize,
}

impl Drop for BodyRoom {
    fn drop(&mut self) {
        let mut count = self.meter.count.lock();
        count.bodies = count.bodies.saturating_sub(self.bytes);
        count.start_anew();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_anew_with_every_answer_but_never_after_it_was_over() {
        let meter = Meter::new();
        assert!(meter.take(BEFORE_ANSWER));
        let body = meter.answered(10);
        assert!(meter.take(10 * WRAPPING + 2 * BEFORE_ANSWER));
        drop(body);
        let (first, second) = (meter.answered(0), meter.answered(0));
        drop(first);
        assert!(meter.take(2 * BEFORE_ANSWER), "the other body still has its room");
        assert!(!meter.take(1) && meter.is_over());
        drop(second);
        assert!(!meter.take(0));
    }
}
