//! The places for open event streams, all together and per caller. Beyond them a stream is refused with the retryable
//! error, so that one caller's forgotten streams cannot take the others' places.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use switchboard_a2a::Error;
use switchboard_engine::CallerId;

use crate::metric_definitions as metric;

/// When a refused caller may try again: streams come and go in seconds.
const RETRY_AFTER_MS: u64 = 1_000;

/// The places for open streams.
pub(crate) struct StreamSlots {
    places: usize,
    places_per_caller: usize,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Default)]
struct Taken {
    all: usize,
    by_caller: HashMap<CallerId, usize>,
}

/// One place; given back when dropped.
pub(crate) struct StreamSlot {
    caller: CallerId,
    taken: Arc<Mutex<Taken>>,
}

impl StreamSlots {
    pub(crate) fn new(places: usize, places_per_caller: usize) -> Self {
        Self { places, places_per_caller, taken: Arc::default() }
    }

    /// Takes a place for one stream.
    pub(crate) fn take(&self, caller: &CallerId) -> Result<StreamSlot, Error> {
        let mut taken = self.taken.lock();
        if taken.all >= self.places {
            let message = format!("{} streams are open, as many as limits.streams allows, try again later", taken.all);
            return Err(Error::overloaded(message, RETRY_AFTER_MS));
        }
        let own = taken.by_caller.entry(caller.clone()).or_default();
        if *own >= self.places_per_caller {
            let message = format!("this caller has {own} open streams, as many as one caller may, close one first");
            return Err(Error::overloaded(message, RETRY_AFTER_MS));
        }
        *own += 1;
        taken.all += 1;
        metrics::gauge!(metric::STREAM_SUBSCRIBERS).set(taken.all as f64);
        Ok(StreamSlot { caller: caller.clone(), taken: Arc::clone(&self.taken) })
    }
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        let mut taken = self.taken.lock();
        taken.all = taken.all.saturating_sub(1);
        if let Some(own) = taken.by_caller.get_mut(&self.caller) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                taken.by_caller.remove(&self.caller);
            }
        }
        metrics::gauge!(metric::STREAM_SUBSCRIBERS).set(taken.all as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_and_given_back() {
        let slots = StreamSlots::new(3, 2);
        let (ann, bob) = (CallerId::from("ann"), CallerId::from("bob"));
        let first = slots.take(&ann).unwrap();
        let _second = slots.take(&ann).unwrap();
        let Err(refused) = slots.take(&ann) else { panic!("a third stream of one caller was let in") };
        assert!(refused.message.contains("2 open streams"), "{refused}");
        let third = slots.take(&bob).unwrap();
        let Err(refused) = slots.take(&bob) else { panic!("a fourth stream was let in") };
        assert!(refused.message.contains("limits.streams"), "{refused}");
        assert!(refused.metadata.iter().any(|(key, _)| key == "retryAfterMs"));
        drop(first);
        let _again = slots.take(&ann).unwrap();
        drop(third);
        assert!(!slots.taken.lock().by_caller.contains_key(&bob), "a caller without streams is forgotten");
    }
}
