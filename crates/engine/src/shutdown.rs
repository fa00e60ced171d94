//! Graceful shutdown: no new work, the drain time for running turns, and a mark in the log for those not finished.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::append::PendingAppend;
use crate::engine::{Engine, EngineState};
use crate::event::Event;
use crate::live_task::{Core, LiveTask, TurnLocation};
use crate::store::{Phase, RowState, StoreError};

/// How often a shutdown looks whether turns are still busy. Mostly they wait for a commit.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

impl Engine {
    /// Resolves when a shutdown has waited for running turns: they have ended, or are left to the next process. Watchers
    /// get no more events then.
    pub fn drained(&self) -> &CancellationToken {
        &self.inner.drained
    }

    /// Starts work that ends by itself and writes at its end: a shutdown waits for it before it closes the store.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.inner.work.spawn(work);
    }

    /// Stops the kernel and closes the store. Turns get the drain time to end; the next process recovers the others.
    pub async fn shutdown(&self) -> Result<(), StoreError> {
        let engine = &self.inner;
        engine.closing.cancel();
        engine.work.close();
        tokio::select! {
            () = engine.idle() => {}
            () = engine.clock.sleep(engine.settings.drain) => {}
        }
        engine.interrupting.cancel();
        // Together, so that they share commits.
        let marking = engine.live.all().into_iter().map(|live| async move {
            if let Err(error) = engine.interrupt(&live).await {
                tracing::warn!(task = %live.task.id, %error, "a running task could not be marked as interrupted");
            }
        });
        futures_util::future::join_all(marking).await;
        engine.drained.cancel();
        for live in engine.live.all() {
            live.give_up(StoreError::Closed);
        }
        tokio::select! {
            () = engine.work.wait() => {}
            // Only an agent that never yields, or whose `recover` hangs, can still be here.
            () = engine.clock.sleep(engine.settings.cancel_grace) => {}
        }
        engine.store.close().await
    }
}

impl EngineState {
    /// Resolves when every turn that runs only waits itself, and none has output to commit. What it looks for is done by
    /// threads and disks, so it looks again by their time and not by that of the clock, which bounds it.
    async fn idle(&self) {
        while self.admission.busy.held() > 0 {
            tokio::select! {
                () = tokio::time::sleep(LOOK_AGAIN) => {}
                () = self.work.wait() => return,
            }
        }
    }

    /// Marks a turn that has not ended. A blocked sender gets the task as it is, so from now on the task must be visible,
    /// also where it might have become a direct reply.
    async fn interrupt(&self, live: &LiveTask) -> Result<bool, StoreError> {
        let decide = |core: &mut Core| {
            // A task that is not in the log yet has nothing to mark.
            core.key?;
            let mut row = RowState { hidden: false, ..core.row.clone() };
            match core.row.phase {
                Phase::Running if core.location() == TurnLocation::Elsewhere => None,
                Phase::Running => {
                    row.phase = Phase::Interrupted;
                    row.fence = row.fence.next();
                    let save = core.turn.driven().and_then(|driven| driven.at_shutdown.as_ref());
                    let saved = save.and_then(|save| save()).map(Event::Saved);
                    let events = saved.into_iter().chain([Event::Interrupted]).collect();
                    Some(PendingAppend::inbox(events, row))
                }
                phase if phase.is_queued() && core.row.hidden => Some(PendingAppend::inbox(Vec::new(), row)),
                _ => None,
            }
        };
        live.inbox_if(self, decide).await
    }
}
