//! How many names are looked up at a time for one caller: whoever asks for many, or for names whose servers answer
//! slowly, waits for its own lookups and never for those of others.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use switchboard_engine::CallerId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

const PER_CALLER: usize = 16;

/// Who has lookups under way.
#[derive(Default)]
pub(crate) struct Lookups {
    callers: Mutex<HashMap<CallerId, Arc<Semaphore>>>,
}

/// One lookup's place; free again when dropped.
pub(crate) struct Place<'a> {
    lookups: &'a Lookups,
    caller: CallerId,
    permit: Option<OwnedSemaphorePermit>,
}

impl Lookups {
    /// Waits for a place.
    pub(crate) async fn place(&self, caller: &CallerId) -> Place<'_> {
        // Made before the wait, so that a caller who gives up waiting leaves nothing behind either.
        let mut place = Place { lookups: self, caller: caller.clone(), permit: None };
        let places = Arc::clone(
            self.callers.lock().entry(caller.clone()).or_insert_with(|| Arc::new(Semaphore::new(PER_CALLER))),
        );
        place.permit = places.acquire_owned().await.ok();
        place
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut callers = self.lookups.callers.lock();
        self.permit = None;
        // Whoever holds or awaits a place holds the semaphore as well, and all that under this lock.
        if callers.get(&self.caller).is_some_and(|places| Arc::strong_count(places) == 1) {
            callers.remove(&self.caller);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_caller_waits_for_itself_alone_and_leaves_nothing_behind() {
        let lookups = Lookups::default();
        let (ann, bob) = (CallerId::from("ann"), CallerId::from("bob"));
        let mut places = Vec::new();
        for _ in 0..PER_CALLER {
            places.push(lookups.place(&ann).await);
        }
        {
            let mut next = pin!(lookups.place(&ann));
            assert!(next.as_mut().now_or_never().is_none(), "it waits");
            drop(lookups.place(&bob).await);
            places.pop();
            drop(next.await);
        }
        let gave_up = lookups.place(&ann);
        drop(gave_up);
        drop(places);
        assert!(lookups.callers.lock().is_empty());
    }
}
