//! What is done when a connection is lost, refused or over: the best of what the agent has to go on with.

use std::time::Duration;

use switchboard_a2a::extension::IDEMPOTENCY;
use switchboard_a2a::{Error as AgentError, ErrorKind, Operation, Request, SendResponse, StreamResponse, TaskId};
use switchboard_egress::SendError;

use super::{Followed, Gap, Missing, Origin, Update};
use crate::client::Call;
use crate::peer::MOST_PATIENCE;
use crate::{ClientError, Context};

/// Between two questions how a task is: at first, and at most.
const FIRST_LOOK: Duration = Duration::from_millis(500);
const LAST_LOOK: Duration = Duration::from_secs(10);

impl Followed {
    /// The connection has come to its end in order. That is the end of the story only if the task says so.
    pub(super) async fn ended(&mut self) -> Result<(), ClientError> {
        self.connection = None;
        match &self.told {
            Some(task) if task.status.state.is_interrupted() => {
                self.is_over = true;
                Ok(())
            }
            // A stream that says nothing at all: the message is sent the other way, once more only where that is safe.
            None if self.may_send_whole().await => self.send_whole().await,
            _ => {
                let origin = self.client.peer().url.clone();
                let error = ClientError::Lost { origin, error: SendError::Broken };
                self.lost_for("the stream ended before the task did".to_owned(), error)
            }
        }
    }

    /// The connection is torn. Some agents refuse a subscription that way, so one without a word is asked about.
    pub(super) async fn broke_off(&mut self, why: String) -> Result<(), ClientError> {
        tracing::debug!(why, "a stream broke off");
        let error = ClientError::Lost { origin: self.client.peer().url.clone(), error: SendError::Broken };
        let Some(task) = self.task_id().filter(|_| self.is_silent && !self.is_numbered) else {
            return self.lost_for(why, error);
        };
        match self.client.get(&self.context, &task, None).await {
            Ok(now) if now.status.state.is_terminal() => {
                self.connection = None;
                self.catch_up(now);
                Ok(())
            }
            Err(unknown) if self.told.is_none() && unknown.refusal() == Some(ErrorKind::TaskNotFound) => Err(unknown),
            _ => self.lost_for(why, error),
        }
    }

    /// The agent has given up on a connection. Some refuse that way, too.
    pub(super) async fn refused(&mut self, error: ClientError) -> Result<(), ClientError> {
        self.connection = None;
        match self.task_id() {
            Some(task) if self.is_silent && may_still_be_asked_for(&error) => self.ask_for(&task).await,
            Some(_) if self.told.is_some() => self.lost(error),
            None if is_not_offered(&error) => self.send_whole().await,
            _ if error.is_passing() => self.lost(error),
            _ => Err(error),
        }
    }

    fn lost(&mut self, error: ClientError) -> Result<(), ClientError> {
        self.lost_for(error.to_string(), error)
    }

    /// The connection is of no more use. Gives up if that has happened too often without anything new in between.
    pub(super) fn lost_for(&mut self, why: String, error: ClientError) -> Result<(), ClientError> {
        self.connection = None;
        self.early.forget();
        self.attempt += 1;
        if self.attempt > self.client.peer().retries.most.max(1) {
            return Err(error);
        }
        self.ready.push_back(Update::Lost { why, attempt: self.attempt });
        Ok(())
    }

    /// Takes the story up again.
    pub(super) async fn take_up(&mut self) -> Result<(), ClientError> {
        if self.attempt > 0 {
            let retries = &self.client.peer().retries;
            let asked = self.come_back.map(|asked| asked.min(retries.longest.saturating_mul(MOST_PATIENCE)));
            let wait = retries.wait(self.attempt, asked);
            tokio::time::sleep(wait.unwrap_or_default()).await;
        }
        let taken_up = match self.task_id() {
            Some(task) => self.resume(&task).await,
            None if self.is_safe_to_repeat().await => self.begin().await,
            // Nobody knows what has become of the message, and sending it again might do it twice.
            None => return Err(ClientError::Lost { origin: self.client.peer().url.clone(), error: SendError::Broken }),
        };
        match taken_up {
            // Nothing is done by going on that would be done twice, so that silence is no reason to give up.
            Err(error) if error.is_passing() || matches!(error, ClientError::Timeout { .. }) => self.lost(error),
            taken_up => taken_up,
        }
    }

    /// Agents that number their events have streams for sure: theirs was cut off, and is begun again.
    async fn may_send_whole(&self) -> bool {
        !self.is_numbered && matches!(self.origin, Origin::Sent { .. }) && self.is_safe_to_repeat().await
    }

