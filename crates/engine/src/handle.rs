//! What an agent works with while it runs: status, artifacts, questions, saved state. Terminal events are in `terminal`.

mod checkpoint;
mod conversation;
mod remark;
mod save_at_shutdown;
mod say;
mod terminal;
mod unread;

use std::sync::Arc;

use switchboard_a2a::{
    Artifact, ArtifactId, ContextId, Json, Message, Metadata, Part, Role, Task, TaskArtifactUpdate, TaskId, TaskState,
};

use crate::engine::{EngineState, state_label};
use crate::event::{Event, Received, Usage};
use crate::ids::{AgentName, CallerId, Seq};
use crate::live_task::{Core, LiveTask, RunProgress};
use crate::output::{push, push_status};
use crate::review::Review;
use crate::store::Phase;
pub(crate) use save_at_shutdown::SaveAtShutdown;
pub use save_at_shutdown::ShutdownSave;

/// A running turn's hold on its task. Clones share it.
#[derive(Clone)]
pub struct TaskHandle {
    pub(crate) engine: Arc<EngineState>,
    pub(crate) live: Arc<LiveTask>,
    /// The run this handle was given to.
    /// A clone that an evicted run left behind cannot write into the run that took over.
    pub(crate) run: u64,
}

/// Why a call on a handle did nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stopped {
    /// A cancellation was requested, or the deadline or idle limit has passed.
    #[error("the task is being stopped")]
    Canceled,
    /// The task has already ended, or waits for an answer.
    #[error("the task has already ended or is waiting for an answer")]
    Ended,
    /// The question was settled elsewhere: there is no answer, and the turn goes on.
    #[error("the question was settled elsewhere")]
    Settled,
    /// A task never enters this state again.
    #[error("a task that has begun cannot become {}", state_label(*.0))]
    IllegalState(TaskState),
    /// The task grew beyond a limit; says which.
    #[error("{0}")]
    TooLarge(String),
    /// Another owner has taken the task over.
    #[error("the task is no longer run here")]
    Lost,
}

impl TaskHandle {
    /// The task's id.
    pub fn id(&self) -> &TaskId {
        &self.live.task.id
    }

    /// The conversation's id.
    pub fn context_id(&self) -> &ContextId {
        &self.live.task.context
    }

    /// Who serves the task.
    pub fn agent(&self) -> &AgentName {
        &self.live.task.agent
    }

    /// Whose task it is.
    pub fn caller(&self) -> &CallerId {
        &self.live.task.owner
    }

    /// The task as it is committed now.
    pub fn snapshot(&self) -> Task {
        self.live.core.lock().task()
    }

    /// Reports WORKING with a message.
    pub async fn status(&self, text: impl Into<String>) -> Result<(), Stopped> {
        let message = Message::text(Role::Agent, text);
        self.wait_for_buffer(text_bytes(&message.parts)).await?;
        self.push_status(TaskState::Working, Some(message), None).map(drop)
    }

    /// WORKING without a message.
    pub async fn working(&self) -> Result<(), Stopped> {
        self.wait_for_buffer(0).await?;
        self.push_status(TaskState::Working, None, None).map(drop)
    }

    /// Adds to the answer, one text artifact named `answer`.
    /// The end of the turn adds an empty chunk marked `lastChunk`, so that a reader that concatenates chunks does not
    /// see the answer twice.
    pub async fn text(&self, delta: impl Into<String>) -> Result<(), Stopped> {
        let delta = delta.into();
        self.wait_for_buffer(delta.len()).await?;
        let mut core = self.live.core.lock();
        let begun = core.output.run.text_artifact.clone();
        let artifact_id = begun.clone().unwrap_or_else(ArtifactId::generate);
        let artifact = Artifact { artifact_id: artifact_id.clone(), ..Artifact::text(delta).named("answer") };
        self.push_artifact(&mut core, artifact, (begun.is_some(), false), None)?;
        core.output.run.text_artifact = Some(artifact_id);
        Ok(())
    }

    /// Produces a whole artifact.
    pub async fn artifact(&self, artifact: Artifact) -> Result<(), Stopped> {
        self.chunk(artifact, false, true, None).await
    }

