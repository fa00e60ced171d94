//! A remark beside a run: what a server has to say of a task while its agent works, so that those who watch it hear.

use switchboard_a2a::{Message, Role, TaskId, TaskState};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::live_task::RunProgress;
use crate::output::push_status;
use crate::store::Phase;

impl Engine {
    /// Reports WORKING with a message in a task of the caller's, whose agent knows nothing of it. Says whether it was told:
    /// only while a turn runs here, and neither asks nor stops.
    pub fn remark(&self, caller: &Caller, id: &TaskId, message: Message) -> bool {
        let Some(live) = self.inner.live.get(id).filter(|live| live.task.owner == caller.id) else { return false };
        let message = Message {
            task_id: Some(live.task.id.clone()),
            context_id: Some(live.task.context.clone()),
            role: Role::Agent,
            ..message
        };
        let mut core = live.core.lock();
        let runs = core.row.phase == Phase::Running && core.turn.owns(core.row.fence) && !core.row.hidden;
        let works = core.output.state == TaskState::Working && core.turn.progress() == RunProgress::Working;
        if !runs || !works || core.output.stop.is_some() || core.is_done() {
            return false;
        }
        push_status(&self.inner, &live, &mut core, TaskState::Working, Some(message), None).is_ok()
    }
}
