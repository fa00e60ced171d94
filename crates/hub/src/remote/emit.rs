//! Tells the events of a remote task as events of the task here.

use switchboard_a2a::extension::Payload;
use switchboard_a2a::extension::cost::Cost;
use switchboard_a2a::{
    Artifact, Json, Message, Metadata, Role, StreamResponse, Task, TaskArtifactUpdate, TaskState, TaskStatus,
};
use switchboard_client::{GapReason, Update, remaining_parts};
use switchboard_engine::{Cause, Stopped};

use super::saved::{Attached, Saved};
use super::settings::RepliesAs;
use super::translate::{self, GAP_KEY};
use super::turn::RemoteTurn;
use super::usage;

/// Whether there is more to follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Emitted {
    GoOn,
    /// The task has ended, or waits for an answer.
    Over,
}

/// What was told of a remote task so far, as far as the next event depends on it.
#[derive(Default)]
pub(super) struct EmitState {
    /// The status that names the remote task was told.
    pub(super) is_named: bool,
    /// Part of an artifact was missed, so the next event about it is whole.
    gap: Option<String>,
    /// What the agent has last reported that its work has cost.
    cost: Option<Cost>,
}

impl EmitState {
    fn take_cost(&mut self, artifact: &Artifact) {
        if let Some(cost) = Cost::in_artifact(artifact).pop() {
            self.cost = Some(cost);
        }
    }
}

