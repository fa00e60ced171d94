//! A turn that waits for another turn releases its run permit, so that it does not keep others from running, and gets
//! one again when it can go on, before turns that have not begun.

use std::sync::Arc;

use crate::admission::Permit;
use crate::directory::Hosted;
use crate::engine::EngineState;
use crate::handle::{Stopped, TaskHandle};
use crate::live_task::{Core, LiveTask};
use crate::queue::QueuePriority;

/// Whether a turn has its permit to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PermitState {
    /// It has one, or its driver sees to that.
    #[default]
    Held,
    /// It wants to release it; its driver has not looked yet.
    Releasing,
    /// It has none and wants none.
    Released,
    /// It waits in the queue for another one.
    Requeued,
}

impl TaskHandle {
    /// Waits for something that other turns have to do first, and lets another turn have its permit meanwhile. An error
    /// if the task is to stop before that.
    pub async fn release_permit_while<T>(&self, wait: impl Future<Output = T>) -> Result<T, Stopped> {
        let Some(hosted) = &self.live.hosted else { return Err(Stopped::Lost) };
        // Counted as waiting without a limit: if it kept its permit, the turn it waits for might never get one. Instead
        // its agent takes no further work while too many of its turns wait (`has_too_many_released`).
        let counted = (hosted.released.acquire(), self.engine.admission.queued.acquire());
        self.live.core.lock().output.run.permit_state = PermitState::Releasing;
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
            if core.output.run.permit_state == PermitState::Releasing {
                // The driver has not released it yet.
                core.output.run.permit_state = PermitState::Held;
            }
            if core.output.run.permit_state != PermitState::Released {
                return Ok(());
            }
        }
        if let Some(permit) = self.engine.try_permit(hosted, &self.live.task.owner) {
            self.live.core.lock().give_permit(permit);
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
                (core.output.run.permit_state == PermitState::Held).then_some(Ok(()))
            })
            .await
    }
}

impl Core {
    fn give_permit(&mut self, permit: Permit) {
        self.output.run.permit_state = PermitState::Held;
        self.resume = Some(permit);
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
        live.core.lock().output.run.permit_state = PermitState::Requeued;
        // It was admitted before, so the queue's limit does not count.
        let slot = engine.admission.queued.acquire();
        engine.admission.enqueue(QueuePriority::Started, live.clone(), slot);
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
        if core.output.run.permit_state != PermitState::Requeued || !core.driven || core.is_done() {
            return Some(permit);
        }
        core.give_permit(permit);
        drop(core);
        live.wake();
        None
    }
}
