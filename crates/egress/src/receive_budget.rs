//! How much a receiver may send. Time alone does not bound it: informational answers, pings and session tickets without
//! end would keep a processor busy for as long as a call may take.
//!
//! The count is on the bare connection, so that nothing on top of it is left out, and starts anew with every answer and
//! with every end of a call. Several calls on one connection share it. While one of them is a stream, nothing on the
//! connection is counted: who may send a stream without end gains nothing by sending something else beside it.

use std::sync::Arc;

use parking_lot::Mutex;

/// The longest head of an answer, in bytes. Nobody who answers a webhook needs more.
pub(crate) const MAX_RESPONSE_HEAD: usize = 64 * 1024;

/// What may come before the head of an answer is complete: a head, and what is read along with it of the body.
const HEAD_BUDGET: usize = 2 * MAX_RESPONSE_HEAD;

/// What a body that comes in tiny pieces weighs on the connection, per byte.
const FRAMING_OVERHEAD: usize = 8;

/// Counts what comes in on one connection. Clones share the count.
#[derive(Clone)]
pub(crate) struct ReceiveBudget {
    count: Arc<Mutex<Count>>,
}

struct Count {
    left: usize,
    /// What the bodies that are being read may take.
    bodies: usize,
    /// How many bodies without a bound are being read.
    streams: usize,
    is_exceeded: bool,
}

impl ReceiveBudget {
    pub(crate) fn new() -> Self {
        Self { count: Arc::new(Mutex::new(Count { left: HEAD_BUDGET, bodies: 0, streams: 0, is_exceeded: false })) }
    }

    /// Counts bytes that came in; says whether they were allowed. Once they were not, nothing is any more.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        let mut count = self.count.lock();
        if count.streams == 0 {
            count.is_exceeded |= bytes > count.left;
            count.left = count.left.saturating_sub(bytes);
        }
        !count.is_exceeded
    }

    /// Whether more came in than was allowed.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.count.lock().is_exceeded
    }

    /// The head of an answer is there: makes room for its body, however long, for as long as the result is kept.
    pub(crate) fn start_body(&self) -> BodyBudget {
        self.count.lock().streams += 1;
        BodyBudget { budget: self.clone(), bytes: None }
    }
}

impl Count {
    fn reserve_body(&mut self, bytes: usize) {
        self.bodies = self.bodies.saturating_add(bytes);
        self.reset();
    }

    fn release_body(&mut self, bytes: Option<usize>) {
        match bytes {
            Some(bytes) => self.bodies = self.bodies.saturating_sub(bytes),
            None => self.streams = self.streams.saturating_sub(1),
        }
        self.reset();
    }

    fn reset(&mut self) {
        self.left = self.bodies.saturating_add(HEAD_BUDGET);
    }
}

/// Room for a body; dropping it ends the call.
pub(crate) struct BodyBudget {
    budget: ReceiveBudget,
    /// `None` for a stream.
    bytes: Option<usize>,
}

impl BodyBudget {
    /// From here on only so much of the body is wanted.
    pub(crate) fn bound(&mut self, maximum_body: usize) {
        let bytes = maximum_body.saturating_mul(FRAMING_OVERHEAD).saturating_add(HEAD_BUDGET);
        let mut count = self.budget.count.lock();
        count.release_body(self.bytes.replace(bytes));
        count.reserve_body(bytes);
    }
}

impl Drop for BodyBudget {
    fn drop(&mut self) {
        self.budget.count.lock().release_body(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounded(budget: &ReceiveBudget, maximum_body: usize) -> BodyBudget {
        let mut body = budget.start_body();
        body.bound(maximum_body);
        body
    }

    #[test]
    fn a_stream_has_no_bound_and_leaves_none_lifted_behind() {
        let budget = ReceiveBudget::new();
        let (first, second) = (budget.start_body(), budget.start_body());
        let body = bounded(&budget, 0);
        drop(first);
        assert!(budget.take(usize::MAX) && budget.take(usize::MAX), "one of them is still read");
        drop(second);
        assert!(budget.take(2 * HEAD_BUDGET), "the body has its room");
        drop(body);
        assert!(budget.take(HEAD_BUDGET) && !budget.take(1));
        assert!(!budget.start_body().budget.take(0), "what is over stays over");
    }

    #[test]
    fn starts_anew_with_every_answer_but_never_after_it_was_over() {
        let budget = ReceiveBudget::new();
        assert!(budget.take(HEAD_BUDGET));
        let body = bounded(&budget, 10);
        assert!(budget.take(10 * FRAMING_OVERHEAD + 2 * HEAD_BUDGET));
        drop(body);
        let (first, second) = (bounded(&budget, 0), bounded(&budget, 0));
        drop(first);
        assert!(budget.take(2 * HEAD_BUDGET), "the other body still has its room");
        assert!(!budget.take(1) && budget.is_exceeded());
        drop(second);
        assert!(!budget.take(0));
    }
}
