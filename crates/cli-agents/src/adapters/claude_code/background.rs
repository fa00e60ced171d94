//! Whether a turn is over.
//!
//! A result is not always the last one: commands and agents that were sent to the background are still at work, and
//! when one of them is done the model is told, which gives another result. That may even be so when none is open any
//! more as the result comes. The program says when it is idle if it is asked to; versions that do not are believed as
//! soon as nothing is open.

use serde_json::Value;

use super::read::{list, text};

/// What is at work.
#[derive(Debug, Default)]
pub(super) struct Background {
    /// Whether anything is at work in the background.
    open: bool,
    /// Whether the model is about to be told of something that is done.
    due: bool,
    /// Whether the program waits for us; nothing if it does not say.
    idle: Option<bool>,
}

impl Background {
    /// A line of type `system`; `answered` if there has been a result.
    pub(super) fn hear(&mut self, line: &Value, answered: bool) {
        match text(line, "subtype") {
            "background_tasks_changed" => self.open = !list(line, "tasks").is_empty(),
            // What is stopped is not told to the model. What is done while the model works is told in that turn, or
            // after it, before the program is idle.
            "task_notification" if answered && matches!(text(line, "status"), "completed" | "failed") => {
                self.due = true
            }
            "session_state_changed" => {
                let idle = text(line, "state") == "idle";
                self.idle = Some(idle);
                self.due &= idle;
            }
            _ => {}
        }
    }

    /// There is a result.
    pub(super) fn answered(&mut self) {
        self.due = false;
    }

    /// Whether no other result can follow.
    pub(super) fn is_over(&self) -> bool {
        !self.open && !self.due && self.idle != Some(false)
    }
}
