//! How a turn ends a task whose remote agent cannot be reached, refuses, takes too long or has forgotten it: the reason
//! says what the caller may do, and whether the remote task may still be at work.

use std::time::Duration;

use switchboard_a2a::{Json, Message, Metadata, Role, StreamResponse, TaskState};
use switchboard_client::{ClientError, Update};
use switchboard_engine::reason::{REASON_DETAIL_KEY, Reason};
use switchboard_engine::{AgentError, Stopped};

use super::emit::EmitState;
use super::failure_text::{failure_text, log_text};
use super::outage::{is_forgotten, is_outage};
use super::turn::{Link, RemoteTurn};

/// Metadata key of how long a caller should wait before it sends again.
const RETRY_AFTER_KEY: &str = "switchboard/retryAfterMs";

impl RemoteTurn<'_> {
    /// The agent could not be reached, or has refused the message.
    pub(super) async fn give_up_unsent(&self, error: &ClientError) -> Result<(), AgentError> {
        if is_outage(error) && !matches!(error, ClientError::Secret(_)) {
            let retry = self.parts.settings.connect_within;
            let text = format!("{} cannot be reached: {}", self.parts.name, self.failure(error));
            return Ok(self.fail("unavailable", &text, Some(retry)).await?);
        }
        let detail = match error {
            ClientError::Credentials { .. } | ClientError::Secret(_) => "credentials",
            _ => "refused",
        };
        let text = format!("{} has not taken the message: {}", self.parts.name, self.failure(error));
        Ok(self.fail(detail, &text, None).await?)
    }

    /// It is not known whether the message has arrived: the server stopped, or lost the connection, or got an answer that
    /// does not say it.
    pub(super) async fn give_up_unknown(
        &self,
        was_stopped: bool,
        unclear: Option<&ClientError>,
    ) -> Result<(), Stopped> {
        let name = &self.parts.name;
        let what = match (unclear, was_stopped) {
            (Some(error), _) => {
                format!("{name} has neither taken nor refused the message: {}", self.failure(error))
            }
            (None, true) => format!("the server stopped while it sent the message to {name}"),
            (None, false) => format!("the connection to {name} was lost while the message was sent"),
        };
        let text =
            format!("{what}, and it cannot be found out whether it has arrived; look there before you send it again");
        self.task.fail_because(Reason::Interrupted, Some("send_unknown"), text).await
    }

    pub(super) async fn give_up_lost(&self, error: &ClientError) -> Result<(), Stopped> {
        let text = format!("{} cannot be reached any more: {}", self.parts.name, self.failure(error));
        self.fail("unreachable", &text, None).await
    }

    /// The agent was moved since the message was sent: who is at its address now does not know the remote task.
    pub(super) async fn give_up_moved(&self) -> Result<(), Stopped> {
        let text =
            format!("{} is at another address now, and what was sent to the one before is lost", self.parts.name);
        self.fail("remote_lost", &text, None).await
    }

    pub(super) async fn give_up_late(&self) -> Result<(), Stopped> {
        let text = format!("{} has not ended its task in time", self.parts.name);
        self.task.fail_because(Reason::TimedOut, Some("deadline"), text).await
    }

    /// The agent says something about the task that ends the matter. If it no longer knows a task that it has ended, what
    /// it has told of the end counts.
    pub(super) async fn give_up_on(
        &self,
        link: &Link,
        error: &ClientError,
        emit_state: &mut EmitState,
    ) -> Result<(), AgentError> {
        if let (Link::Attached(attached), true) = (link, is_forgotten(error)) {
            let is_its = |end: &StreamResponse| match end {
                StreamResponse::Task(task) => task.id == attached.task,
                StreamResponse::StatusUpdate(update) => update.task_id == attached.task,
                _ => false,
            };
            if let Some(end) = self.notified_ends().await.into_iter().find(is_its) {
                self.emit(emit_state, attached, Update::Event(Box::new(end))).await?;
                return Ok(());
            }
        }
        let text = format!("{} does not go on with its task: {}", self.parts.name, self.failure(error));
        Ok(self.fail("remote_lost", &text, None).await?)
    }

    /// What the caller is told of an error; the whole of it is logged.
    pub(super) fn failure(&self, error: &ClientError) -> String {
        tracing::warn!(
            task = %self.task.id(),
            agent = %self.parts.name,
            error = log_text(error),
            "a call to a remote agent has failed"
        );
        failure_text(error)
    }

    async fn fail(&self, detail: &str, text: &str, retry: Option<Duration>) -> Result<(), Stopped> {
        let mut metadata = Metadata::default();
        if let Ok(detail) = Json::from_serialize(detail) {
            metadata.insert(REASON_DETAIL_KEY, detail);
        }
        let retry = retry.and_then(|retry| u64::try_from(retry.as_millis()).ok());
        if let Some(retry) = retry.and_then(|retry| Json::from_serialize(&retry).ok()) {
            metadata.insert(RETRY_AFTER_KEY, retry);
        }
        let message = Message::text(Role::Agent, text);
        self.task.say(TaskState::Failed, Some(message), Some(metadata)).await
    }
}
