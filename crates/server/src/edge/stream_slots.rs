//! Stream slots: how many event streams may be open, in total and per caller. Beyond them a stream is refused with the
//! retryable error, so that one caller's forgotten streams cannot take the others' slots.

use switchboard_a2a::Error;
use switchboard_admission::{KeyedCounter, KeyedPermit, LimitReached};
use switchboard_engine::CallerId;

use crate::metric_definitions::{self as metric, GaugeGuard};

/// When a refused caller may try again: streams come and go in seconds.
const RETRY_AFTER_MS: u64 = 1_000;

pub(crate) struct StreamSlots(KeyedCounter<CallerId>);

pub(crate) struct StreamSlot {
    _permit: KeyedPermit<CallerId>,
    _counted: GaugeGuard,
}

impl StreamSlots {
    pub(crate) fn new(total: usize, per_caller: usize) -> Self {
        Self(KeyedCounter::new(total, per_caller))
    }

    pub(crate) fn take(&self, caller: &CallerId) -> Result<StreamSlot, Error> {
        let permit = self.0.try_acquire(caller).map_err(|reached| {
            let message = match reached {
                LimitReached::Total(open) => {
                    format!("{open} streams are open, as many as limits.streams allows, try again later")
                }
                LimitReached::Key(own) => {
                    format!("this caller has {own} open streams, as many as one caller may, close one first")
                }
            };
            Error::overloaded(message, RETRY_AFTER_MS)
        })?;
        Ok(StreamSlot { _permit: permit, _counted: GaugeGuard::new(metric::STREAM_SUBSCRIBERS) })
    }
}