    /// Produces a chunk of an artifact: the first with `append` false, the last with `last` true. The metadata is the
    /// event's; the artifact has its own.
    pub async fn chunk(
        &self,
        artifact: Artifact,
        append: bool,
        last: bool,
        metadata: Option<Metadata>,
    ) -> Result<(), Stopped> {
        self.wait_for_buffer(text_bytes(&artifact.parts)).await?;
        self.push_artifact(&mut self.live.core.lock(), artifact, (append, last), metadata)
    }

    /// Asks the caller and waits for the answer. After a restart, or after a long wait, the answer comes to a new
    /// `run` instead, with [`crate::Cause::Answer`]. [`Stopped::Settled`] if there will be none.
    pub async fn ask(&self, question: impl Into<String>) -> Result<Message, Stopped> {
        self.ask_message(Message::text(Role::Agent, question)).await
    }

    /// Asks with a message of any parts.
    pub async fn ask_message(&self, question: Message) -> Result<Message, Stopped> {
        self.ask_in(TaskState::InputRequired, question, None).await.map(|answer| answer.message.clone())
    }

    /// Asks for credentials and waits for the message that says they are there.
    pub async fn authorize(&self, explanation: impl Into<String>) -> Result<Message, Stopped> {
        let question = Message::text(Role::Agent, explanation);
        self.ask_in(TaskState::AuthRequired, question, None).await.map(|answer| answer.message.clone())
    }

    /// Asks with a message of any parts, and says who may answer and until when: INPUT_REQUIRED of the caller, and of an
    /// operator AUTH_REQUIRED, which keeps the caller's stream open. The answer comes with its decision.
    pub async fn ask_with(&self, question: Message, review: &Review) -> Result<Arc<Received>, Stopped> {
        self.ask_in(review.reviewer.asks_in(), question, review.metadata()).await
    }

    async fn ask_in(
        &self,
        state: TaskState,
        question: Message,
        metadata: Option<Metadata>,
    ) -> Result<Arc<Received>, Stopped> {
        let mark = self.push_status(state, Some(question), metadata)?;
        self.committed(mark).await?;
        let (asked, may_park) = {
            let core = self.live.core.lock();
            (core.fold.kernel.last_stop, self.live.may_park(&core))
        };
        let hosted = self.live.hosted.as_ref().filter(|_| !may_park);
        let _asking = hosted.map(|hosted| hosted.asking.acquire());
        self.live
            .wait_for(|core| {
                if self.is_lost(core) {
                    return Some(Err(Stopped::Lost));
                }
                if core.is_done() || core.output.stop.is_some() {
                    return Some(Err(core.observe_stop()));
                }
                // An answer whose turn still waits for a permit is not delivered yet.
                let has_permit = core.turn.owns(core.row.fence) && core.row.phase == Phase::Running;
                let answered = has_permit && !core.row.state.is_interrupted();
                if answered && core.fold.kernel.last_stop == asked && core.fold.is_settled() {
                    core.turn.set_progress(RunProgress::Settled);
                    return Some(Err(Stopped::Settled));
                }
                let answer = core.fold.kernel.current.as_ref().filter(|current| current.seq > asked && answered);
                let answer = answer.map(|current| current.received.clone())?;
                core.turn.set_progress(RunProgress::Working);
                Some(Ok(answer))
            })
            .await
    }

    /// Puts something by that survives a restart; the next turn finds it in [`crate::Turn::saved`]. It is queued for the
    /// next commit: what must not happen before it is stored needs [`Self::save_committed`].
    pub async fn save(&self, value: &impl serde::Serialize) -> Result<(), Stopped> {
        self.push_saved(value).await.map(drop)
    }

    /// The same, and returns once it is committed. To be used before an effect outside, such as starting a process or
    /// calling another server: a crash in between must not leave an effect that the next turn knows nothing of.
    /// [`Stopped::Canceled`] if the task is to stop before the commit: the effect must not happen then.
    pub async fn save_committed(&self, value: &impl serde::Serialize) -> Result<(), Stopped> {
        let mark = self.push_saved(value).await?;
        self.committed_or_stopped(mark).await
    }

