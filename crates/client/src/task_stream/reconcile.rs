//! Reconciles the stream with the stored task: when a subscription does not begin with the task, after a hole in the
//! sequence numbers, and before a terminal event is emitted.

use std::time::Duration;

use switchboard_a2a::{ErrorKind, StreamResponse, Task, TaskId, TaskState};

use super::deduplicate::Deduplicator;
use super::reorder::NumberedEvent;
use super::state::{Machine, Why};
use super::{GapReason, catch_up};
use crate::ClientError;

/// How often a terminal event is confirmed again: some agents store more slowly than they stream.
const MAX_CONFIRMATIONS: u32 = 3;

/// The task as the agent has it now.
type Fetched = Result<Task, ClientError>;

impl Machine {
    /// Before the first update of a subscription that does not begin with the task: only a snapshot taken after the
    /// subscription contains everything that was missed.
    pub(super) fn compare(&mut self, update: StreamResponse, id: Option<String>) {
        let Some(task) = self.task_id() else { return self.on_update(update, id) };
        self.fetch(task, Duration::ZERO, Why::Compare { update, id });
    }

    pub(super) fn on_compared(
        &mut self,
        update: StreamResponse,
        id: Option<String>,
        now: Fetched,
    ) -> Result<(), ClientError> {
        match now {
            Ok(now) => {
                self.cursor.overlap = Some(Deduplicator::new(self.emitted.task.as_ref(), &now));
                self.catch_up(now);
            }
            // The terminal event will be confirmed instead.
            Err(error) => {
                tracing::debug!(%error, "what was missed cannot be asked for");
                self.cursor.needs_confirmation = true;
            }
        }
        if !self.is_over() && !self.is_past(&update) {
            self.on_update(update, id);
        }
        Ok(())
    }

    /// Whether a status without a message repeats an emitted one. Some agents begin a subscription with it.
    fn is_past(&self, event: &StreamResponse) -> bool {
        let (StreamResponse::StatusUpdate(update), Some(emitted)) = (event, &self.emitted.task) else { return false };
        let is_bare = update.status.message.is_none() && update.metadata.is_none();
        let is_later = matches!(emitted.status.state, TaskState::Unspecified | TaskState::Submitted);
        let is_same = update.metadata.is_none() && !catch_up::is_other(&emitted.status, &update.status);
        is_same || is_bare && !is_later && self.cursor.overlap.is_some()
    }

    /// Fetches the task after events before this one were lost.
    pub(super) fn compare_after_gap(&mut self, (position, event, id): NumberedEvent) {
        let about = match &event {
            StreamResponse::StatusUpdate(update) => Some(update.task_id.clone()),
            StreamResponse::ArtifactUpdate(update) => Some(update.task_id.clone()),
            StreamResponse::Task(_) | StreamResponse::Message(_) => None,
        };
        match self.task_id().or(about) {
            // The first event of all need not be the task.
            Some(task) if self.cursor.position.is_some() || !position.is_first() => {
                self.fetch(task, Duration::ZERO, Why::CompareAfterGap((position, event, id)));
            }
            _ => self.emit_numbered((position, event, id)),
        }
    }

    /// An ended task is emitted from its snapshot. Otherwise it is not known up to which event the snapshot goes, so
    /// the gap stays until the terminal event.
    pub(super) fn on_gap_compared(
        &mut self,
        event: NumberedEvent,
        task: TaskId,
        now: Fetched,
    ) -> Result<(), ClientError> {
        match now {
            Ok(now) if now.status.state.is_terminal() => self.catch_up(now),
            _ => {
                let id = event.2.as_deref().unwrap_or_default();
                let last = self.cursor.last_id.as_deref().unwrap_or("the beginning");
                self.emit_gap(task, GapReason::Unknown(format!("nothing came between {last} and {id}")));
                self.cursor.needs_confirmation = true;
                self.emit_numbered(event);
                self.emit_reordered();
            }
        }
        Ok(())
    }

    /// Confirms a terminal event with the stored task before it is emitted.
    pub(super) fn confirm(&mut self, terminal: StreamResponse, attempt: u32) {
        let Some(task) = self.task_id() else { return self.emit(terminal) };
        let wait = if attempt == 0 { None } else { self.rules.retries.backoff(attempt, None) };
        self.fetch(task, wait.unwrap_or_default(), Why::Confirm { terminal, attempt });
    }

    pub(super) fn on_confirmed(
        &mut self,
        terminal: StreamResponse,
        attempt: u32,
        now: Fetched,
    ) -> Result<(), ClientError> {
        let state = match &terminal {
            StreamResponse::StatusUpdate(update) => update.status.state,
            _ => TaskState::Unspecified,
        };
        let (why, may_change) = match now {
            Ok(mut now) if now.status.state == state => {
                // Not every agent keeps the message and the metadata of its events with the task.
                if let StreamResponse::StatusUpdate(update) = &terminal {
                    catch_up::keep_message(&update.status, &mut now.status);
                    if let Some(metadata) = &update.metadata {
                        now.metadata.get_or_insert_default().merge(metadata);
                    }
                }
                self.catch_up(now);
                if !self.is_over() {
                    self.emit(terminal);
                }
                return Ok(());
            }
            // The agent may store more slowly than it streams.
            Ok(now) => (format!("it still has it as {}", now.status.state.as_str()), true),
            Err(error) => {
                let is_odd = matches!(error.error_kind(), Some(ErrorKind::Internal | ErrorKind::TaskNotFound));
                (error.to_string(), is_odd)
            }
        };
        if self.cursor.needs_confirmation && may_change && attempt < MAX_CONFIRMATIONS {
            self.confirm(terminal, attempt + 1);
            return Ok(());
        }
        if self.cursor.needs_confirmation
            && let Some(task) = self.task_id()
        {
            self.emit_gap(task, GapReason::Unknown(why));
        }
        self.emit(terminal);
        Ok(())
    }
}
