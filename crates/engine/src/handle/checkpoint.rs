//! Questions that an agent's work is held by: the one before it begins, which always parks, and every one that comes later,
//! which then has a reviewer, whatever the agent says of it.

use switchboard_a2a::{Json, Message, Metadata, Role, TaskState};

use super::{Stopped, TaskHandle, text_bytes};
use crate::live_task::Core;
use crate::review::{Review, Reviewer};

impl TaskHandle {
    /// Asks before the agent's work begins. Nothing is alive yet that would have to wait in memory, so the task is parked
    /// even if its agent never is. The run returns after it; what comes of the question begins another run.
    pub async fn park_with(
        &self,
        question: Message,
        review: &Review,
        metadata: Option<Metadata>,
    ) -> Result<(), Stopped> {
        let question = Message { role: Role::Agent, ..question };
        self.wait_for_buffer(text_bytes(&question.parts)).await?;
        let mut said = metadata.unwrap_or_default();
        said.merge(&review.metadata().unwrap_or_default());
        let mark = {
            let mut core = self.live.core.lock();
            self.check_run(&core)?;
            if core.output.stop.is_some() {
                return Err(core.observe_stop());
            }
            core.output.run.parks = true;
            self.push_status_of_run(&mut core, review.reviewer.asks_in(), Some(question), Some(said))?
        };
        self.committed(mark).await
    }

    /// From now on every question of this run is answered by this reviewer, and numbered as a checkpoint of its turn.
    pub fn review_questions(&self, review: Review) {
        let mut core = self.live.core.lock();
        if core.turn.is_run(self.run) {
            core.output.run.checkpoints = Some(Box::new(review));
        }
    }

    /// Waits until all that was said so far is committed.
    pub async fn commit(&self) -> Result<(), Stopped> {
        let mark = {
            let core = self.live.core.lock();
            self.check_run(&core)?;
            core.output.pushed
        };
        if mark == 0 { Ok(()) } else { self.committed(mark).await }
    }

    /// What the task's metadata say under a key, as committed.
    pub fn metadata(&self, key: &str) -> Option<Json> {
        self.live.core.lock().fold.task.metadata.as_ref()?.get(key).cloned()
    }
}

impl Core {
    /// A status of the run as it is told: a question may be a checkpoint, with a reviewer and a state that follow from that.
    pub(super) fn as_checkpoint(&self, state: TaskState, metadata: Option<Metadata>) -> (TaskState, Option<Metadata>) {
        let Some(review) = self.output.run.checkpoints.as_ref().filter(|_| state.is_interrupted()) else {
            return (state, metadata);
        };
        let checkpoint = Some(self.fold.kernel.checkpoint.saturating_add(1));
        let mut said = metadata.unwrap_or_default();
        said.merge(&Review { checkpoint, ..(**review).clone() }.metadata().unwrap_or_default());
        let state = if review.reviewer == Reviewer::Operator { review.reviewer.asks_in() } else { state };
        (state, Some(said))
    }
}
