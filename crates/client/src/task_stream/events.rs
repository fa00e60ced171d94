//! Incoming events: ordering by sequence number, the reorder buffer, and deduplication against snapshots.

use switchboard_a2a::{StreamResponse, TaskArtifactUpdate};

use super::position::{Position, Step};
use super::reorder::NumberedEvent;
use super::state::{Machine, Origin, State};
use crate::ClientError;
use crate::event_stream::EventMeta;

impl Machine {
    pub(super) fn on_event(&mut self, frame: StreamResponse, meta: EventMeta) -> Result<(), ClientError> {
        let EventMeta { id, after, retry, size } = meta;
        self.failures.retry_after = retry.or(self.failures.retry_after);
        // It says nothing of how far this connection has come.
        if self.is_foreign(&frame) {
            self.emit_unrelated(frame);
            return Ok(());
        }
        let reading = self.reading().map(std::mem::take);
        let is_first = reading.is_some_and(|reading| reading.awaits_first_event);
        self.check_size(&frame, size)?;
        let position = id.as_deref().filter(|_| self.rules.is_numbered).and_then(|id| Position::parse(id, after));
        let is_reply = self.emitted.task.is_none() && matches!(self.origin, Origin::Sent { .. });
        match frame {
            // Once there is a task, a message is not the reply.
            StreamResponse::Message(_) if is_reply => self.emit_reply(frame),
            StreamResponse::Task(now) => {
                let step = position.zip(self.cursor.position).map(|(position, last)| position.step(last));
                if self.emitted.task.is_some() && step == Some(Step::Duplicate) {
                    return Ok(());
                }
                (self.cursor.position, self.cursor.last_id) =
                    (position.or(self.cursor.position), id.or(self.cursor.last_id.take()));
                (self.cursor.needs_confirmation, self.cursor.overlap) = (false, None);
                self.catch_up(now);
                self.emit_reordered();
            }
            update if self.rules.is_numbered => return self.on_numbered_update(position, update, id),
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
        match self.cursor.position.map(|last| position.step(last)) {
            Some(Step::Duplicate) => {}
            Some(Step::Next) => {
                self.cursor.reorder.reset();
                self.emit_numbered((position, update, id));
                self.emit_reordered();
            }
            // Without a position the task has to come first.
            Some(Step::Gap) | None => {
                let is_further = !self.cursor.reorder.is_empty();
                self.cursor.reorder.keep(position, update, id);
                if is_further {
                    self.on_gap_timeout();
                }
            }
        }
        Ok(())
    }

    /// Handles an update without a sequence number.
    pub(super) fn on_update(&mut self, update: StreamResponse, id: Option<String>) {
        self.cursor.last_id = id.or(self.cursor.last_id.take());
        // Some agents repeat an artifact as it is.
        if matches!(&update, StreamResponse::ArtifactUpdate(update) if self.has_emitted(update)) {
            return;
        }
        match (update, &mut self.cursor.overlap) {
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
        self.failures.retry_after = retry.or(self.failures.retry_after);
        let Some(id) = id else { return };
        match Position::parse(&id, after).filter(|_| self.rules.is_numbered) {
            None if self.rules.is_numbered => {}
            None => self.cursor.last_id = Some(id),
            Some(position) if self.cursor.position.is_some_and(|last| position.step(last) == Step::Next) => {
                (self.cursor.position, self.cursor.last_id) = (Some(position), Some(id));
                self.emit_reordered();
            }
            // A hole; the next event will show it too.
            Some(_) => {}
        }
    }

    /// The events of a hole have not come: reconnects to get them, and if that was done, treats them as lost.
    pub(super) fn on_gap_timeout(&mut self) {
        match self.cursor.reorder.confirmed_gap() {
            Some(event) => self.compare_after_gap(event),
            None => {
                self.cursor.reorder.clear();
                self.disconnect();
            }
        }
    }

    pub(super) fn emit_numbered(&mut self, (position, event, id): NumberedEvent) {
        (self.cursor.position, self.cursor.last_id) = (Some(position), id);
        self.emit_or_confirm(event);
    }

    /// Emits buffered events that are in order now.
    pub(super) fn emit_reordered(&mut self) {
        while !matches!(self.state, State::Calling { .. })
            && let Some(event) = self.cursor.reorder.pop_next(self.cursor.position)
        {
            self.emit_numbered(event);
        }
    }

    /// Terminal events need no confirmation if sequence numbers show that none is missing.
    fn emit_or_confirm(&mut self, event: StreamResponse) {
        let is_sure = self.rules.is_numbered && !self.cursor.needs_confirmation;
        match self.ends(&event) && !is_sure {
            true => self.confirm(event, 0),
            false => self.emit(event),
        }
    }

    /// Whether an artifact was emitted exactly like this.
    fn has_emitted(&self, update: &TaskArtifactUpdate) -> bool {
        let mut emitted = self.emitted.task.iter().flat_map(|task| &task.artifacts);
        let is_finished = !update.last_chunk || self.emitted.finished.contains(&update.artifact.artifact_id);
        !update.append && is_finished && emitted.any(|artifact| *artifact == update.artifact)
    }

    /// Enforces the size limit.
    fn check_size(&mut self, frame: &StreamResponse, size: usize) -> Result<(), ClientError> {
        let limit = self.rules.task_limit;
        let emitted = self.emitted.task.as_ref().filter(|_| !matches!(frame, StreamResponse::Task(_)));
        match (self.emitted.size.exceeds(emitted, size, limit), self.task_id()) {
            (true, Some(task)) => Err(ClientError::TaskTooLarge { task, limit }),
            (true, None) => Err(ClientError::TooLarge { origin: self.rules.url.clone(), limit }),
            (false, _) => Ok(()),
        }
    }
}
