//! Deciding a question: by an operator, by the owner where the question allows it, or by the time that it has set itself.
//!
//! A decision is an inbox append that is checked like an answer and a settlement, so a question is decided once. What
//! the reviewer writes is a message of the task, with the decision beside it.

use std::sync::Arc;

use switchboard_a2a::{Message, Role, TaskId, Timestamp};

use crate::append::PendingAppend;
use crate::caller::Caller;
use crate::engine::{Engine, EngineState};
use crate::error::Error;
use crate::event::{Event, Received};
use crate::ids::{CallerId, Seq, TaskKey};
use crate::live_task::{Core, LiveTask};
use crate::read::TaskReading;
use crate::review::{Decision, Review, Reviewer, Verdict};
use crate::store::TaskRow;
use crate::submit::takes_messages;
use crate::turn::Wakeup;
use crate::watch::events_after;

/// How much of a log is read at a time. An answer is mostly right behind its question.
const LOG_BYTES: usize = 64 << 10;

/// What a reviewer answers.
#[derive(Clone, Debug)]
pub struct ReviewAnswer {
    /// The verdict.
    pub verdict: Verdict,
    /// What the agent is told.
    pub message: Message,
}

/// An answer as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// When it was given.
    pub at: Timestamp,
    /// Whether it was there before, by the same reviewer.
    pub is_repeated: bool,
}

impl Engine {
    /// Answers a question, which is the number of the status that asked it. For operators of the task's agent; its owner
    /// may answer where the question leaves that to the caller. The same answer of the same reviewer again is no error;
    /// [`Error::QuestionClosed`] if anything else has ended the wait before.
    pub async fn answer(
        &self,
        by: &Caller,
        id: &TaskId,
        question: Seq,
        answer: ReviewAnswer,
    ) -> Result<Answered, Error> {
        let live = self.inner.find_task(id).await?.ok_or_else(|| Error::TaskNotFound(id.clone()))?;
        let agent = &live.task.agent;
        let may_override = by.scopes.operates(agent);
        if !may_override && (live.task.owner != by.id || !by.scopes.agents.allows(agent)) {
            return Err(Error::TaskNotFound(id.clone()));
        }
        let (engine, reviewer) = (self.inner.clone(), Some((by.id.clone(), may_override)));
        // Spawned: memory has to follow the append, whatever becomes of the caller.
        self.inner.work.spawn(async move { engine.decide_question(live, question, reviewer, answer).await }).await?
    }

    /// The message that has answered a question; nothing if the question is open, or if its wait has ended without an answer.
    pub async fn answer_to(&self, task: &TaskRow, question: Seq) -> Result<Option<Arc<Received>>, Error> {
        self.inner.answer_to(&task.task.id, Some(task.key), question).await
    }

    /// Stops a task of any caller, and answers like [`Engine::cancel`]. For operators of its agent.
    pub async fn stop(&self, by: &Caller, id: &TaskId) -> Result<TaskReading, Error> {
        let live = self.inner.find_task(id).await?.filter(|live| by.scopes.operates(&live.task.agent));
        let live = live.ok_or_else(|| Error::TaskNotFound(id.clone()))?;
        let task = live.task.clone();
        let stopped = self.cancel_live(live).await?;
        tracing::info!(task = %id, agent = %task.agent, owner = %task.owner, by = %by.id, "an operator stopped a task");
        Ok(stopped)
    }
}

