//! Background tasks, which decide whether a turn is over.
//!
//! A result is not always the last one: commands and subagents may still run in the background, and when one of them
//! ends the model is notified, which gives another result. That may happen even if none is open when the result comes.
//! The program reports when it is idle if an environment variable asks for it; in versions that do not, the turn is
//! over as soon as no task is open.

use serde_json::Value;

use crate::adapters::json::{list, text};

#[derive(Debug, Default)]
pub(super) struct Background {
    /// Whether any task runs in the background.
    open: bool,
    /// Whether the model is about to be notified of a task that ended.
    due: bool,
    /// Whether the program waits for us; nothing if it does not say.
    idle: Option<bool>,
}

impl Background {
    /// A line of type `system`; `answered` if there has been a result.
    pub(super) fn update(&mut self, line: &Value, has_result: bool) {
        match text(line, "subtype") {
            "background_tasks_changed" => self.open = !list(line, "tasks").is_empty(),
            // The model is not notified of a stopped task. One that ends while the model works is reported in that
            // turn, or after it, before the program is idle.
            "task_notification" if has_result && matches!(text(line, "status"), "completed" | "failed") => {
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

    pub(super) fn result_received(&mut self) {
        self.due = false;
    }

    /// Whether no other result can follow.
    pub(super) fn is_over(&self) -> bool {
        !self.open && !self.due && self.idle != Some(false)
    }
}
