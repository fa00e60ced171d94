//! Incoming events: ordering by sequence number, the reorder buffer, and deduplication against snapshots.

use switchboard_a2a::{StreamResponse, TaskArtifactUpdate};

use super::position::{Position, Step};
use super::reorder::NumberedEvent;
use super::{Origin, TaskStream};
use crate::ClientError;
use crate::event_stream::EventMeta;

impl TaskStream {
    pub(super) fn on_event(&mut self, frame: StreamResponse, meta: EventMeta) -> Result<(), ClientError> {
        let is_first = std::mem::take(&mut self.awaits_first_event);
        let EventMeta { id, after, retry, size } = meta;
        self.check_size(&frame, size)?;
        self.retry_after = retry.or(self.retry_after);
        let position = id.as_deref().filter(|_| self.is_numbered).and_then(|id| Position::parse(id, after));
        let is_reply = self.emitted.is_none() && matches!(self.origin, Origin::Sent { .. });
        match frame {
            // Once there is a task, a message is not the reply.
            StreamResponse::Message(_) if is_reply => self.emit_reply(frame),
            frame if self.is_foreign(&frame) => self.emit_unrelated(frame),
            StreamResponse::Task(now) => {
                let step = position.zip(self.position).map(|(position, last)| position.step(last));
                if self.emitted.is_some() && step == Some(Step::Duplicate) {
                    return Ok(());
                }
                (self.position, self.last_id) = (position.or(self.position), id.or(self.last_id.take()));
                (self.needs_confirmation, self.overlap) = (false, None);
                self.catch_up(now);
                self.emit_reordered();
            }
            update if self.is_numbered => return self.on_numbered_update(position, update, id),
            // A terminal event is confirmed anyway.
            update if is_first && !self.ends(&update) => self.compare(update, id),
            update => self.on_update(update, id),
        }
        Ok(())
    }

    /// Handles an update with a sequence number.
    fn on_numbered_update(
        &mut self,
        position: Option<Position>,
        update: StreamResponse,
        id: Option<String>,
    ) -> Result<(), ClientError> {
        let Some(position) = position else {
            return self.connection_lost_because("an event came without its number".to_owned(), self.broken());
        };
        match self.position.map(|last| position.step(last)) {
            Some(Step::Duplicate) => {}
            Some(Step::Next) => {
                self.reorder.reset();
                self.emit_numbered((position, update, id));
                self.emit_reordered();
            }
            // Without a position the task has to come first.
            Some(Step::Gap) | None => {
                let is_further = !self.reorder.is_empty();
                self.reorder.keep(position, update, id);
                if is_further {
                    self.on_gap_timeout();
                }
            }
        }
        Ok(())
    }

    /// Handles an update without a sequence number.
    pub(super) fn on_update(&mut self, update: StreamResponse, id: Option<String>) {
        self.last_id = id.or(self.last_id.take());
        // Some agents repeat an artifact as it is.
        if matches!(&update, StreamResponse::ArtifactUpdate(update) if self.has_emitted(update)) {
            return;
        }
        match (update, &mut self.overlap) {
            (StreamResponse::ArtifactUpdate(update), Some(overlap)) => {
                for update in overlap.pass(update) {
                    self.emit(StreamResponse::ArtifactUpdate(update));
                }
            }
            (StreamResponse::StatusUpdate(update), Some(overlap))
                if overlap.contains(&update) && !update.status.state.is_terminal() => {}
            (update, _) => self.emit_or_confirm(update),
        }
    }

    /// Handles an id or a retry time without an event.
    pub(super) fn on_keep_alive(&mut self, EventMeta { id, after, retry, .. }: EventMeta) {
        self.retry_after = retry.or(self.retry_after);
        let Some(id) = id else { return };
        match Position::parse(&id, after).filter(|_| self.is_numbered) {
            None if self.is_numbered => {}
            None => self.last_id = Some(id),
            Some(position) if self.position.is_some_and(|last| position.step(last) == Step::Next) => {
                (self.position, self.last_id) = (Some(position), Some(id));
                self.emit_reordered();
            }
            // A hole; the next event will show it too.
            Some(_) => {}
        }
    }

    /// The events of a hole have not come: reconnects to get them, and if that was done, treats them as lost.
    pub(super) fn on_gap_timeout(&mut self) {
        match self.reorder.confirmed_gap() {
            Some(event) => self.compare_after_gap(event),
            None => {
                self.reorder.clear();
                self.stream = None;
            }
        }
    }

    pub(super) fn emit_numbered(&mut self, (position, event, id): NumberedEvent) {
        (self.position, self.last_id) = (Some(position), id);
        self.emit_or_confirm(event);
    }

    /// Emits buffered events that are in order now.
    pub(super) fn emit_reordered(&mut self) {
        while self.pending.is_none()
            && let Some(event) = self.reorder.pop_next(self.position)
        {
            self.emit_numbered(event);
        }
    }

    /// Terminal events need no confirmation if sequence numbers show that none is missing.
    fn emit_or_confirm(&mut self, event: StreamResponse) {
        let is_sure = self.is_numbered && !self.needs_confirmation;
        match self.ends(&event) && !is_sure {
            true => self.confirm(event, 0),
            false => self.emit(event),
        }
    }

    /// Whether an artifact was emitted exactly like this.
    fn has_emitted(&self, update: &TaskArtifactUpdate) -> bool {
        let mut emitted = self.emitted.iter().flat_map(|task| &task.artifacts);
        let is_finished = !update.last_chunk || self.finished.contains(&update.artifact.artifact_id);
        !update.append && is_finished && emitted.any(|artifact| *artifact == update.artifact)
    }

    /// Enforces the size limit.
    fn check_size(&mut self, frame: &StreamResponse, size: usize) -> Result<(), ClientError> {
        let limit = self.client.peer().limits.task;
        let emitted = self.emitted.as_ref().filter(|_| !matches!(frame, StreamResponse::Task(_)));
        match (self.size.exceeds(emitted, size, limit), self.task_id()) {
            (true, Some(task)) => Err(ClientError::TaskTooLarge { task, limit }),
            (true, None) => Err(ClientError::TooLarge { origin: self.client.redacted_url(), limit }),
            (false, _) => Ok(()),
        }
    }
}
