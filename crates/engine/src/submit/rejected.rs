//! A task that is refused by the guard of delegation: its message and REJECTED are one commit, and no agent starts. It takes
//! no permit, because the turns that have them may be the ones that wait for it.

use std::sync::Arc;

use switchboard_a2a::{Message, Role, TaskState};

use super::{InitialTask, Submitted};
use crate::batch::Batch;
use crate::delegation::DelegationRefused;
use crate::directory::Hosted;
use crate::engine::EngineState;
use crate::error::Error;
use crate::event::Received;
use crate::ids::{Fence, Seq};
use crate::live_task::LiveTask;
use crate::output::push_status;
use crate::store::{Phase, RowState, SideWrites, TaskIdentity};

impl EngineState {
    pub(super) async fn begin_rejected(
        self: Arc<Self>,
        task: TaskIdentity,
        hosted: &Arc<Hosted>,
        received: Arc<Received>,
        batch: Batch,
        sides: SideWrites,
        refused: DelegationRefused,
    ) -> Result<Submitted, Error> {
        let row = RowState {
            state: TaskState::Submitted,
            status_at: received.at,
            phase: Phase::Running,
            fence: Fence(1),
            ..RowState::default()
        };
        let live = Arc::new(LiveTask::create(task, hosted.clone(), row));
        {
            let mut core = live.core.lock();
            core.output.batch = batch;
            core.output.pushed += 1;
            let message = Message::text(Role::Agent, refused.problem.clone());
            let metadata = refused.kind.metadata();
            push_status(&self, &live, &mut core, TaskState::Rejected, Some(message), Some(metadata))
                .map_err(Error::retry_soon)?;
        }
        let (engine, task) = (self.clone(), live.clone());
        // Spawned: the caller may disconnect, the append must go on.
        self.work.spawn(async move { task.flush(&engine, sides).await }).await??;
        self.report_refusal(refused.into(), &live.task.owner);
        let epoch = live.core.lock().last_epoch;
        let first = InitialTask::New(epoch, received);
        Ok(Submitted { engine: self, live, seq: Seq(1), first, waiting: None, turn: Default::default() })
    }
}
