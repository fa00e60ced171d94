//! Task commands of operators, across all callers: list the live tasks with what blocks them, and cancel one.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_a2a::{TaskId, TaskState, Timestamp};
use switchboard_engine::ids::TaskKey;
use switchboard_engine::{BlockingTask, BlockingTaskView, Engine, Error, LiveTaskSummary, state_label};

use crate::control::protocol::{ControlError, value};

/// The most tasks in one reply.
const PAGE: usize = 500;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "camelCase")]
pub enum TaskRequest {
    /// List those that have not ended.
    List {
        /// After which number; 0 for the oldest.
        after: i64,
    },
    Cancel {
        id: String,
    },
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LiveTaskPage {
    /// Oldest first.
    pub tasks: Vec<LiveTask>,
    /// After which number the next page begins, if there is one.
    pub next: Option<i64>,
}

/// A task that has not ended, as operators see it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LiveTask {
    pub id: String,
    pub agent: String,
    /// Its owner: the id of a key, or `local`.
    pub caller: String,
    pub context_id: String,
    /// Its state, such as `input-required`.
    pub state: String,
    /// Since when.
    pub since: Timestamp,
    /// When its first message came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_at: Option<Timestamp>,
    /// Its position in the queue, if it waits for a slot; 1 is next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_position: Option<usize>,
    /// The task that it waits for, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_by: Option<BlockedBy>,
    /// The beginning of its first message.
    pub text: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BlockedBy {
    /// As operators see it, and with it the command by which its caller answers.
    #[serde(flatten)]
    pub blocker: BlockingTaskView,
    pub caller: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CanceledTask {
    pub id: String,
    pub state: String,
}

pub(super) async fn handle(engine: &Engine, request: TaskRequest) -> Result<Value, ControlError> {
    match request {
        TaskRequest::List { after } => list(engine, after).await.and_then(value),
        TaskRequest::Cancel { id } => cancel(engine, &TaskId::from(id)).await.and_then(value),
    }
}

async fn list(engine: &Engine, after: i64) -> Result<LiveTaskPage, ControlError> {
    let views = engine.live_tasks(TaskKey(after), PAGE).await.map_err(ControlError::new)?;
    let next = (views.len() == PAGE).then(|| views.last().map(|view| view.key.0)).flatten();
    Ok(LiveTaskPage { tasks: views.into_iter().map(shown).collect(), next })
}

fn shown(view: LiveTaskSummary) -> LiveTask {
    LiveTask {
        id: view.task.id.to_string(),
        agent: view.task.agent.to_string(),
        caller: view.task.owner.to_string(),
        context_id: view.task.context.to_string(),
        state: state_name(view.state),
        since: view.since,
        received_at: view.received_at,
        queue_position: view.queue_position,
        blocked_by: view.blocker.as_ref().map(blocked_by),
        text: view.first_words,
    }
}

/// A state as commands show and take it.
fn state_name(state: TaskState) -> String {
    state_label(state).replace('_', "-")
}

fn blocked_by(blocker: &BlockingTask) -> BlockedBy {
    let shown = BlockingTaskView { answer: blocker.owner_view().answer, ..blocker.operator_view() };
    BlockedBy { blocker: shown, caller: blocker.owner.to_string() }
}

async fn cancel(engine: &Engine, id: &TaskId) -> Result<CanceledTask, ControlError> {
    let listed = "switchboard task list --all shows those that have not ended";
    match engine.cancel_any(id).await {
        Ok(reading) => {
            let task = reading.into_task().map_err(ControlError::new)?;
            Ok(CanceledTask { id: task.id.to_string(), state: state_name(task.status.state) })
        }
        // By the names that the protocol has for them.
        Err(error @ Error::TaskNotFound(_)) => {
            Err(ControlError::new(error).with_next(listed).with_code("TaskNotFoundError"))
        }
        Err(error @ Error::NotCancelable { .. }) => {
            Err(ControlError::new(error).with_next(listed).with_code("TaskNotCancelableError"))
        }
        Err(error) => Err(ControlError::new(error).with_next("try again")),
    }
}
