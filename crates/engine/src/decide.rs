//! Deciding a question: by an operator, by the owner where the question allows it, or by the time that it has set itself.
//!
//! A decision is an inbox append that is checked like an answer and a settlement, so a question is decided once. What
//! the reviewer writes is a message of the task, with the decision beside it.

use std::sync::Arc;

use switchboard_a2a::{Message, Role, TaskId};

use crate::append::PendingAppend;
use crate::caller::Caller;
use crate::engine::{Engine, EngineState};
use crate::error::Error;
use crate::event::{Event, Received};
use crate::ids::{CallerId, Seq};
use crate::live_task::{Core, LiveTask};
use crate::read::TaskReading;
use crate::review::{Decision, Verdict};
use crate::submit::takes_messages;
use crate::turn::Wakeup;

/// What a reviewer answers.
#[derive(Clone, Debug)]
pub struct ReviewAnswer {
    /// The verdict.
    pub verdict: Verdict,
    /// What the agent is told.
    pub message: Message,
}

impl Engine {
    /// Answers a question, which is the number of the status that asked it. For operators of the task's agent; its owner
    /// may answer where the question leaves that to the caller. The same answer of the same reviewer again is no error;
    /// [`Error::QuestionClosed`] if anything else has ended the wait before.
    pub async fn answer(&self, by: &Caller, id: &TaskId, question: Seq, answer: ReviewAnswer) -> Result<(), Error> {
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
    ) -> Result<(), Error> {
        let may_override = reviewer.as_ref().is_none_or(|(_, may_override)| *may_override);
        let by = reviewer.map(|(by, _)| by);
        let mut wakeup = Wakeup::default();
        let mut is_repeated = false;
        let decide = |core: &mut Core| -> Result<PendingAppend, Error> {
            wakeup.undo(core);
            is_repeated = core.is_decided(question, by.as_ref(), &answer);
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
            let received =
                Received { by: by.clone(), decision: Some(decision), ..Received::new(message, self.clock.now()) };
            let append = wakeup.append(&self, &live, hosted, core, vec![Event::Received(Arc::new(received))])?;
            self.check_size(append.batch.bytes())?;
            self.check_task_size(core, append.batch.bytes())?;
            Ok(append)
        };
        let appended = live.inbox(&self, decide).await;
        if let Err(error) = appended {
            wakeup.undo(&mut live.core.lock());
            return if is_repeated { Ok(()) } else { Err(error) };
        }
        wakeup.committed(&self, live);
        Ok(())
    }
}

impl Core {
    /// Whether this reviewer has given this answer to the question before.
    fn is_decided(&self, question: Seq, by: Option<&CallerId>, answer: &ReviewAnswer) -> bool {
        let kernel = &self.fold.kernel;
        let Some(current) = &kernel.current else { return false };
        let is_answer = kernel.last_stop == question.0 && current.seq > question.0;
        let received = &current.received;
        let has_verdict = received.decision.as_ref().is_some_and(|decision| decision.verdict == answer.verdict);
        is_answer && has_verdict && received.by.as_ref() == by && received.message.parts == answer.message.parts
    }
}
