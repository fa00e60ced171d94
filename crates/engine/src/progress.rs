//! How far a task has got, in words and numbers: a WORKING status that also says it in `metadata["switchboard/progress"]`.
//!
//! The task's own metadata shows the latest progress while it is WORKING; it is gone once the task asks, takes another
//! message, or ends.

use serde::Serialize;
use switchboard_a2a::{Message, Role, TaskState};

use crate::handle::{Stopped, TaskHandle};
use crate::reason::metadata_of;

/// The key under which progress stands.
pub const PROGRESS_KEY: &str = "switchboard/progress";

/// What an agent says of how far it has got: `Progress::text("reading").percent(40).step(2, 5)`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Progress {
    #[serde(skip_serializing_if = "String::is_empty")]
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    percent: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
enum Step {
    Counted {
        current: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        total: Option<u64>,
    },
    Named(String),
}

impl Progress {
    /// What is being done, for people. An empty text makes a status without a message.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), percent: None, step: None }
    }

    /// How much is done, of a hundred; more is taken as a hundred.
    #[must_use]
    pub fn percent(mut self, percent: u32) -> Self {
        self.percent = Some(percent.min(100));
        self
    }

    /// Which step of how many. No step comes after the last: a larger `current` is taken as `total`. A `total` of 0
    /// means that it is not known.
    #[must_use]
    pub fn step(mut self, current: u64, total: u64) -> Self {
        let total = (total > 0).then_some(total);
        self.step = Some(Step::Counted { current: total.map_or(current, |total| current.min(total)), total });
        self
    }

    /// Which step, by its name.
    #[must_use]
    pub fn named_step(mut self, name: impl Into<String>) -> Self {
        self.step = Some(Step::Named(name.into()));
        self
    }
}

impl TaskHandle {
    /// Says how far it has got: WORKING, with the text as its message and the numbers in its metadata.
    pub async fn progress(&self, progress: Progress) -> Result<(), Stopped> {
        self.wait_for_buffer(0).await?;
        let metadata = metadata_of(PROGRESS_KEY, &progress);
        let message = (!progress.text.is_empty()).then(|| Message::text(Role::Agent, progress.text));
        self.push_status(TaskState::Working, message, metadata).map(drop)
    }
}
