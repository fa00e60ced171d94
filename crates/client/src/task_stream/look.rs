//! A look at the task because something else says that there is news: a push notification, or the reader's own timer.
//! It only says when to look; what is new is told as ever, so a look too many costs a request and never an event.

use std::time::Duration;

use switchboard_a2a::Task;

use super::catch_up;
use super::state::{Machine, Reading, State, Why};
use crate::ClientError;

impl Machine {
    /// Reads the task beside the connection.
    pub(super) fn look(&mut self) {
        if let Some(task) = self.task_id() {
            self.fetch(task, Duration::ZERO, Why::Look);
        }
    }

    /// A task that has stopped is caught up with. What a running one has done may be on its way on the connection; if
    /// the next look finds that nothing has come, the stream connects again.
    pub(super) fn on_looked(&mut self, now: Result<Task, ClientError>) {
        let mut now = match now {
            Ok(now) => now,
            Err(error) => return tracing::debug!(%error, "a look at the task has failed"),
        };
        let state = now.status.state;
        let Some(emitted) = &self.emitted.task else { return self.connect_again() };
        catch_up::keep_message(&emitted.status, &mut now.status);
        let (events, missing) = catch_up::difference(emitted, &self.emitted.messages, &now, self.emitted.is_snapshot);
        if state.is_terminal() || state.is_interrupted() && !events.is_empty() {
            return self.catch_up(now);
        }
        let is_behind = !events.is_empty() || missing.is_some();
        match &mut self.state {
            State::Reading(Reading { is_behind: was_behind, .. }) if *was_behind && is_behind => self.connect_again(),
            State::Reading(reading) => reading.is_behind = is_behind,
            _ => {}
        }
    }

    fn connect_again(&mut self) {
        self.disconnect();
        self.cursor.overlap = None;
        self.cursor.reorder.clear();
        self.cursor.needs_confirmation |= self.emitted.task.is_some() && !self.rules.is_numbered;
    }
}