    /// Waits for a commit before an effect outside.
    async fn committed_or_stopped(&self, mark: u64) -> Result<(), Stopped> {
        let stop_or_commit = |core: &mut Core| match core.output.stop {
            Some(_) => Some(Err(core.observe_stop())),
            None => core.committed(mark),
        };
        self.live.wait_for(stop_or_commit).await
    }

    async fn push_saved(&self, value: &impl serde::Serialize) -> Result<u64, Stopped> {
        let value = Json::from_serialize(value).map_err(|error| Stopped::TooLarge(error.to_string()))?;
        self.wait_for_buffer(value.as_str().len()).await?;
        self.push(&mut self.live.core.lock(), Event::Saved(value))
    }

    /// Reports the usage so far, in all; also while the task is being stopped. A cost that is no amount of money counts as
    /// none.
    pub async fn usage(&self, usage: Usage) -> Result<(), Stopped> {
        let usage = usage.clamped();
        self.wait_for_buffer(0).await?;
        let mut core = self.live.core.lock();
        self.push(&mut core, Event::Used(usage))?;
        core.output.usage = Some(usage);
        Ok(())
    }

    /// Waits for the next message that came while the turn was running.
    pub async fn next_message(&self) -> Result<Message, Stopped> {
        self.live
            .wait_for(|core| {
                if self.is_lost(core) || core.is_done() {
                    return Some(Err(Stopped::Lost));
                }
                if core.output.stop.is_some() {
                    return Some(Err(core.observe_stop()));
                }
                if core.turn.progress() == RunProgress::Over {
                    // The turn is over but for its return; what is unread is the next one's.
                    return Some(Err(Stopped::Ended));
                }
                if core.output.state.is_interrupted() && self.live.may_park(core) {
                    // Nothing can be taken while it waits for an answer. What came before the question stays.
                    return None;
                }
                let taken = core.output.taken;
                let next = core.next_unread()?;
                let (seq, message) = (next.seq, next.received.message.clone());
                let pushed = self.push(core, Event::Joined(seq));
                core.output.taken = if pushed.is_ok() { seq } else { taken };
                Some(pushed.map(|_| message))
            })
            .await
    }

    /// The number of the message that the run has got last. It names the message, whatever id its sender gave it.
    pub fn last_message(&self) -> Seq {
        let core = self.live.core.lock();
        let current = core.fold.kernel.current.as_ref().map_or(0, |current| current.seq);
        Seq(core.output.taken.max(current))
    }

    /// Resolves when the task is to stop. Select over this and the work. The run cannot complete the task after that.
    pub async fn canceled(&self) {
        let stopped = |core: &mut Core| {
            let must_stop = core.output.stop.is_some() || core.is_done() || core.turn.lost().is_some();
            must_stop.then(|| self.observe_stop(core))
        };
        self.live.wait_for(stopped).await;
    }

    /// Whether the task is to stop. Once this has said so, the run cannot complete the task any more.
    pub fn is_canceled(&self) -> bool {
        let core = &mut self.live.core.lock();
        let must_stop = self.must_stop(core);
        if must_stop {
            self.observe_stop(core);
        }
        must_stop
    }

    pub(crate) fn observe_stop(&self, core: &mut Core) {
        // A run that is over observes nothing for the one that took over.
        if core.turn.is_run(self.run) && core.output.stop.is_some() {
            core.observe_stop();
        }
    }

    /// Whether the task is to stop or has ended. One that was only lost with its server is neither: the next server
    /// recovers it.
    pub fn is_over(&self) -> bool {
        let core = self.live.core.lock();
        core.output.stop.is_some() || core.is_done()
    }

    pub(crate) fn must_stop(&self, core: &Core) -> bool {
        core.output.stop.is_some() || core.is_done() || self.is_lost(core)
    }

    /// Whether the run this handle belongs to is over, or its task has been taken away.
    fn is_lost(&self, core: &Core) -> bool {
        !core.turn.is_run(self.run)
    }

