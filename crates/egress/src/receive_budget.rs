//! How many bytes a server may send. Timeouts alone do not limit it: endless informational responses, pings and session
//! tickets would keep a processor busy for as long as a call may take.
//!
//! The bytes are counted on the TCP connection, below TLS and HTTP, and the budget is reset with every response and at
//! the end of every call. Several calls on one connection share it. While one of them is a stream, nothing is counted:
//! a server that may stream without end gains nothing by sending something else beside it.

use std::sync::Arc;

use parking_lot::Mutex;

/// The longest head of a response, in bytes.
pub(crate) const MAX_RESPONSE_HEAD: usize = 64 * 1024;

/// What may come before the head of a response is complete: a head, and the beginning of the body read along with it.
const HEAD_BUDGET: usize = 2 * MAX_RESPONSE_HEAD;

/// What a byte of a body may cost on the connection: bodies in tiny chunks are mostly framing.
const FRAMING_OVERHEAD: usize = 8;

/// The budget of one connection. Clones share it.
#[derive(Clone)]
pub(crate) struct ReceiveBudget {
    count: Arc<Mutex<Count>>,
}

struct Count {
    left: usize,
    /// What is reserved for the bodies that are being read.
    bodies: usize,
    /// How many bodies without a limit are being read.
    streams: usize,
    is_exceeded: bool,
}

impl ReceiveBudget {
    pub(crate) fn new() -> Self {
        Self { count: Arc::new(Mutex::new(Count { left: HEAD_BUDGET, bodies: 0, streams: 0, is_exceeded: false })) }
    }

    /// Counts received bytes; false if they exceed the budget, and from then on.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        let mut count = self.count.lock();
        if count.streams == 0 {
            count.is_exceeded |= bytes > count.left;
            count.left = count.left.saturating_sub(bytes);
        }
        !count.is_exceeded
    }

    /// Whether more was received than allowed.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.count.lock().is_exceeded
    }

    /// The head of a response is complete: its body has no limit for as long as the result is kept.
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

/// The budget of a body; dropping it ends the call.
pub(crate) struct BodyBudget {
    budget: ReceiveBudget,
    /// `None` for a stream.
    bytes: Option<usize>,
}

impl BodyBudget {
    /// Limits the body from here on.
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
