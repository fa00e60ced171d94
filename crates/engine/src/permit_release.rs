//! A turn that waits for another one does not keep others from running: it gives its place up and takes one again when
//! it can go on, before those that have not begun.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::admission::Permit;
use crate::directory::Hosted;
use crate::engine::EngineState;
use crate::handle::{Stopped, TaskHandle};
use crate::live_task::{Core, LiveTask};
use crate::queue::{QueuePriority, QueueSlot};

/// How a turn stands to its place to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PermitState {
    /// It has one, or its driver sees to that.
    #[default]
    Held,
    /// It wants to give it up; its driver has not looked yet.
    Releasing,
    /// It has none and wants none.
    Released,
    /// It waits in the queue for another one.
    Requeued,
}

impl TaskHandle {
    /// Waits for something that other turns have to do first, and lets another turn have its place meanwhile.
    ///
    /// # Errors
    /// If the task is to stop before that.
    pub async fn step_aside<T>(&self, wait: impl Future<Output = T>) -> Result<T, Stopped> {
        let Some(hosted) = &self.live.hosted else { return Err(Stopped::Lost) };
        let counted = Counted::new(&self.engine, hosted);
        self.live.core.lock().output.permit_state = PermitState::Releasing;
        self.live.output.notify_one();
        let found = tokio::select! {
            found = wait => found,
            () = self.canceled() => return Err(Stopped::Canceled),
        };
        drop(counted);
        self.live.core.lock().output.blocker = None;
        self.reacquire_permit(hosted).await?;
        Ok(found)
    }

    async fn reacquire_permit(&self, hosted: &Arc<Hosted>) -> Result<(), Stopped> {
        if !self.live.core.lock().is_aside() {
            return Ok(());
        }
        if let Some(permit) = self.engine.try_permit(hosted, &self.live.task.owner) {
            self.live.core.lock().give_permit(permit);
            self.live.wake();
            return Ok(());
        }
        let _queued = Returning::new(self);
        self.live
            .wait_for(|core| {
                if self.must_stop(core) {
                    self.observe_stop(core);
                    return Some(Err(Stopped::Canceled));
                }
                (core.output.permit_state == PermitState::Held).then_some(Ok(()))
            })
            .await
    }
}

impl Core {
    /// Whether the turn has to get a place. One that its driver has not given up yet is still its own.
    fn is_aside(&mut self) -> bool {
        if self.output.permit_state == PermitState::Releasing {
            self.output.permit_state = PermitState::Held;
        }
        self.output.permit_state == PermitState::Released
    }

    fn give_permit(&mut self, permit: Permit) {
        self.output.permit_state = PermitState::Held;
        self.resume = Some(permit);
    }
}

/// Counts a turn that stands aside as one that waits, while it lives.
///
/// The queue's limit does not keep it from standing aside: if it kept its place, whoever it waits for might find none.
/// Instead its agent takes no further work while more of its turns do than the queue may hold ([`EngineState::has_too_many_released`]).
struct Counted {
    hosted: Arc<Hosted>,
    _slot: Option<QueueSlot>,
}

impl Counted {
    fn new(engine: &EngineState, hosted: &Arc<Hosted>) -> Self {
        hosted.released.fetch_add(1, Ordering::AcqRel);
        Self { hosted: hosted.clone(), _slot: engine.admission.queue_slot(usize::MAX) }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.hosted.released.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A turn's wait in the queue; dropping it leaves the queue.
struct Returning {
    engine: Arc<EngineState>,
    live: Arc<LiveTask>,
}

impl Returning {
    fn new(handle: &TaskHandle) -> Self {
        let (engine, live) = (handle.engine.clone(), handle.live.clone());
        live.core.lock().output.permit_state = PermitState::Requeued;
        // It was let in once, so there is no limit to it now.
        if let Some(slot) = engine.admission.queue_slot(usize::MAX) {
            engine.admission.enqueue(QueuePriority::Started, live.clone(), slot);
        }
        // A place may have become free between the refusal and now.
        engine.start_queued();
        Self { engine, live }
    }
}

impl Drop for Returning {
    fn drop(&mut self) {
        self.engine.admission.withdraw(&self.live);
    }
}

impl EngineState {
    /// Whether more turns of an agent stand aside than the queue may hold.
    pub(crate) fn has_too_many_released(&self, hosted: &Hosted) -> bool {
        hosted.released.load(Ordering::Acquire) > self.settings.queued_turns
    }

    /// Gives a place to a turn that waits for one in order to go on. The place comes back if the turn is none of these.
    pub(crate) fn resume_released(&self, live: &LiveTask, permit: Permit) -> Option<Permit> {
        let mut core = live.core.lock();
        // One that was stopped meanwhile has no use for it, and nobody would give it back.
        if core.output.permit_state != PermitState::Requeued || !core.driven || core.is_done() {
            return Some(permit);
        }
        core.give_permit(permit);
        drop(core);
        live.wake();
        None
    }
}
