//! Stopping in order: no new work, a while for what runs, and a mark in the log for what did not finish.

use tokio_util::sync::CancellationToken;

use crate::append::{AppendKind, PendingAppend};
use crate::batch::Batch;
use crate::engine::{Engine, EngineState};
use crate::error::Error;
use crate::event::Event;
use crate::live_task::LiveTask;
use crate::recover::NotWritten;
use crate::store::{Phase, Sides, StoreError};

impl Engine {
    /// Resolves when a stop has waited for running turns: they have ended, or are left to the next process. What
    /// still watches a task hears nothing more of it then.
    pub fn drained(&self) -> &CancellationToken {
        &self.inner.drained
    }

    /// Starts work that ends by itself and writes at its end: a stop waits a little for it before it closes the store.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.inner.work.spawn(work);
    }

    /// Stops the kernel and closes the store. Turns get the drain time to end; the others are left as they are, to be
    /// recovered by the next process.
    pub async fn shutdown(&self) -> Result<(), StoreError> {
        let engine = &self.inner;
        engine.closing.cancel();
        engine.work.close();
        tokio::select! {
            () = engine.idle() => {}
            () = engine.clock.sleep(engine.settings.drain) => {}
        }
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
    /// Resolves when no turn runs but those that only wait themselves, and none has output to commit.
    async fn idle(&self) {
        while self.admission.busy() > 0 {
            tokio::select! {
                () = self.clock.sleep(std::time::Duration::from_millis(20)) => {}
                () = self.work.wait() => return,
            }
        }
    }

    /// Marks a turn that has not ended. Whoever waits for it is answered with the task, so that it must be there to be
    /// asked for from now on, also where it might have become a direct reply.
    async fn interrupt(&self, live: &LiveTask) -> Result<(), Error> {
        let interrupted = live.inbox::<(), NotWritten>(self, |core| {
            let mut row = core.row.clone();
            row.hidden = false;
            let batch = match core.row.phase {
                Phase::Running => {
                    row.phase = Phase::Interrupted;
                    row.fence = row.fence.next();
                    Batch::of(vec![Event::Interrupted])
                }
                phase if phase.is_queued() && core.row.hidden => Batch::default(),
                _ => return Err(NotWritten::NotNeeded),
            };
            Ok((PendingAppend { batch, row, kind: AppendKind::Inbox, sides: Sides::default(), refusable: false }, ()))
        });
        NotWritten::or_error(interrupted.await).map(drop)
    }
}