impl EngineState {
    /// Appends a decision and lets the turn go on. Without a reviewer it is made by the time.
    pub(crate) async fn decide_question(
        self: Arc<Self>,
        live: Arc<LiveTask>,
        question: Seq,
        reviewer: Option<(CallerId, bool)>,
        answer: ReviewAnswer,
    ) -> Result<Answered, Error> {
        let may_override = reviewer.as_ref().is_none_or(|(_, may_override)| *may_override);
        let by = reviewer.map(|(by, _)| by);
        self.link_children_of_parked(&live).await;
        let (mut wakeup, mut at) = (Wakeup::default(), Timestamp(0));
        let decide = |core: &mut Core| -> Result<PendingAppend, Error> {
            wakeup.undo(core);
            core.check_open(&live, question)?;
            let hosted = takes_messages(&live, core)?;
            if core.fold.is_for_operator() && !may_override {
                return Err(Error::NotReviewer { agent: live.task.agent.to_string(), question });
            }
            let review = core.fold.review();
            let (turn, skill) = review.map(|review| (review.turn, review.skill)).unzip();
            let decision = Decision { verdict: answer.verdict, turn, skill: skill.flatten() };
            let message = Message {
                task_id: Some(live.task.id.clone()),
                context_id: Some(live.task.context.clone()),
                role: Role::User,
                ..answer.message.clone()
            };
            at = self.clock.now();
            let lets_go_on = turn.is_some() && matches!(answer.verdict, Verdict::Approve | Verdict::Modify);
            let asked = core.fold.kernel.current.as_ref().filter(|_| lets_go_on).map(|current| &current.received);
            let received = Received { by: by.clone(), decision: Some(decision), ..Received::new(message, at) };
            let received = match asked {
                Some(asked) => received.in_place_of(asked),
                None => received,
            };
            let append = wakeup.append(&self, &live, hosted, core, vec![Event::Received(Arc::new(received))])?;
            self.check_size(append.batch.bytes())?;
            self.check_task_size(core, append.batch.bytes())?;
            Ok(append)
        };
        let appended = live.inbox(&self, decide).await;
        if let Err(error) = appended {
            wakeup.undo(&mut live.core.lock());
            return match error {
                Error::QuestionClosed { .. } => self.check_repeated(&live, question, by.as_ref(), &answer).await,
                error => Err(error),
            };
        }
        wakeup.committed(&self, live);
        Ok(Answered { at, is_repeated: false })
    }

    /// Accepts an answer to a closed question if it is the one that has closed it; else the error says who has.
    async fn check_repeated(
        &self,
        live: &LiveTask,
        question: Seq,
        by: Option<&CallerId>,
        answer: &ReviewAnswer,
    ) -> Result<Answered, Error> {
        let key = live.core.lock().key;
        let given = self.answer_to(&live.task.id, key, question).await?;
        if let Some(given) = given.as_ref().filter(|given| given.by.as_ref() == by && answer.is_in(given)) {
            return Ok(Answered { at: given.at, is_repeated: true });
        }
        let by = given.as_ref().and_then(|given| given.answered_by(&live.task.owner));
        Err(Error::QuestionClosed { task: live.task.id.clone(), question, by, at: given.map(|given| given.at) })
    }

    /// The message that has answered a question. Only the log knows it once the task has gone on.
    async fn answer_to(
        &self,
        task: &TaskId,
        key: Option<TaskKey>,
        question: Seq,
    ) -> Result<Option<Arc<Received>>, Error> {
        let (Some(key), Some(before)) = (key, question.0.checked_sub(1)) else { return Ok(None) };
        let (mut read, mut is_for_operator) = (Seq(before), false);
        loop {
            let events = events_after(&self.store.read(key, read, LOG_BYTES).await?, read);
            let Some(last) = events.last() else { return Ok(None) };
            read = last.seq;
            for logged in &events {
                let location = || format!("event {}", logged.seq);
                let event =
                    Event::decode(&logged.line).map_err(|error| Error::damaged_log(task, &location(), &error))?;
                match event {
                    Event::StatusUpdate(update) if logged.seq == question && update.status.state.is_interrupted() => {
                        let review = Review::of_event(&Event::StatusUpdate(update));
                        is_for_operator = review.is_some_and(|review| review.reviewer == Reviewer::Operator);
                    }
                    Event::Received(received)
                        if logged.seq > question && (received.decision.is_some() || !is_for_operator) =>
                    {
                        return Ok(Some(received));
                    }
                    // No question, or the wait has ended without an answer.
                    Event::StatusUpdate(_) | Event::Settled => return Ok(None),
                    _ if logged.seq == question => return Ok(None),
                    _ => {}
                }
            }
        }
    }
}

impl Received {
    /// The same with what came along with the message that the question was asked about: the turn goes on as that was sent,
    /// for its skill and for those media types, whatever its new text is.
    fn in_place_of(self, asked: &Self) -> Self {
        let mut metadata = asked.message.metadata.clone().unwrap_or_default();
        metadata.merge(&self.message.metadata.clone().unwrap_or_default());
        let metadata = (!metadata.is_empty()).then_some(metadata);
        Self {
            message: Message { metadata, ..self.message },
            accepted_output_modes: asked.accepted_output_modes.clone(),
            metadata: asked.metadata.clone(),
            routing: asked.routing.clone(),
            trace: asked.trace.clone(),
            extensions: asked.extensions.clone(),
            ..self
        }
    }
}

impl ReviewAnswer {
    /// Whether a message of the log brought this answer.
    fn is_in(&self, received: &Received) -> bool {
        let has_verdict = received.decision.as_ref().is_some_and(|decision| decision.verdict == self.verdict);
        has_verdict && received.message.parts == self.message.parts
    }
}
