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

use crate::outbox::Inner;
use crate::render::KEPT_BYTES;
use crate::shares::{Share, Shares};

/// In KiB: in all, and for one caller. A body that is larger than a caller's part takes all of that part, and no more.
const ALL: usize = 64 << 10;
const EACH: usize = ALL / 4;
/// How long room is kept for a webhook that is not served meanwhile, as when its endpoint is paused.
const KEPT: Duration = Duration::from_secs(10);

pub(crate) struct Large {
    all: Arc<Semaphore>,
    callers: Arc<Shares>,
    /// Webhooks without room, and those that have some by now.
    parked: Mutex<HashMap<WebhookKey, Option<Room>>>,
}

/// Room for one body, until it is dropped.
pub(crate) struct Room {
    _held: Option<(Share, OwnedSemaphorePermit)>,
}

/// Where a webhook stands.
pub(crate) enum Standing {
    /// It waits for room.
    Waits,
    /// There is room for it.
    Has(Room),
    /// It has not asked.
    Free,
}

impl Default for Large {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(ALL)), callers: Shares::new(EACH), parked: Mutex::default() }
    }
}

impl Large {
    /// Room for a body of a caller, if there is some now.
    pub(crate) fn try_room(&self, caller: &CallerId, bytes: usize) -> Option<Room> {
        if bytes <= KEPT_BYTES {
            return Some(Room { _held: None });
        }
        let share = self.callers.try_take(caller, bytes >> 10)?;
        let all = Arc::clone(&self.all).try_acquire_many_owned(kib(bytes)).ok()?;
        Some(Room { _held: Some((share, all)) })
    }

    /// Where a webhook stands that is about to be served. Room that was kept for it is taken.
    pub(crate) fn standing(&self, webhook: WebhookKey) -> Standing {
        let mut parked = self.parked.lock();
        match parked.get(&webhook) {
            None => Standing::Free,
            Some(None) => Standing::Waits,
            Some(Some(_)) => parked.remove(&webhook).flatten().map_or(Standing::Free, Standing::Has),
        }
    }

    async fn room(&self, caller: &CallerId, bytes: usize) -> Room {
        let share = self.callers.take(caller, bytes >> 10).await;
        let all = Arc::clone(&self.all).acquire_many_owned(kib(bytes)).await.ok();
        Room { _held: all.map(|all| (share, all)) }
    }
}

impl Inner {
    /// Has a webhook wait for room without taking up anything.
    pub(crate) fn park(self: &Arc<Self>, route: Route, bytes: usize) {
        if self.large.parked.lock().insert(route.webhook, None).is_some() {
            return;
        }
        let inner = Arc::clone(self);
        self.engine.spawn(async move {
            let closing = inner.engine.closing().clone();
            let webhook = route.webhook;
            tokio::select! {
                room = inner.large.room(&route.owner, bytes) => {
                    inner.large.parked.lock().insert(webhook, Some(room));
                }
                () = closing.cancelled() => return,
            }
            inner.line_up(route);
            tokio::select! {
                () = tokio::time::sleep(KEPT) => {}
                () = closing.cancelled() => {}
            }
            // Unless it was taken, or the webhook waits again.
            let mut parked = inner.large.parked.lock();
            if parked.get(&webhook).is_some_and(Option::is_some) {
                parked.remove(&webhook);
            }
        });
    }
}

fn kib(bytes: usize) -> u32 {
    u32::try_from((bytes >> 10).clamp(1, EACH)).unwrap_or(u32::MAX)
}
