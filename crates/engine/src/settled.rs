//! A question that was settled elsewhere: the task goes on without an answer from its caller.
//!
//! An agent that has asked on behalf of another server learns there that it need not wait any longer. Settling is an
//! inbox append that is checked like an answer, so of an answer and a settlement exactly one ends the wait. An answer
//! that comes after it is an ordinary message.

use std::sync::Arc;

use switchboard_a2a::TaskId;

use crate::append::PendingAppend;
use crate::engine::{Engine, EngineState};
use crate::error::Error;
use crate::event::Event;
use crate::handle::TaskHandle;
use crate::ids::Seq;
use crate::live_task::{Core, LiveTask, RunProgress};
use crate::submit::takes_messages;
use crate::turn::Wakeup;

impl Engine {
    /// Ends a task's wait for the answer to a question, which is the number of the status that asked it. The turn goes on
    /// with [`crate::Cause::Settled`]. [`Error::QuestionClosed`] if something else has ended the wait before;
    /// [`Error::NotReviewer`] for a gate's question, which only its reviewer settles.
    pub async fn settled(&self, id: &TaskId, question: Seq) -> Result<(), Error> {
        let live = self.inner.find_task(id).await?.ok_or_else(|| Error::TaskNotFound(id.clone()))?;
        let engine = self.inner.clone();
        // Spawned: memory has to follow the append, whatever becomes of the caller.
        self.inner.work.spawn(async move { engine.settle(live, question).await }).await?
    }
}

impl TaskHandle {
    /// Ends the wait for the question that this run is asking, because it need not be answered any more. Says whether there
    /// was one; [`Error::QuestionClosed`] if something else was first, which the call that asks is about to say.
    pub async fn settle(&self) -> Result<bool, Error> {
        let asked = self.live.wait_for(|core| {
            if self.must_stop(core) || core.turn.progress() != RunProgress::Asking {
                return Some(None);
            }
            // Until it is committed it has no number. Once it is closed it is not open under any.
            let is_uncommitted = core.output.state.is_interrupted() && !core.row.state.is_interrupted();
            (!is_uncommitted).then_some(Some(Seq(core.fold.kernel.last_stop)))
        });
        let Some(question) = asked.await else { return Ok(false) };
        let (engine, live) = (self.engine.clone(), self.live.clone());
        self.engine.work.spawn(async move { engine.settle(live, question).await }).await??;
        Ok(true)
    }
}

impl EngineState {
    async fn settle(self: Arc<Self>, live: Arc<LiveTask>, question: Seq) -> Result<(), Error> {
        self.link_children_of_parked(&live).await;
        let mut wakeup = Wakeup::default();
        let decide = |core: &mut Core| -> Result<PendingAppend, Error> {
            wakeup.undo(core);
            core.check_open(&live, question)?;
            // What it asks about has not begun here, so nothing elsewhere can have settled it.
            if core.fold.review().is_some_and(|review| review.is_gate()) {
                return Err(Error::NotReviewer { agent: live.task.agent.to_string(), question });
            }
            let hosted = takes_messages(&live, core)?;
            wakeup.append(&self, &live, hosted, core, vec![Event::Settled])
        };
        let appended = live.inbox(&self, decide).await;
        if let Err(error) = appended {
            wakeup.undo(&mut live.core.lock());
            return Err(error);
        }
        wakeup.committed(&self, live);
        Ok(())
    }
}

impl Core {
    /// Whether the task waits for the answer to this question and no other.
    pub(crate) fn check_open(&self, live: &LiveTask, question: Seq) -> Result<(), Error> {
        let is_last = self.fold.kernel.last_stop == question.0;
        if is_last && self.row.state.is_interrupted() {
            return Ok(());
        }
        let answer = self.fold.kernel.current.as_ref().filter(|current| is_last && current.seq > question.0);
        let answer = answer.map(|answer| &answer.received);
        let by = answer.and_then(|answer| answer.answered_by(&live.task.owner));
        Err(Error::QuestionClosed { task: live.task.id.clone(), question, by, at: answer.map(|answer| answer.at) })
    }
}
