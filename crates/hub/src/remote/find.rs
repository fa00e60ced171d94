//! Finds the remote task of a message that was perhaps sent, at an agent that does not recognise repetitions.

use switchboard_a2a::{ListRequest, Message, MessageId, StreamResponse, Task, TaskId, TaskState};
use switchboard_client::{CallContext, ClientError};

use super::RemoteParts;
use super::outage::is_outage;
use super::outgoing;
use super::saved::{Attached, Sending};
use super::turn::RemoteTurn;
use crate::registry::BreakerPermit;

/// Tasks of the newest page.
const PAGE: u32 = 50;

/// The newest messages of a task. Some agents give none unless they are asked for them.
const HISTORY: u32 = 100;

/// States in which an agent has work, or waits for an answer.
const LIVE: [TaskState; 4] =
    [TaskState::Working, TaskState::Submitted, TaskState::InputRequired, TaskState::AuthRequired];

/// What became of a message.
pub(super) enum Found {
    /// The remote task that has it.
    Arrived(Attached),
    /// It has surely not arrived.
    NotSent,
    Unknown,
}

impl RemoteTurn<'_> {
    /// With a permit of the breaker, which it may not need.
    pub(super) async fn find(&self, sending: &Sending, permit: &BreakerPermit<'_>) -> Result<Found, ClientError> {
        if let Some(answered) = &sending.answers {
            return self.find_answer(sending, answered, permit).await;
        }
        let mut ended = self.notified_ends().await.into_iter().filter_map(|end| match end {
            StreamResponse::Task(task) => Some((task.id, task.context_id)),
            StreamResponse::StatusUpdate(update) => Some((update.task_id, update.context_id)),
            _ => None,
        });
        // Those of earlier turns' tasks come late sometimes.
        if let Some((task, context)) = ended.find(|(task, _)| !sending.before.contains(task)) {
            return Ok(Found::Arrived(sending.attach(task, context)));
        }
        let page = match self.called(permit, self.parts.client.list(&self.context, newest(None)).await) {
            Ok(page) => page,
            Err(error) if is_outage(&error) => return Err(error),
            // Agents of version 0.3 have no such list.
            Err(_) => return Ok(Found::Unknown),
        };
        let found = page.tasks.into_iter().find(|task| self.is_in(task, sending.turn));
        Ok(found.map_or(Found::Unknown, |task| Found::Arrived(sending.attach(task.id, task.context_id))))
    }

    /// An answer is in the history of its task, or the task has gone on without waiting.
    async fn find_answer(
        &self,
        sending: &Sending,
        answered: &Attached,
        permit: &BreakerPermit<'_>,
    ) -> Result<Found, ClientError> {
        let read = self.parts.client.get(&self.context, &answered.task, Some(HISTORY)).await;
        let now = match self.called(permit, read) {
            Ok(now) => now,
            Err(error) if is_outage(&error) => return Err(error),
            Err(_) => return Ok(Found::Unknown),
        };
        let has_arrived = self.is_in(&now, sending.turn) || !now.status.state.is_interrupted();
        match has_arrived {
            true => Ok(Found::Arrived(sending.attach(now.id, now.context_id))),
            false if now.history.is_empty() => Ok(Found::Unknown),
            false => Ok(Found::NotSent),
        }
    }

    fn is_in(&self, task: &Task, turn: u64) -> bool {
        has_message(task, &outgoing::message_id(self.task.id(), turn))
    }

    /// The ends of remote tasks that push notifications have told, the newest first.
    pub(super) async fn notified_ends(&self) -> Vec<StreamResponse> {
        match &self.parts.callbacks {
            Some(callbacks) => callbacks.ends(self.task.id()).await,
            None => Vec::new(),
        }
    }
}

impl RemoteParts {
    /// The live remote task that a message of ours has begun, if the agent lists it. Agents of version 0.3 list nothing.
    pub(crate) async fn live_task_of(
        &self,
        context: &CallContext,
        here: &TaskId,
        turn: u64,
    ) -> Result<Option<TaskId>, ClientError> {
        let id = outgoing::message_id(here, turn);
        for state in LIVE {
            match self.client.list(context, newest(Some(state))).await {
                Ok(page) => {
                    if let Some(found) = page.tasks.into_iter().find(|task| has_message(task, &id)) {
                        return Ok(Some(found.id));
                    }
                }
                Err(error) if is_outage(&error) => return Err(error),
                Err(_) => return Ok(None),
            }
        }
        Ok(None)
    }
}

fn newest(status: Option<TaskState>) -> ListRequest {
    ListRequest {
        context_id: None,
        status,
        page_size: Some(PAGE),
        page_token: None,
        history_length: Some(HISTORY),
        status_timestamp_after: None,
        include_artifacts: false,
        tenant: None,
    }
}

fn has_message(task: &Task, id: &MessageId) -> bool {
    let mut messages = task.history.iter().chain(&task.status.message);
    messages.any(|message: &Message| message.message_id == *id)
}
