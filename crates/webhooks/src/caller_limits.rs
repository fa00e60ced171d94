//! A part of something for each caller: whoever wants much, or holds on to it for long, waits for itself and never keeps
//! others waiting.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use switchboard_engine::CallerId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Who holds how much of its part.
pub(crate) struct CallerLimits {
    /// What each caller has.
    size: usize,
    callers: Mutex<HashMap<CallerId, Arc<Semaphore>>>,
}

/// Something held; it is given back when dropped.
pub(crate) struct CallerPermit {
    shares: Arc<CallerLimits>,
    caller: CallerId,
    permit: Option<OwnedSemaphorePermit>,
}

impl CallerLimits {
    /// So much for each caller.
    pub(crate) fn new(size: usize) -> Arc<Self> {
        Arc::new(Self { size, callers: Mutex::default() })
    }

    /// Waits until a caller may hold so much more. Nobody can ask for more than all of its part.
    pub(crate) async fn take(self: &Arc<Self>, caller: &CallerId, amount: usize) -> CallerPermit {
        // Made before the wait, so that a caller who gives up waiting leaves nothing behind either.
        let mut share = CallerPermit { shares: Arc::clone(self), caller: caller.clone(), permit: None };
        share.permit = self.of(caller).acquire_many_owned(self.amount(amount)).await.ok();
        share
    }

    /// The same if it need not be waited for.
    pub(crate) fn try_take(self: &Arc<Self>, caller: &CallerId, amount: usize) -> Option<CallerPermit> {
        let mut share = CallerPermit { shares: Arc::clone(self), caller: caller.clone(), permit: None };
        share.permit = Some(self.of(caller).try_acquire_many_owned(self.amount(amount)).ok()?);
        Some(share)
    }

    fn of(&self, caller: &CallerId) -> Arc<Semaphore> {
        let mut callers = self.callers.lock();
        Arc::clone(callers.entry(caller.clone()).or_insert_with(|| Arc::new(Semaphore::new(self.size))))
    }

    fn amount(&self, amount: usize) -> u32 {
        u32::try_from(amount.min(self.size)).unwrap_or(u32::MAX)
    }
}

impl Drop for CallerPermit {
    fn drop(&mut self) {
        let mut callers = self.shares.callers.lock();
        self.permit = None;
        // Whoever holds or awaits something holds the semaphore as well, and takes it under this lock.
        if callers.get(&self.caller).is_some_and(|share| Arc::strong_count(share) == 1) {
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
        let shares = CallerLimits::new(16);
        let (ann, bob) = (CallerId::from("ann"), CallerId::from("bob"));
        let mut held = Vec::new();
        for _ in 0..16 {
            held.push(shares.take(&ann, 1).await);
        }
        {
            let mut next = pin!(shares.take(&ann, 1));
            assert!(next.as_mut().now_or_never().is_none(), "it waits");
            assert!(shares.try_take(&ann, 1).is_none());
            drop(shares.take(&bob, 1_000).await);
            held.pop();
            drop(next.await);
        }
        drop(shares.take(&ann, 1));
        drop(held);
        assert!(shares.callers.lock().is_empty());
    }
}
