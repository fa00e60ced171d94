//! Cancellation: at once where no turn runs, otherwise by a request to the running turn, which gets a grace period. It
//! reaches the live child tasks as well, so that nothing goes on that no turn waits for.

use std::sync::Arc;

use switchboard_a2a::{Message, TaskId, TaskState};

use crate::append::PendingAppend;
use crate::caller::Caller;
use crate::directory::Address;
use crate::engine::{Engine, EngineState, shutting_down};
use crate::error::Error;
use crate::event::Event;
use crate::live_task::{Core, LiveTask, TurnLocation};
use crate::read::TaskReading;
use crate::reason::Reason;
use crate::store::{Phase, RowState, StoreError};
use crate::usage::with_usage;

impl Engine {
    /// Cancels a task and returns once it has ended. If it ended some other way first, that is an error.
    pub async fn cancel(&self, address: &Address, caller: &Caller, id: &TaskId) -> Result<TaskReading, Error> {
        let live = self.inner.open(address, caller, id).await?;
        self.cancel_live(live).await
    }

    pub(crate) async fn cancel_live(&self, live: Arc<LiveTask>) -> Result<TaskReading, Error> {
        let engine = self.inner.clone();
        let task = live.clone();
        // Spawned: the caller may disconnect, the request to stop must still be stored.
        let request = async move {
            let requested = engine.request_cancel(&task).await;
            // Of a task that is canceled already, too: its children may not have been reached then.
            if let Ok(()) | Err(Error::NotCancelable { state: TaskState::Canceled, .. }) = requested {
                engine.cancel_children(&task).await?;
            }
            requested
        };
        self.inner.work.spawn(request).await??;
        let ended = live.wait_for(|core| match core.turn.stuck() {
            _ if core.is_done() => Some(Ok(core.row.state)),
            Some(error) => Some(Err(unstored(error))),
            None => None,
        });
        let state = tokio::select! {
            state = ended => state?,
            () = self.inner.drained.cancelled() => return Err(shutting_down()),
        };
        if state == TaskState::Canceled {
            Ok(TaskReading::of(&live))
        } else {
            Err(Error::NotCancelable { id: live.task.id.clone(), state })
        }
    }
}

/// The cancel request is in the log and holds; that the task has stopped is not, and cannot be promised.
fn unstored(error: &StoreError) -> Error {
    Error::retry_soon(format!("the task is being stopped, but its end could not be stored: {error}"))
}

impl EngineState {
    pub(crate) async fn request_cancel(self: &Arc<Self>, live: &Arc<LiveTask>) -> Result<(), Error> {
        self.link_children_of_parked(live).await;
        let mut was_queued = false;
        let mut refused = None;
        let decide = |core: &mut Core| {
            if core.is_done() {
                refused = Some(Error::NotCancelable { id: live.task.id.clone(), state: core.row.state });
                return None;
            }
            was_queued = core.row.phase.is_queued();
            if core.location() != TurnLocation::Nowhere {
                // The turn sees the request with the commit. A second request waits for the first.
                let is_first = !core.fold.kernel.cancel_requested;
                return is_first.then(|| PendingAppend::inbox(vec![Event::CancelRequested], core.row.clone()));
            }
            // No turn runs, so the task ends at once.
            let (status, row) = self.terminal_event(live, core, TaskState::Canceled, None, Reason::CanceledByCaller);
            Some(PendingAppend::inbox(vec![Event::CancelRequested, status], row))
        };
        let is_written = live.inbox_if(self, decide).await?;
        if is_written && was_queued {
            self.admission.withdraw(live);
        }
        refused.map_or(Ok(()), Err)
    }

    /// The terminal event of a task that no turn works on, and the row after it.
    pub(crate) fn terminal_event(
        &self,
        live: &LiveTask,
        core: &mut Core,
        state: TaskState,
        message: Option<Message>,
        reason: Reason,
    ) -> (Event, RowState) {
        let at = core.next_status_at(self.clock.now());
        let fence = core.row.fence.next();
        let row = RowState { state, status_at: at, phase: Phase::Done, fence, expires_at: None, ..core.row.clone() };
        let metadata = with_usage(core, reason.metadata());
        (live.status_event(state, at, message, metadata), row)
    }
}