    async fn is_safe_to_repeat(&self) -> bool {
        self.client.declares(&self.context, IDEMPOTENCY).await
    }

    /// Sends the message and opens the first connection.
    pub(super) async fn begin(&mut self) -> Result<(), ClientError> {
        let Origin::Sent { request, key } = &self.origin else { return Ok(()) };
        let request = Request::Send((**request).clone());
        let call = Call { key: Some(key), ..Call::new(Operation::SendStreamingMessage, request) };
        let opened = self.client.connect(&self.context, call).await;
        self.connection = Some(opened?);
        Ok(())
    }

    /// Sends the message the other way and waits for all of the answer.
    pub(super) async fn send_whole(&mut self) -> Result<(), ClientError> {
        let Origin::Sent { request, key } = &self.origin else { return Ok(()) };
        let context = Context { idempotency_key: Some(key.clone()), ..self.context.clone() };
        let answer = self.client.send(&context, (**request).clone()).await?;
        match answer {
            SendResponse::Message(message) => self.tell_reply(StreamResponse::Message(message)),
            SendResponse::Task(task) => {
                let state = task.status.state;
                self.is_over = state.is_terminal() || state.is_interrupted();
                self.is_polling = !self.is_over;
                self.tell(StreamResponse::Task(task));
            }
        }
        Ok(())
    }

    /// Opens a connection to a task that is known, or falls back to asking how it is.
    pub(super) async fn resume(&mut self, task: &TaskId) -> Result<(), ClientError> {
        let request = Request::Subscribe { id: task.clone(), tenant: None };
        let last_event_id = self.last_id.as_deref();
        let call = Call { last_event_id, ..Call::new(Operation::SubscribeToTask, request) };
        match self.client.connect(&self.context, call).await {
            Ok(connection) => {
                (self.connection, self.is_silent) = (Some(connection), true);
                Ok(())
            }
            Err(error) if may_still_be_asked_for(&error) => self.ask_for(task).await,
            Err(error) => Err(error),
        }
    }

    /// Asks how a task is that cannot be subscribed to: ended ones never can, and some agents know no subscriptions.
    async fn ask_for(&mut self, task: &TaskId) -> Result<(), ClientError> {
        match self.client.get(&self.context, task, None).await {
            Ok(now) => {
                self.is_polling = true;
                self.catch_up(now);
                Ok(())
            }
            Err(error) if error.refusal().is_none() || self.told.is_none() => Err(error),
            Err(error) => {
                let missing = Missing::Unknown(error.to_string());
                Err(ClientError::Gap(Gap { task: task.clone(), missing }))
            }
        }
    }

    /// Asks how the task is, after a while.
    pub(super) async fn look(&mut self) -> Result<(), ClientError> {
        let Some(task) = self.task_id() else { return Ok(()) };
        let usual = FIRST_LOOK.saturating_mul(1 << self.looks.min(5)).min(LAST_LOOK);
        tokio::time::sleep(self.client.peer().limits.poll.unwrap_or(usual)).await;
        let now = match self.client.get(&self.context, &task, None).await {
            Ok(now) => now,
            Err(error) if error.is_passing() || matches!(error, ClientError::Timeout { .. }) => {
                return self.lost(error);
            }
            Err(error) => return Err(error),
        };
        let before = self.ready.len();
        self.catch_up(now);
        self.looks = if self.ready.len() > before { 0 } else { self.looks.saturating_add(1) };
        self.attempt = 0;
        Ok(())
    }
}

/// The agent has no streams. Where there is not even a place for them, nobody can have taken the message.
pub(super) fn is_not_offered(error: &ClientError) -> bool {
    matches!(error.refusal(), Some(ErrorKind::UnsupportedOperation | ErrorKind::MethodNotFound))
        || matches!(error, ClientError::NotA2a { status: 404 | 405 | 501, .. })
}

/// The task may well be there though it cannot be subscribed to. Agents of version 0.3 say so in many ways.
fn may_still_be_asked_for(error: &ClientError) -> bool {
    let kinds = [
        ErrorKind::UnsupportedOperation,
        ErrorKind::MethodNotFound,
        ErrorKind::TaskNotFound,
        ErrorKind::InvalidParams,
        ErrorKind::Internal,
    ];
    matches!(error, ClientError::Agent(AgentError { kind, .. }) if kinds.contains(kind))
        || matches!(error, ClientError::NotA2a { status: 404 | 405 | 501, .. })
}
