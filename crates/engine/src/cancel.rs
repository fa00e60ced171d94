//! Stopping a task: at once where nobody works on it, otherwise by telling the agent and giving it a little time.

use std::sync::Arc;

use switchboard_a2a::{TaskId, TaskState};

use crate::append::{AppendKind, PendingAppend};
use crate::batch::Batch;
use crate::caller::Caller;
use crate::directory::Address;
use crate::engine::{Engine, EngineState};
use crate::error::Error;
use crate::event::Event;
use crate::live_task::LiveTask;
use crate::output::with_usage;
use crate::read::TaskReading;
use crate::reason::Reason;
use crate::store::{Phase, Sides, StoreError};

impl Engine {
    /// Stops a task and answers once it has ended. If it ended some other way first, that is an error.
    pub async fn cancel(&self, address: &Address, caller: &Caller, id: &TaskId) -> Result<TaskReading, Error> {
        let live = self.inner.open(address, caller, id).await?;
        self.cancel_live(live).await
    }

    pub(crate) async fn cancel_live(&self, live: Arc<LiveTask>) -> Result<TaskReading, Error> {
        let engine = self.inner.clone();
        let task = live.clone();
        // The connection may go away; the request to stop must not.
        let requested = self.inner.work.spawn(async move { engine.request_cancel(&task).await });
        let lost =
            |error: tokio::task::JoinError| Error::Unavailable { problem: error.to_string(), retry_after_ms: 1_000 };
        requested.await.map_err(lost)??;
        let ended = live.wait_for(|core| match core.lost.as_ref().or(core.unstored.as_ref()) {
            _ if core.is_done() => Some(Ok(core.row.state)),
            Some(error) => Some(Err(unstored(error))),
            None => None,
        });
        let state = tokio::select! {
            state = ended => state?,
            () = self.inner.drained.cancelled() => return Err(crate::engine::shutting_down()),
        };
        if state == TaskState::Canceled {
            Ok(TaskReading::of(&live))
        } else {
            Err(Error::NotCancelable { id: live.task.id.clone(), state })
        }
    }
}

/// The request to stop is in the log and holds; that the task has stopped is not, and cannot be promised.
fn unstored(error: &StoreError) -> Error {
    let problem = format!("the task is being stopped, but its end could not be stored: {error}");
    Error::Unavailable { problem, retry_after_ms: 1_000 }
}

/// Why nothing was written.
enum Refusal {
    /// Somebody asked before; wait for that.
    Joined,
    Error(Error),
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::Error(Error::from_store(&error))
    }
}

impl EngineState {
    async fn request_cancel(self: &Arc<Self>, live: &Arc<LiveTask>) -> Result<(), Error> {
        let decided = live.inbox(self, |core| {
            if core.is_done() {
                let id = live.task.id.clone();
                return Err(Refusal::Error(Error::NotCancelable { id, state: core.row.state }));
            }
            let mut row = core.row.clone();
            let was_queued = row.phase.is_queued();
            let events = match row.phase {
                // The turn hears of it with the commit.
                Phase::Running | Phase::Interrupted if core.driven => {
                    if core.fold.kernel.cancel_requested {
                        return Err(Refusal::Joined);
                    }
                    vec![Event::CancelRequested]
                }
                // Nobody works on it, so it is stopped.
                _ => {
                    let at = core.next_status_at(self.clock.now());
                    row.state = TaskState::Canceled;
                    row.status_at = at;
                    row.phase = Phase::Done;
                    row.fence = row.fence.next();
                    row.expires_at = None;
                    let metadata = with_usage(core, Reason::CanceledByCaller.metadata());
                    let status = live.status_event(TaskState::Canceled, at, None, metadata);
                    vec![Event::CancelRequested, status]
                }
            };
            let batch = Batch::of(events);
            Ok((
                PendingAppend { batch, row, kind: AppendKind::Inbox, sides: Sides::default(), refusable: false },
                was_queued,
            ))
        });
        match decided.await {
            Err(Refusal::Joined) => Ok(()),
            Err(Refusal::Error(error)) => Err(error),
            Ok((_, was_queued)) => {
                if was_queued {
                    self.admission.withdraw(live);
                }
                Ok(())
            }
        }
    }
}
