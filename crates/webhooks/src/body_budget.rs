//! A memory budget for large bodies in flight, in total and per caller. Small bodies need none of it.
//!
//! A webhook over budget holds neither a slot at its endpoint nor a large body while it waits. It is queued again once it
//! has a permit, which is reserved for it for a while.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use parking_lot::Mutex;
use switchboard_admission::{FairSemaphore, Limits, Permit};
use switchboard_engine::CallerId;
use switchboard_engine::store::webhooks::{WebhookKey, WebhookRoute};

use crate::outbox::Outbox;
use crate::render::KEPT_BYTES;

/// In KiB. A body that is larger than a caller's part takes all of that part, and no more.
const TOTAL_KIB: usize = 64 << 10;
const CALLER_KIB: usize = TOTAL_KIB / 4;
/// How long a permit is reserved for a webhook that does not run, as when its endpoint is paused.
const RESERVED_FOR: Duration = Duration::from_secs(10);

pub(crate) struct BodyBudget {
    semaphore: Arc<FairSemaphore<CallerId>>,
    /// Webhooks that wait for a permit, and those that have one by now.
    reservations: Mutex<HashMap<WebhookKey, Option<BodyPermit>>>,
}

/// Held while a body is in flight; none is needed for a small one.
pub(crate) type BodyPermit = Option<Permit<CallerId>>;

pub(crate) enum Reservation {
    Waiting,
    Granted(BodyPermit),
    None,
}

impl Default for BodyBudget {
    fn default() -> Self {
        let limits = Limits { total: TOTAL_KIB, per_key: CALLER_KIB, always: 0 };
        Self { semaphore: FairSemaphore::new(limits), reservations: Mutex::default() }
    }
}

impl BodyBudget {
    /// A permit for a body of a caller, if there is one now.
    pub(crate) fn try_acquire(&self, caller: &CallerId, bytes: usize) -> Option<BodyPermit> {
        if bytes <= KEPT_BYTES {
            return Some(None);
        }
        self.acquire(caller, bytes).now_or_never()
    }

    /// The reservation of a webhook whose next step begins.
    pub(crate) fn take_reservation(&self, webhook: WebhookKey) -> Reservation {
        let mut reservations = self.reservations.lock();
        match reservations.get(&webhook) {
            None => Reservation::None,
            Some(None) => Reservation::Waiting,
            Some(Some(_)) => reservations.remove(&webhook).flatten().map_or(Reservation::None, Reservation::Granted),
        }
    }

    async fn acquire(&self, caller: &CallerId, bytes: usize) -> BodyPermit {
        let share = self.semaphore.share(caller);
        let kib = (bytes >> 10).clamp(1, CALLER_KIB);
        Some(self.semaphore.acquire(caller, &share, kib).await)
    }
}

impl Outbox {
    /// Waits in the background for a permit and queues the webhook again once it is there.
    pub(crate) fn wait_for_budget(self: &Arc<Self>, route: WebhookRoute, bytes: usize) {
        if self.body_budget.reservations.lock().insert(route.webhook, None).is_some() {
            return;
        }
        let outbox = Arc::clone(self);
        self.engine.spawn(async move {
            let closing = outbox.engine.closing().clone();
            let webhook = route.webhook;
            tokio::select! {
                permit = outbox.body_budget.acquire(&route.owner, bytes) => {
                    outbox.body_budget.reservations.lock().insert(webhook, Some(permit));
                }
                () = closing.cancelled() => return,
            }
            outbox.requeue(route);
            tokio::select! {
                () = tokio::time::sleep(RESERVED_FOR) => {}
                () = closing.cancelled() => {}
            }
            // Unless the step took it, or the webhook waits again.
            let mut reservations = outbox.body_budget.reservations.lock();
            if reservations.get(&webhook).is_some_and(Option::is_some) {
                reservations.remove(&webhook);
            }
        });
    }
}
