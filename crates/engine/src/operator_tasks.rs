//! What operators see and do across callers: list every live task, cancel any of them.
//!
//! No caller is checked: it is for commands at the control socket, whose users could read the store anyway.

use switchboard_a2a::{TaskId, TaskState, Timestamp};

use crate::blocking_task::BlockingTask;
use crate::engine::{Engine, EngineState};
use crate::error::Error;
use crate::event::Event;
use crate::ids::{Seq, TaskKey};
use crate::read::TaskReading;
use crate::store::{TaskIdentity, TaskRow};

/// So much of a task's first message is shown, in characters.
const FIRST_WORDS: usize = 80;

/// A task that has not ended.
#[derive(Clone, Debug)]
pub struct LiveTaskSummary {
    /// Where it stands in the order: the next page begins after it.
    pub key: TaskKey,
    /// What never changes about it.
    pub task: TaskIdentity,
    /// Its state.
    pub state: TaskState,
    /// Since when.
    pub since: Timestamp,
    /// When its first message came; nothing if that cannot be read.
    pub received_at: Option<Timestamp>,
    /// Its queue position, if it waits for a permit; 1 is next.
    pub queue_position: Option<usize>,
    /// The task that it waits for, if it does.
    pub blocker: Option<BlockingTask>,
    /// The beginning of its first message, on one line.
    pub first_words: String,
}

impl Engine {
    /// The tasks of all callers that have not ended, oldest first, after the given key and at most `max`.
    pub async fn live_tasks(&self, after: TaskKey, max: usize) -> Result<Vec<LiveTaskSummary>, Error> {
        let rows = self.inner.store.live(after, max).await?;
        let mut views = Vec::with_capacity(rows.len());
        for row in rows {
            views.push(self.inner.live_view(row).await);
        }
        Ok(views)
    }

    /// Stops any caller's task, and answers like [`Engine::cancel`].
    pub async fn cancel_any(&self, id: &TaskId) -> Result<TaskReading, Error> {
        let live = self.inner.find_task(id).await?.ok_or_else(|| Error::TaskNotFound(id.clone()))?;
        let task = live.task.clone();
        let canceled = self.cancel_live(live).await?;
        tracing::info!(task = %id, agent = %task.agent, caller = %task.owner, "an operator canceled a task");
        Ok(canceled)
    }
}

impl EngineState {
    async fn live_view(&self, row: TaskRow) -> LiveTaskSummary {
        let (mut state, mut since) = (row.state.state, row.state.status_at);
        let (mut blocker, mut queue_position) = (None, None);
        if let Some(live) = self.live.get(&row.task.id) {
            let core = live.core.lock();
            (state, since) = (core.row.state, core.row.status_at);
            blocker.clone_from(&core.output.run.blocker);
            drop(core);
            queue_position = self.admission.position(&live);
        }
        let (received_at, first_words) = self.first_words(row.key).await.unwrap_or_default();
        LiveTaskSummary {
            key: row.key,
            task: row.task,
            state,
            since,
            received_at,
            queue_position,
            blocker,
            first_words,
        }
    }

    /// A log begins with the task's first message.
    async fn first_words(&self, key: TaskKey) -> Option<(Option<Timestamp>, String)> {
        let rows = self.store.read(key, Seq(0), 1).await.ok()?;
        let Ok(Event::Received(received)) = Event::decode(rows.first()?.line(Seq(1))?) else { return None };
        let text = received.message.joined_text();
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut first: String = words.chars().take(FIRST_WORDS).collect();
        if first.len() < words.len() {
            first.push('…');
        }
        Some((Some(received.at), first))
    }
}
