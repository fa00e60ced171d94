//! One limit: an atomic counter with permits. It neither locks nor allocates when a permit is taken.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many permits are held. Clones share the count.
#[derive(Clone, Debug, Default)]
pub struct Counter(Arc<AtomicUsize>);

/// One unit of a [`Counter`].
#[derive(Debug)]
pub struct CounterPermit {
    counter: Counter,
    is_held: bool,
}

impl Counter {
    /// How many are held.
    pub fn held(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }

    /// A permit, if fewer than `limit` are held.
    pub fn try_acquire(&self, limit: usize) -> Option<CounterPermit> {
        let below = |held: usize| (held < limit).then(|| held + 1);
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, below).ok()?;
        Some(CounterPermit { counter: self.clone(), is_held: true })
    }

    /// A permit whatever is held, for what is counted and not limited.
    pub fn acquire(&self) -> CounterPermit {
        self.0.fetch_add(1, Ordering::AcqRel);
        CounterPermit { counter: self.clone(), is_held: true }
    }
}

impl CounterPermit {
    /// Gives the unit back or takes it again without asking for a limit, as when a turn pauses and goes on.
    pub fn set_held(&mut self, is_held: bool) {
        if self.is_held == is_held {
            return;
        }
        self.is_held = is_held;
        if is_held {
            self.counter.0.fetch_add(1, Ordering::AcqRel);
        } else {
            self.counter.0.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl Drop for CounterPermit {
    fn drop(&mut self) {
        self.set_held(false);
    }
}
