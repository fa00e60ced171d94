//! Room for large bodies that are under way: so much in all, and a part of it for each caller. Small ones need none.
//!
//! Whoever waits for room holds nothing that somebody with room may wait for, and the other way round: a body is let go
//! before the wait and made again after it.

use switchboard_engine::CallerId;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::render::KEPT_BYTES;
use crate::shares::{Share, Shares};

/// In KiB: in all, and for one caller. One body alone always fits.
const ALL: usize = 64 << 10;
const EACH: usize = ALL / 4;

pub(crate) struct Large {
    all: Semaphore,
    callers: Shares,
}

/// Room for one body, until it is dropped.
pub(crate) struct Room<'a> {
    _held: Option<(Share<'a>, SemaphorePermit<'a>)>,
}

impl Default for Large {
    fn default() -> Self {
        Self { all: Semaphore::new(ALL), callers: Shares::new(EACH) }
    }
}

impl Large {
    /// Room for a body of a caller, if there is some now.
    pub(crate) fn try_room(&self, caller: &CallerId, bytes: usize) -> Option<Room<'_>> {
        if bytes <= KEPT_BYTES {
            return Some(Room { _held: None });
        }
        let share = self.callers.try_take(caller, bytes >> 10)?;
        let all = self.all.try_acquire_many(of_all(bytes)).ok()?;
        Some(Room { _held: Some((share, all)) })
    }

    /// Waits for room.
    pub(crate) async fn room(&self, caller: &CallerId, bytes: usize) -> Room<'_> {
        if bytes <= KEPT_BYTES {
            return Room { _held: None };
        }
        let share = self.callers.take(caller, bytes >> 10).await;
        let all = self.all.acquire_many(of_all(bytes)).await.ok();
        Room { _held: all.map(|all| (share, all)) }
    }
}

fn of_all(bytes: usize) -> u32 {
    u32::try_from((bytes >> 10).clamp(1, ALL)).unwrap_or(u32::MAX)
}