    /// Backpressure: waits until the output buffer takes so many more bytes; a single larger event is taken alone.
    pub(crate) async fn wait_for_buffer(&self, more: usize) -> Result<(), Stopped> {
        let settings = &self.engine.settings;
        self.live
            .wait_for(|core| {
                if self.is_lost(core) {
                    return Some(Err(if core.is_done() { Stopped::Ended } else { Stopped::Lost }));
                }
                let (bytes, events) = core.output.in_flight;
                let (bytes, events) = (core.output.batch.bytes() + bytes, core.output.batch.len() + events);
                let fits = bytes + more <= settings.uncommitted_bytes && events < settings.uncommitted_events;
                (fits || events == 0).then_some(Ok(()))
            })
            .await
    }

    pub(crate) async fn committed(&self, mark: u64) -> Result<(), Stopped> {
        self.live.wait_for(|core| core.committed(mark)).await
    }

    /// Adds a status to the run's output; says which count of committed events will include it.
    pub(crate) fn push_status(
        &self,
        state: TaskState,
        message: Option<Message>,
        metadata: Option<Metadata>,
    ) -> Result<u64, Stopped> {
        let mut core = self.live.core.lock();
        self.check_run(&core)?;
        if core.output.stop.is_some() && !state.is_terminal() {
            return Err(core.observe_stop());
        }
        self.push_status_of_run(&mut core, state, message, metadata)
    }

    fn push_status_of_run(
        &self,
        core: &mut Core,
        state: TaskState,
        message: Option<Message>,
        metadata: Option<Metadata>,
    ) -> Result<u64, Stopped> {
        let (state, metadata) = core.as_checkpoint(state, metadata);
        let mark = push_status(&self.engine, &self.live, core, state, message, metadata)?;
        if state.is_interrupted() {
            core.turn.set_progress(RunProgress::Asking);
        } else if core.turn.progress().has_asked() {
            core.turn.set_progress(RunProgress::Working);
        }
        Ok(mark)
    }

    fn check_run(&self, core: &Core) -> Result<(), Stopped> {
        if core.turn.is_run(self.run) {
            return Ok(());
        }
        self.engine.count_refused_write();
        Err(if core.is_done() { Stopped::Ended } else { Stopped::Lost })
    }

    fn push_artifact(
        &self,
        core: &mut Core,
        artifact: Artifact,
        (append, last_chunk): (bool, bool),
        metadata: Option<Metadata>,
    ) -> Result<(), Stopped> {
        let event = Event::ArtifactUpdate(TaskArtifactUpdate {
            task_id: self.id().clone(),
            context_id: self.context_id().clone(),
            artifact,
            append,
            last_chunk,
            metadata,
        });
        self.push(core, event)?;
        core.output.has_artifact = true;
        let output = &mut core.output;
        if let Some(Event::ArtifactUpdate(update)) = output.batch.events.last() {
            output.run.produced.add(&update.artifact, append);
        }
        Ok(())
    }

    pub(crate) fn push(&self, core: &mut Core, event: Event) -> Result<u64, Stopped> {
        self.check_run(core)?;
        push(&self.engine, &self.live, core, event)
    }
}

impl Core {
    /// The run has observed that the task is to stop.
    pub(crate) fn observe_stop(&mut self) -> Stopped {
        if let Some(driven) = self.turn.driven_mut() {
            driven.stop_observed = true;
        }
        Stopped::Canceled
    }

    /// Whether the event that makes up this count is committed, or never will be; nothing while that is open.
    fn committed(&self, mark: u64) -> Option<Result<(), Stopped>> {
        match self.turn.lost() {
            // The event of a mark is the one before it.
            _ if self.output.dropped.contains(&(mark - 1)) => Some(Err(Stopped::Lost)),
            _ if self.output.committed >= mark => Some(Ok(())),
            Some(_) if self.is_done() => Some(Err(Stopped::Ended)),
            Some(_) => Some(Err(Stopped::Lost)),
            // Ended by another writer: output that is not being written by now is never stored.
            None if self.is_done() && self.output.in_flight == (0, 0) => Some(Err(Stopped::Ended)),
            None => None,
        }
    }
}

/// The bulk of what parts will take in the log. Raw bytes are longer there, but never alone beyond an event's limit.
fn text_bytes(parts: &[Part]) -> usize {
    parts.iter().filter_map(Part::as_text).map(str::len).sum()
}
