//! Questions that say who may answer them, and what happens if no answer comes in time.
//!
//! It stands in the metadata of the status that asks, so it is in the log, and the task shows it for as long as the
//! question is open. What a caller sends is never read for it.

use serde::{Deserialize, Serialize};
use switchboard_a2a::{Json, Metadata, Task, TaskState, TaskStatusUpdate, Timestamp};

use crate::event::Event;
use crate::fold::Fold;
use crate::ids::Seq;
use crate::reason::metadata_of;

/// Metadata key of what a question says about its answer.
pub const QUESTION_KEY: &str = "switchboard/question";

/// Who answers a question, and what becomes of it otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Review {
    /// Who may answer.
    pub reviewer: Reviewer,
    /// The message whose turn asks, by its number.
    pub turn: Seq,
    /// The skill that it asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// The mode under which it has to ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// How far what it asks for reaches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub radius: Option<String>,
    /// Which of the turn's questions it is, where a turn has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<u32>,
    /// When `then` happens, if that is before the question timeout and the task's deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// What happens at that time.
    #[serde(default)]
    pub then: ExpiryAction,
}

/// Who may answer a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Reviewer {
    /// The task's owner, and operators of its agent.
    Caller,
    /// Operators of its agent alone; messages of the owner stay unread meanwhile.
    Operator,
}

impl Reviewer {
    /// The state that its questions are asked in. AUTH_REQUIRED keeps the caller's stream open.
    pub(crate) fn asks_in(self) -> TaskState {
        match self {
            Self::Caller => TaskState::InputRequired,
            Self::Operator => TaskState::AuthRequired,
        }
    }
}

/// What happens to a question whose own time is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ExpiryAction {
    /// The task fails.
    #[default]
    Fail,
    /// The turn goes on as if a reviewer had approved.
    Approve,
    /// The turn goes on as if a reviewer had rejected.
    Reject,
    /// The question stays open until the question timeout.
    Escalate,
}

/// What a reviewer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// Yes.
    Approve,
    /// No.
    Reject,
    /// Yes, as the message says instead.
    Modify,
    /// Neither: the message is the answer.
    Answer,
}

/// A verdict as it stands with the message that brought it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// The verdict.
    pub verdict: Verdict,
    /// The message whose turn had asked, by its number; of a question that says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<Seq>,
    /// The skill that it had asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
}

impl Review {
    /// A question that this reviewer answers, of the turn on this message.
    pub fn by(reviewer: Reviewer, turn: Seq) -> Self {
        let (skill, mode, radius, checkpoint) = (None, None, None, None);
        Self { reviewer, turn, skill, mode, radius, checkpoint, expires_at: None, then: ExpiryAction::Fail }
    }

    /// Whether it stands before the work of its turn, which has not begun: a gate's.
    pub fn is_gate(&self) -> bool {
        self.mode.is_some() && self.checkpoint.is_none()
    }

    /// The metadata of a status that asks.
    pub fn metadata(&self) -> Option<Metadata> {
        metadata_of(QUESTION_KEY, self)
    }

    /// What the status says in its metadata, if it asks and says so.
    pub(crate) fn of_event(event: &Event) -> Option<Self> {
        match event {
            Event::StatusUpdate(update) => Self::of_status(update),
            _ => None,
        }
    }

    /// What a status says of its answer, if it asks and says so.
    pub fn of_status(update: &TaskStatusUpdate) -> Option<Self> {
        Self::of(update.status.state, update.metadata.as_ref())
    }

    /// What a task's open question says of its answer, if there is one and it says so.
    pub fn of_task(task: &Task) -> Option<Self> {
        Self::of(task.status.state, task.metadata.as_ref())
    }

    pub(crate) fn of(state: TaskState, metadata: Option<&Metadata>) -> Option<Self> {
        let said = metadata.filter(|_| state.is_interrupted())?.get(QUESTION_KEY)?;
        Some(Self::read(said))
    }

    /// What cannot be read is for an operator: a question must not open because it was written wrongly.
    fn read(said: &Json) -> Self {
        serde_json::from_str(said.as_str()).unwrap_or_else(|error| {
            tracing::error!(%error, "a question's {QUESTION_KEY} cannot be read, so an operator has to answer it");
            Self::by(Reviewer::Operator, Seq(0))
        })
    }
}

impl Fold {
    /// What the open question says about its answer, if there is one and it says so.
    pub(crate) fn review(&self) -> Option<Review> {
        Review::of_task(&self.task)
    }

    /// Whether only an operator may answer the open question.
    pub(crate) fn is_for_operator(&self) -> bool {
        self.review().is_some_and(|review| review.reviewer == Reviewer::Operator)
    }
}
