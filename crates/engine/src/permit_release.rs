//! A turn that waits for another turn releases its run permit, so that it does not keep others from running, and gets
//! one again when it can go on, before turns that have not begun.

use std::sync::Arc;

use crate::admission::Permit;
use crate::directory::Hosted;
use crate::engine::EngineState;
use crate::handle::{Stopped, TaskHandle};
use crate::live_task::{DrivenTurn, LiveTask};
use crate::queue::QueuePriority;

impl TaskHandle {
    /// Waits for something that other turns have to do first, and lets another turn have its permit meanwhile. An error
    /// if the task is to stop before that. To be awaited to its end: a turn whose wait is dropped goes on without a permit,
    /// so a limit on the wait belongs inside it.
    pub async fn release_permit_while<T>(&self, wait: impl Future<Output = T>) -> Result<T, Stopped> {
        let Some(hosted) = &self.live.hosted else { return Err(Stopped::Lost) };
        // Counted as waiting without a limit: if it kept its permit, the turn it waits for might never get one. Instead
        // its agent takes no further work while too many of its turns wait (`has_too_many_released`). It takes no place
        // in the queue either, which would be missing for the turns it waits for.
        let counted = (hosted.released.acquire(), self.engine.admission.released.acquire());
        let unused = self.live.core.lock().turn.driven_by(self.run).and_then(DrivenTurn::release_permit);
        drop(unused);
        self.live.output.notify_one();
        let found = tokio::select! {
            found = wait => found,
            () = self.canceled() => return Err(Stopped::Canceled),
        };
        drop(counted);
        self.live.core.lock().output.run.blocker = None;
        self.reacquire_permit(hosted).await?;
        Ok(found)
    }

    async fn reacquire_permit(&self, hosted: &Hosted) -> Result<(), Stopped> {
        {
            let mut core = self.live.core.lock();
            if !core.turn.driven_by(self.run).is_some_and(DrivenTurn::needs_permit) {
                return Ok(());
            }
        }
        if let Some(permit) = self.engine.try_permit(hosted, self.live.task.payer()) {
            // It comes back only if the turn was left meanwhile.
            let unused = match self.live.core.lock().turn.driven_by(self.run) {
                Some(driven) => driven.grant(permit).err(),
                None => Some(permit),
            };
            drop(unused);
            self.live.wake();
            return Ok(());
        }
        let _queued = Requeued::new(self);
        self.live
            .wait_for(|core| {
                if self.must_stop(core) {
                    self.observe_stop(core);
                    return Some(Err(Stopped::Canceled));
                }
                core.turn.driven().is_some_and(|driven| !driven.is_without_permit()).then_some(Ok(()))
            })
            .await
    }
}

/// A turn's wait in the queue; dropping it leaves the queue.
struct Requeued {
    engine: Arc<EngineState>,
    live: Arc<LiveTask>,
}

impl Requeued {
    fn new(handle: &TaskHandle) -> Self {
        let (engine, live) = (handle.engine.clone(), handle.live.clone());
        if let Some(driven) = live.core.lock().turn.driven_by(handle.run) {
            driven.wait_for_permit();
        }
        // It was admitted before, so the queue's limit does not count.
        let slot = engine.admission.queued.acquire();
        engine.admission.enqueue(QueuePriority::Started, live.clone(), engine.clock.now(), slot);
        // A permit may have become free between the refusal and now.
        engine.start_queued();
        Self { engine, live }
    }
}

impl Drop for Requeued {
    fn drop(&mut self) {
        self.engine.admission.withdraw(&self.live);
    }
}

impl EngineState {
    /// Whether more turns of an agent have released their permits than the queue may hold.
    pub(crate) fn has_too_many_released(&self, hosted: &Hosted) -> bool {
        hosted.released.held() > self.settings.queued_turns
    }

    /// Gives a permit to a turn that waits for one in order to go on. The permit comes back if it does not, or was
    /// stopped meanwhile: it would keep it for ever.
    pub(crate) fn resume_released(&self, live: &LiveTask, permit: Permit) -> Option<Permit> {
        let mut core = live.core.lock();
        if !core.turn.waits_for_permit() || core.is_done() {
            return Some(permit);
        }
        let Some(driven) = core.turn.driven_mut() else { return Some(permit) };
        let unused = driven.grant(permit).err();
        drop(core);
        live.wake();
        unused
    }
}
