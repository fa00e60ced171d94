//! Room for large bodies that are under way: so much in all, and a part of it for each caller. Small ones need none.
//!
//! Nobody waits for room with a place at an endpoint or a large body in hand. A webhook without room is parked: it gives
//! its place back, and stands in line again once there is room for it, which is kept for it for a while.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use switchboard_engine::CallerId;
use switchboard_engine::store::webhooks::{Route, WebhookKey};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::caller_limits::{CallerLimits, CallerPermit};
use crate::outbox::Outbox;
use crate::render::KEPT_BYTES;

/// In KiB: in all, and for one caller. A body that is larger than a caller's part takes all of that part, and no more.
const TOTAL_KIB: usize = 64 << 10;
const CALLER_KIB: usize = TOTAL_KIB / 4;
/// How long room is kept for a webhook that is not served meanwhile, as when its endpoint is paused.
const RESERVED_FOR: Duration = Duration::from_secs(10);

pub(crate) struct BodyBudget {
    all: Arc<Semaphore>,
    callers: Arc<CallerLimits>,
    /// Webhooks without room, and those that have some by now.
    parked: Mutex<HashMap<WebhookKey, Option<BodyPermit>>>,
}

/// Room for one body, until it is dropped.
pub(crate) struct BodyPermit {
    _held: Option<(CallerPermit, OwnedSemaphorePermit)>,
}

/// Where a webhook stands.
pub(crate) enum Reservation {
    /// It waits for room.
    Waiting,
    /// There is room for it.
    Granted(BodyPermit),
    /// It has not asked.
    None,
}

impl Default for BodyBudget {
    fn default() -> Self {
        Self {
            all: Arc::new(Semaphore::new(TOTAL_KIB)),
            callers: CallerLimits::new(CALLER_KIB),
            parked: Mutex::default(),
        }
    }
}

impl BodyBudget {
    /// Room for a body of a caller, if there is some now.
    pub(crate) fn try_acquire(&self, caller: &CallerId, bytes: usize) -> Option<BodyPermit> {
        if bytes <= KEPT_BYTES {
            return Some(BodyPermit { _held: None });
        }
        let share = self.callers.try_take(caller, bytes >> 10)?;
        let all = Arc::clone(&self.all).try_acquire_many_owned(kib(bytes)).ok()?;
        Some(BodyPermit { _held: Some((share, all)) })
    }

    /// Where a webhook stands that is about to be served. Room that was kept for it is taken.
    pub(crate) fn take_reservation(&self, webhook: WebhookKey) -> Reservation {
        let mut parked = self.parked.lock();
        match parked.get(&webhook) {
            None => Reservation::None,
            Some(None) => Reservation::Waiting,
            Some(Some(_)) => parked.remove(&webhook).flatten().map_or(Reservation::None, Reservation::Granted),
        }
    }

    async fn acquire(&self, caller: &CallerId, bytes: usize) -> BodyPermit {
        let share = self.callers.take(caller, bytes >> 10).await;
        let all = Arc::clone(&self.all).acquire_many_owned(kib(bytes)).await.ok();
        BodyPermit { _held: all.map(|all| (share, all)) }
    }
}

impl Outbox {
    /// Has a webhook wait for room without taking up anything.
    pub(crate) fn wait_for_budget(self: &Arc<Self>, route: Route, bytes: usize) {
        if self.body_budget.parked.lock().insert(route.webhook, None).is_some() {
            return;
        }
        let outbox = Arc::clone(self);
        self.engine.spawn(async move {
            let closing = outbox.engine.closing().clone();
            let webhook = route.webhook;
            tokio::select! {
                room = outbox.body_budget.acquire(&route.owner, bytes) => {
                    outbox.body_budget.parked.lock().insert(webhook, Some(room));
                }
                () = closing.cancelled() => return,
            }
            outbox.requeue(route);
            tokio::select! {
                () = tokio::time::sleep(RESERVED_FOR) => {}
                () = closing.cancelled() => {}
            }
            // Unless it was taken, or the webhook waits again.
            let mut parked = outbox.body_budget.parked.lock();
            if parked.get(&webhook).is_some_and(Option::is_some) {
                parked.remove(&webhook);
            }
        });
    }
}

fn kib(bytes: usize) -> u32 {
    u32::try_from((bytes >> 10).clamp(1, CALLER_KIB)).unwrap_or(u32::MAX)
}
