//! The task that a turn waits for, reported in its status: which agent serves that task, and since when.
//!
//! Every reader of the task sees its status. The other task's id and the commands that end its wait are in it only if
//! both tasks have the same owner. An operator of the other task's agent gets the id, and the command that stops any task,
//! added to what it reads ([`EngineState::add_blocker`]), and in the list of live tasks.

use serde::{Deserialize, Serialize};
use switchboard_a2a::{Message, Role, Task, TaskId, TaskState, Timestamp};

use crate::caller::{Caller, CallerRole};
use crate::engine::EngineState;
use crate::handle::{Stopped, TaskHandle};
use crate::ids::{AgentName, CallerId};
use crate::live_task::LiveTask;
use crate::reason::metadata_of;

/// Metadata key of the task that a waiting turn waits for.
pub const BLOCKED_BY_KEY: &str = "switchboard/blockedBy";

/// The task that a turn waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockingTask {
    /// Which one.
    pub task: TaskId,
    /// Who serves it.
    pub agent: AgentName,
    /// Whose it is.
    pub owner: CallerId,
    /// Since when it has what this one waits for, or waits for it too.
    pub since: Timestamp,
    /// Since when it waits for an answer, if it does.
    pub asks_since: Option<Timestamp>,
}

/// A [`BlockingTask`] as it is shown: its id only to its owner and to operators, with the commands that work for them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BlockingTaskView {
    /// Who serves the other task.
    pub agent: String,
    /// Since when it is in the way.
    pub since: Timestamp,
    /// Since when it waits for an answer, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks_since: Option<Timestamp>,
    /// The other task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// The command with which its owner answers, if it asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The command that stops it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<String>,
}

impl BlockingTask {
    /// As any reader of the task may see it.
    fn public_view(&self) -> BlockingTaskView {
        BlockingTaskView {
            agent: self.agent.to_string(),
            since: self.since,
            asks_since: self.asks_since,
            task_id: None,
            answer: None,
            cancel: None,
        }
    }

    /// As its owner sees it, with the commands of a caller.
    pub fn owner_view(&self) -> BlockingTaskView {
        let (agent, task) = (&self.agent, &self.task);
        let answer = format!("switchboard send {agent} --task-id {task} ANSWER");
        BlockingTaskView {
            task_id: Some(task.clone()),
            answer: self.asks_since.map(|_| answer),
            cancel: Some(format!("switchboard task cancel {agent} {task}")),
            ..self.public_view()
        }
    }

    /// As operators see it. To their own keys it is another caller's task, which they cannot answer; the command at the
    /// control socket stops any task.
    pub fn operator_view(&self) -> BlockingTaskView {
        BlockingTaskView {
            task_id: Some(self.task.clone()),
            cancel: Some(format!("switchboard task cancel {}", self.task)),
            ..self.public_view()
        }
    }
}

impl TaskHandle {
    /// Says that the turn waits for another task: WORKING, with a text made of what this task's owner may know of it. To be
    /// said again when it waits for another one; it holds until [`Self::release_permit_while`] is over.
    pub async fn blocked_by(
        &self,
        blocker: BlockingTask,
        text: impl FnOnce(&BlockingTaskView) -> String,
    ) -> Result<(), Stopped> {
        let shown = if blocker.owner == *self.caller() { blocker.owner_view() } else { blocker.public_view() };
        let message = Message::text(Role::Agent, text(&shown));
        self.wait_for_buffer(0).await?;
        self.push_status(TaskState::Working, Some(message), metadata_of(BLOCKED_BY_KEY, &shown))?;
        self.note_blocker(blocker);
        Ok(())
    }

    /// What operators read of it, without another event: for a wait that has been reported often enough.
    pub fn note_blocker(&self, blocker: BlockingTask) {
        self.live.core.lock().output.run.blocker = Some(blocker);
    }
}

impl EngineState {
    /// Adds to a task that an operator reads what its status may not say.
    pub(crate) fn add_blocker(&self, live: &LiveTask, caller: &Caller, task: &mut Task) {
        if caller.scopes.role < CallerRole::Operator {
            return;
        }
        let Some(blocker) = live.core.lock().output.run.blocker.clone() else { return };
        if !caller.scopes.operates(&blocker.agent) {
            return;
        }
        let view = if blocker.owner == caller.id { blocker.owner_view() } else { blocker.operator_view() };
        if let Some(shown) = metadata_of(BLOCKED_BY_KEY, &view) {
            task.metadata.get_or_insert_default().merge(&shown);
        }
    }
}
