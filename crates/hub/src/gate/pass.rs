//! What has let a held turn begin, in the metadata of a status of its task: with the commit of that status the agent may have
//! begun, and never before.

use serde::{Deserialize, Serialize};
use switchboard_a2a::extension::hitl_mode::Mode;
use switchboard_a2a::{Json, Metadata, Task, TaskState};
use switchboard_engine::{AgentError, Review, Reviewer, Seq, Stopped, TaskHandle};

use super::policies::Wanted;

/// Metadata key of it.
const GATE_KEY: &str = "switchboard/gate";

/// A held turn that may begin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Pass {
    /// The message that the turn began with, by its number.
    turn: Seq,
    mode: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    skill: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    radius: Option<String>,
}

impl Pass {
    /// Of a turn whose skills were approved before.
    pub(super) fn of(turn: Seq, wanted: &Wanted<'_>) -> Self {
        let mode = wanted.review.mode.name().to_owned();
        let radius = wanted.review.radius.map(|radius| radius.name().to_owned());
        Self { turn, mode, skill: wanted.skill.clone(), radius }
    }

    /// Of a turn that this question has held.
    pub(super) fn of_review(asked: &Review, mode: Mode) -> Self {
        let (skill, radius) = (asked.skill.clone(), asked.radius.clone());
        Self { turn: asked.turn, mode: mode.name().to_owned(), skill, radius }
    }

    /// Of the turn that began with this message, if it may begin.
    pub(super) fn of_handle(task: &TaskHandle, turn: Seq) -> Option<Self> {
        Self::read(&task.metadata(GATE_KEY)?, turn)
    }

    /// The same of a task that is looked at.
    pub(super) fn of_task(task: &Task, turn: Seq) -> Option<Self> {
        Self::read(task.metadata.as_ref()?.get(GATE_KEY)?, turn)
    }

    fn read(said: &Json, turn: Seq) -> Option<Self> {
        said.read::<Self>().ok().filter(|pass| pass.turn == turn)
    }

    /// Tells it, and returns once that is committed.
    pub(super) async fn tell(&self, task: &TaskHandle) -> Result<(), AgentError> {
        let said = Json::from_serialize(self).map_err(|error| Stopped::TooLarge(error.to_string()))?;
        let mut metadata = Metadata::default();
        metadata.insert(GATE_KEY, said);
        task.say(TaskState::Working, None, Some(metadata)).await?;
        task.commit().await?;
        self.review_questions(task);
        Ok(())
    }

    /// Has operators answer every question of the turn, if its mode is `compound`.
    pub(super) fn review_questions(&self, task: &TaskHandle) {
        if self.mode == Mode::Compound.name() {
            let (mode, skill, radius) = (Some(self.mode.clone()), self.skill.clone(), self.radius.clone());
            task.review_questions(Review { mode, skill, radius, ..Review::by(Reviewer::Operator, self.turn) });
        }
    }
}
