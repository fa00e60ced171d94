//! Where events alone are not to be relied on, the agent is asked how it has the task: when a subscription does not begin
//! with that, when something was lost between two numbers, and before the end is told.

use std::time::Duration;

use switchboard_a2a::{ErrorKind, StreamResponse, Task, TaskId, TaskState};

use super::deduplicate::Deduplicator;
use super::position::Position;
use super::requests::RequestResult;
use super::{Followed, Missing, catch_up};
use crate::ClientError;

/// How often an agent is asked whether a task has ended that it says has: some store more slowly than they stream.
const MAX_CONFIRMATIONS: u32 = 3;

impl Followed {
    /// Before the first update of a subscription that does not begin with the task: what was missed is known only from
    /// a picture, and only one that is taken after the subscription shows all of it.
    pub(super) fn compare(&mut self, update: StreamResponse, id: Option<String>) {
        let Some(task) = self.task_id() else { return self.on_update(update, id) };
        let update = Box::new(update);
        self.fetch_task(task, Duration::ZERO, |now| RequestResult::Compared { update, id, now });
    }

    pub(super) fn on_compared(&mut self, update: StreamResponse, id: Option<String>, now: Result<Task, ClientError>) {
        match now {
            Ok(now) => {
                self.overlap = Some(Deduplicator::new(self.emitted.as_ref(), &now));
                self.catch_up(now);
            }
            // Perhaps it can be asked when it has ended.
            Err(error) => {
                tracing::debug!(%error, "what was missed cannot be asked for");
                self.needs_confirmation = true;
            }
        }
        if !self.is_finished && !self.is_past(&update) {
            self.on_update(update, id);
        }
    }

    /// Whether a status without words is what was told last, or older than that. Some agents begin a subscription so.
    fn is_past(&self, event: &StreamResponse) -> bool {
        let (StreamResponse::StatusUpdate(update), Some(emitted)) = (event, &self.emitted) else { return false };
        let is_bare = update.status.message.is_none() && update.metadata.is_none();
        let is_later = matches!(emitted.status.state, TaskState::Unspecified | TaskState::Submitted);
        let is_same = update.metadata.is_none() && !catch_up::is_other(&emitted.status, &update.status);
        is_same || is_bare && !is_later && self.overlap.is_some()
    }

    /// Something was lost between the last number and this event's.
    pub(super) fn compare_after_gap(&mut self, (position, event, id): (Position, StreamResponse, Option<String>)) {
        let about = match &event {
            StreamResponse::StatusUpdate(update) => Some(update.task_id.clone()),
            StreamResponse::ArtifactUpdate(update) => Some(update.task_id.clone()),
            StreamResponse::Task(_) | StreamResponse::Message(_) => None,
        };
        match self.task_id().or(about) {
            // The first of all events may well not be the task.
            Some(task) if self.position.is_some() || !position.is_first() => {
                let (event, asked) = (Box::new(event), task.clone());
                self.fetch_task(asked, Duration::ZERO, move |now| RequestResult::Missed {
                    position,
                    event,
                    id,
                    task,
                    now,
                });
            }
            _ => self.emit_numbered((position, event, id)),
        }
    }

    /// A task that has ended is told from its picture. Otherwise nobody knows which event the picture goes up to, so what
    /// is missing stays so until the end.
    pub(super) fn on_gap_compared(
        &mut self,
        event: (Position, StreamResponse, Option<String>),
        task: TaskId,
        now: Result<Task, ClientError>,
    ) {
        match now {
            Ok(now) if now.status.state.is_terminal() => self.catch_up(now),
            _ => {
                let id = event.2.as_deref().unwrap_or_default();
                let last = self.last_id.as_deref().unwrap_or("the beginning");
                self.emit_gap(task, Missing::Unknown(format!("nothing came between {last} and {id}")));
                self.needs_confirmation = true;
                self.emit_numbered(event);
                self.emit_reordered();
            }
        }
    }

    /// Compares with how the agent has the task before its end is told.
    pub(super) fn confirm(&mut self, end: StreamResponse, tries: u32) {
        let Some(task) = self.task_id() else { return self.emit(end) };
        let wait = if tries == 0 { None } else { self.client.peer().retries.wait(tries, None) };
        let end = Box::new(end);
        self.fetch_task(task, wait.unwrap_or_default(), move |now| RequestResult::Confirmed { end, tries, now });
    }

    pub(super) fn on_confirmed(&mut self, end: StreamResponse, tries: u32, now: Result<Task, ClientError>) {
        let state = match &end {
            StreamResponse::StatusUpdate(update) => update.status.state,
            _ => TaskState::Unspecified,
        };
        let (why, may_change) = match now {
            Ok(now) if now.status.state == state => {
                self.catch_up(now);
                if !self.is_finished {
                    self.emit(end);
                }
                return;
            }
            // An agent that streams faster than it stores would take back what it has said.
            Ok(now) => (format!("it still has it as {}", now.status.state.as_str()), true),
            Err(error) => {
                let is_odd = matches!(error.refusal(), Some(ErrorKind::Internal | ErrorKind::TaskNotFound));
                (error.to_string(), is_odd)
            }
        };
        if self.needs_confirmation && may_change && tries < MAX_CONFIRMATIONS {
            return self.confirm(end, tries + 1);
        }
        if self.needs_confirmation
            && let Some(task) = self.task_id()
        {
            self.emit_gap(task, Missing::Unknown(why));
        }
        self.emit(end);
    }
}