impl RemoteTurn<'_> {
    /// Tells one update of a remote task.
    pub(super) async fn emit(
        &self,
        emit_state: &mut EmitState,
        attached: &Attached,
        update: Update,
    ) -> Result<Emitted, Stopped> {
        match update {
            Update::Lost { why, attempt } => {
                tracing::debug!(task = %self.task.id(), attempt, why, "the connection to a remote task was lost");
                Ok(Emitted::GoOn)
            }
            Update::Gap(gap) => {
                tracing::warn!(task = %self.task.id(), %gap, "events of a remote task are missing");
                emit_state.gap = Some(match gap.missing {
                    GapReason::Artifact(_) => "artifact".to_owned(),
                    GapReason::Forgotten(_) => "forgotten".to_owned(),
                    _ => "unknown".to_owned(),
                });
                Ok(Emitted::GoOn)
            }
            Update::Event(event) => self.emit_event(emit_state, attached, *event).await,
        }
    }

    async fn emit_event(
        &self,
        emit_state: &mut EmitState,
        attached: &Attached,
        event: StreamResponse,
    ) -> Result<Emitted, Stopped> {
        match event {
            StreamResponse::Task(task) => self.emit_snapshot(emit_state, attached, task).await,
            StreamResponse::StatusUpdate(update) => {
                self.emit_status(emit_state, attached, update.status, update.metadata).await
            }
            StreamResponse::ArtifactUpdate(update) => {
                self.emit_artifact(emit_state, attached, update).await?;
                Ok(Emitted::GoOn)
            }
            // A message beside a task says nothing of its state.
            StreamResponse::Message(message) => {
                let status = TaskStatus { state: TaskState::Working, message: Some(message), timestamp: None };
                self.emit_status(emit_state, attached, status, None).await
            }
        }
    }

    /// Tells what a snapshot has beyond what was told: the stream of an answer begins with all that the task has said
    /// before.
    async fn emit_snapshot(
        &self,
        emit_state: &mut EmitState,
        attached: &Attached,
        now: Task,
    ) -> Result<Emitted, Stopped> {
        let before = translate::told(self.task.snapshot(), attached);
        let was_told =
            |message: &Message| before.history.iter().chain(&before.status.message).any(|told| is_same(told, message));
        let is_current = |message: &Message| now.status.message.as_ref().is_some_and(|last| is_same(last, message));
        let is_new = |message: &&Message| message.role == Role::Agent && !is_current(message) && !was_told(message);
        let said: Vec<Message> = now.history.iter().filter(is_new).cloned().collect();
        for message in said {
            let status = TaskStatus { state: TaskState::Working, message: Some(message), timestamp: None };
            self.emit_status(emit_state, attached, status, None).await?;
        }
        for artifact in now.artifacts {
            emit_state.take_cost(&artifact);
            // As it was told, or what is dropped of its parts would count as new.
            let artifact = Artifact { parts: translate::parts(artifact.parts), ..artifact };
            let told = before.artifacts.iter().find(|told| told.artifact_id == artifact.artifact_id);
            let (artifact, append) = match told.map(|told| remaining_parts(&told.parts, &artifact.parts)) {
                Some(Some(rest)) if rest.is_empty() => continue,
                Some(Some(rest)) => (Artifact { parts: rest, ..artifact }, true),
                Some(None) | None => (artifact, false),
            };
            self.task.chunk(translate::artifact(artifact, attached), append, false, None).await?;
        }
        if self.is_answered(&now.status) {
            return Ok(Emitted::GoOn);
        }
        let mut status = now.status;
        if status.state == TaskState::Working {
            status.message = status.message.filter(|message| !was_told(message));
        }
        // A status without a message would replace the one that was told of the same state.
        let is_bare = status.message.is_none() && now.metadata.is_none();
        if is_bare && emit_state.is_named && status.state == before.status.state {
            return Ok(Emitted::GoOn);
        }
        self.emit_status(emit_state, attached, status, now.metadata).await
    }

    /// Whether a snapshot still has the question that this turn answers: some agents begin the stream of an answer with
    /// the task as it was before. The same words in another message are asked again.
    fn is_answered(&self, status: &TaskStatus) -> bool {
        let Cause::Answer { question: Some(question) } = &self.turn.cause else { return false };
        let is_it = |asked: &Message| match (question.message_id.as_str(), asked.message_id.as_str()) {
            ("", _) | (_, "") => asked.joined_text() == question.joined_text(),
            (answered, now) => answered == now,
        };
        status.state.is_interrupted() && status.message.as_ref().is_some_and(is_it)
    }

    async fn emit_artifact(
        &self,
        emit_state: &mut EmitState,
        attached: &Attached,
        update: TaskArtifactUpdate,
    ) -> Result<(), Stopped> {
        emit_state.take_cost(&update.artifact);
        let mut metadata = translate::metadata(update.metadata);
        if !update.append
            && let Some(gap) = emit_state.gap.take()
        {
            note_gap(metadata.get_or_insert_default(), &gap);
        }
        let artifact = translate::artifact(update.artifact, attached);
        self.task.chunk(artifact, update.append, update.last_chunk, metadata).await
    }

    async fn emit_status(
        &self,
        emit_state: &mut EmitState,
        attached: &Attached,
        status: TaskStatus,
        metadata: Option<Metadata>,
    ) -> Result<Emitted, Stopped> {
        let state = match status.state {
            TaskState::Submitted => return Ok(Emitted::GoOn),
            TaskState::Unspecified => TaskState::Working,
            state => state,
        };
        if state.is_terminal() {
            let (manifest, cost) = (&self.parts.manifest, emit_state.cost.take());
            if let Some(used) = usage::total(manifest, &self.task.snapshot(), &status, metadata.as_ref(), cost) {
                // A task here may take several of the remote agent, one for each message that comes meanwhile.
                self.task.usage(attached.used.unwrap_or_default().plus(used)).await?;
            }
        }
        let mut metadata = translate::metadata(metadata);
        let end = state.is_terminal().then_some(state);
        if !emit_state.is_named || end.is_some() {
            let metadata = metadata.get_or_insert_default();
            translate::remote(metadata, self.parts.name.as_str(), Some(attached), end);
            emit_state.is_named = true;
        }
        if (state.is_terminal() || state.is_interrupted())
            && let Some(gap) = emit_state.gap.take()
        {
            note_gap(metadata.get_or_insert_default(), &gap);
        }
        let is_stop = state.is_terminal() || state.is_interrupted();
        if is_stop {
            // The time until an answer does not count, and after the end comes no answer.
            self.task.save(&Saved::Attached(Attached { ended: end.is_some(), ..attached.clone() })).await?;
        }
        let message = status.message.map(|message| translate::message(message, &self.task));
        self.task.say(state, message, metadata).await?;
        Ok(if is_stop { Emitted::Over } else { Emitted::GoOn })
    }

    /// Tells a message in place of a task.
    pub(super) async fn emit_reply(&self, message: Message) -> Result<(), Stopped> {
        self.task.save(&Saved::Replied).await?;
        if self.parts.settings.replies == RepliesAs::Either {
            return self.task.reply_message(translate::message(message, &self.task)).await;
        }
        let mut metadata = Metadata::default();
        translate::remote(&mut metadata, self.parts.name.as_str(), None, Some(TaskState::Completed));
        let message = translate::message(message, &self.task);
        self.task.say(TaskState::Completed, Some(message), Some(metadata)).await
    }
}

/// Some agents give their messages no ids.
fn is_same(told: &Message, message: &Message) -> bool {
    match message.message_id.as_str() {
        "" => told.message_id.as_str().is_empty() && told.joined_text() == message.joined_text(),
        id => told.message_id.as_str() == id,
    }
}

fn note_gap(metadata: &mut Metadata, gap: &str) {
    if let Ok(gap) = Json::from_serialize(gap) {
        metadata.insert(GAP_KEY, gap);
    }
}
