//! Terminal events by the agent: COMPLETED, FAILED, REJECTED, or a direct reply.
//!
//! A cancellation that the run has not observed yet races with its terminal event, and the first commit wins. Once it is
//! observed, completing returns [`Stopped::Canceled`] and the task is CANCELED when the run returns; FAILED and REJECTED
//! are still stored, since they say what went wrong.

use parking_lot::MutexGuard;
use switchboard_a2a::{Artifact, Json, Message, MessageId, Metadata, Part, Role, TaskState};

use super::{Stopped, TaskHandle, text_bytes};
use crate::event::Event;
use crate::final_message::ANSWER_BYTES;
use crate::live_task::Core;
use crate::reason::{REASON_DETAIL_KEY, Reason};

impl TaskHandle {
    /// Ends the task well, with nothing more to say. The final message repeats the text of the last artifact, up to
    /// 32 KiB; for a longer one, or where there is no text, it says which artifact the answer is in.
    pub async fn complete(&self) -> Result<(), Stopped> {
        self.finish(None).await
    }

    /// Ends the task well with an answer: the final status message, and an artifact if there is none yet. One longer
    /// than 32 KiB is always an artifact, and the message begins it and says where the rest is.
    pub async fn complete_with(&self, answer: impl Into<String>) -> Result<(), Stopped> {
        let answer = answer.into();
        self.wait_for_buffer(answer.len()).await?;
        {
            let mut core = self.completing()?;
            if !core.output.has_artifact || answer.len() > ANSWER_BYTES {
                let artifact = Artifact::text(answer.clone()).named("answer");
                self.push_artifact(&mut core, artifact, (false, true), None)?;
            }
        }
        let message = (answer.len() <= ANSWER_BYTES).then(|| Message::text(Role::Agent, answer));
        self.finish(message).await
    }

    /// Ends the task well with a message of any parts, its metadata included. Unlike [`Self::complete_with`] it makes no
    /// artifact: what is to be kept as a result is for [`TaskHandle::artifact`] to say first.
    pub async fn complete_message(&self, message: Message) -> Result<(), Stopped> {
        self.wait_for_buffer(text_bytes(&message.parts)).await?;
        self.finish(Some(message)).await
    }

    async fn finish(&self, message: Option<Message>) -> Result<(), Stopped> {
        let message = {
            let mut core = self.completing()?;
            if let Some(artifact_id) = core.output.run.text_artifact.take() {
                // Marks the end of the streamed answer without saying any of it again.
                let end = Artifact { artifact_id, ..Artifact::text("").named("answer") };
                self.push_artifact(&mut core, end, (true, true), None)?;
            }
            let produced = std::mem::take(&mut core.output.run.produced);
            message.or_else(|| produced.into_text().map(|words| Message::text(Role::Agent, words)))
        };
        self.end(TaskState::Completed, message, None).await
    }

    /// Ends the task badly.
    pub async fn fail(&self, reason: impl Into<String>) -> Result<(), Stopped> {
        let message = Message::text(Role::Agent, reason);
        self.end(TaskState::Failed, Some(message), Reason::AgentError.metadata()).await
    }

    /// Ends the task badly with a message of any parts, its metadata included.
    pub async fn fail_message(&self, message: Message) -> Result<(), Stopped> {
        self.wait_for_buffer(text_bytes(&message.parts)).await?;
        self.end(TaskState::Failed, Some(message), Reason::AgentError.metadata()).await
    }

    /// Ends the task badly for one of the known reasons; `detail` is the agent's own word for it.
    pub async fn fail_because(
        &self,
        reason: Reason,
        detail: Option<&str>,
        text: impl Into<String>,
    ) -> Result<(), Stopped> {
        let mut metadata = reason.metadata().unwrap_or_default();
        if let Some(detail) = detail.and_then(|detail| Json::from_serialize(detail).ok()) {
            metadata.insert(REASON_DETAIL_KEY, detail);
        }
        self.end(TaskState::Failed, Some(Message::text(Role::Agent, text)), Some(metadata)).await
    }

    /// Will not do it.
    pub async fn reject(&self, reason: impl Into<String>) -> Result<(), Stopped> {
        let message = Message::text(Role::Agent, reason);
        self.end(TaskState::Rejected, Some(message), Reason::Rejected.metadata()).await
    }

    /// Answers with a message instead of a task, where the agent's manifest allows it and nothing was produced yet;
    /// otherwise the message is the final status.
    pub async fn reply(&self, parts: Vec<Part>) -> Result<(), Stopped> {
        self.reply_message(Message { parts, ..Message::text(Role::Agent, "") }).await
    }

    /// The same with a whole message: its id, if it has one, metadata and extensions stay; it belongs to this
    /// conversation and to no task.
    pub async fn reply_message(&self, mut message: Message) -> Result<(), Stopped> {
        self.wait_for_buffer(text_bytes(&message.parts)).await?;
        if message.message_id.as_str().is_empty() {
            message.message_id = MessageId::generate();
        }
        let context_id = Some(self.context_id().clone());
        let message = Message { role: Role::Agent, context_id, task_id: None, ..message };
        let direct = {
            let mut core = self.completing()?;
            let is_direct = core.row.hidden && core.output.batch.events.iter().all(|event| !event.kind().is_sent());
            if is_direct {
                let mark = self.push(&mut core, Event::Replied(message.clone()))?;
                core.output.state = TaskState::Completed;
                Some(mark)
            } else {
                None
            }
        };
        match direct {
            Some(mark) => self.committed(mark).await,
            None => self.end(TaskState::Completed, Some(message), None).await,
        }
    }

    async fn end(&self, state: TaskState, message: Option<Message>, metadata: Option<Metadata>) -> Result<(), Stopped> {
        // It may be a forwarded message of another role.
        let message = message.map(|message| Message { role: Role::Agent, ..message });
        let mark = self.push_status(state, message, metadata)?;
        self.committed(mark).await
    }

    /// The task, for a run that may still complete it. One that has observed a cancellation may not: the caller was
    /// promised that the task stops, and would get `NotCancelable`.
    fn completing(&self) -> Result<MutexGuard<'_, Core>, Stopped> {
        let core = self.live.core.lock();
        let stop_observed = core.turn.driven().is_some_and(|driven| driven.stop_observed);
        if core.turn.is_run(self.run) && stop_observed { Err(Stopped::Canceled) } else { Ok(core) }
    }
}
