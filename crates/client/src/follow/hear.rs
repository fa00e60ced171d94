//! What is heard, put in its place: told once and in order, kept for a moment if it came early, passed over if a picture
//! of the task has shown it.

use switchboard_a2a::{StreamResponse, TaskArtifactUpdate};
use switchboard_egress::SendError;

use super::position::{Position, Step};
use super::{Followed, Origin};
use crate::ClientError;
use crate::connection::Mark;

impl Followed {
    /// Takes in something that was heard.
    pub(super) fn hear(&mut self, frame: StreamResponse, mark: Mark) -> Result<(), ClientError> {
        let is_first = std::mem::take(&mut self.is_silent);
        let Mark { id, after, retry, size } = mark;
        self.weigh(&frame, size)?;
        self.come_back = retry.or(self.come_back);
        let position = id.as_deref().filter(|_| self.is_numbered).and_then(|id| Position::parse(id, after));
        let is_reply = self.told.is_none() && matches!(self.origin, Origin::Sent { .. });
        match frame {
            // Once there is a task, a message is something that is said on the way.
            StreamResponse::Message(_) if is_reply => self.tell_reply(frame),
            frame if self.is_foreign(&frame) => self.tell_aside(frame),
            StreamResponse::Task(now) => {
                let is_older = position.zip(self.position).is_some_and(|(position, last)| position <= last);
                if self.told.is_some() && is_older {
                    return Ok(());
                }
                (self.position, self.last_id) = (position.or(self.position), id.or(self.last_id.take()));
                (self.is_doubtful, self.overlap) = (false, None);
                self.catch_up(now);
                self.put_due();
            }
            update if self.is_numbered => return self.hear_numbered(position, update, id),
            // An end is compared anyway.
            update if is_first && !self.ends(&update) => self.compare(update, id),
            update => self.hear_update(update, id),
        }
        Ok(())
    }

    /// Takes in an update that has its place.
    fn hear_numbered(
        &mut self,
        position: Option<Position>,
        update: StreamResponse,
        id: Option<String>,
    ) -> Result<(), ClientError> {
        let Some(position) = position else {
            let origin = self.client.shown();
            let why = "an event came without its number".to_owned();
            return self.lost_for(why, ClientError::Lost { origin, error: SendError::Broken });
        };
        match self.position.map(|last| position.step(last)) {
            Some(Step::Again) => {}
            Some(Step::Next) => {
                self.early.goes_on();
                self.put((position, update, id));
                self.put_due();
            }
            // The task itself comes before anything else about it.
            Some(Step::Jump) | None => {
                let is_further = !self.early.is_empty();
                self.early.keep(position, update, id);
                if is_further {
                    self.doubt();
                }
            }
        }
        Ok(())
    }

    /// Takes in an update that has no number.
    pub(super) fn hear_update(&mut self, update: StreamResponse, id: Option<String>) {
        self.last_id = id.or(self.last_id.take());
        // Saying the same of an artifact again is saying nothing.
        if matches!(&update, StreamResponse::ArtifactUpdate(update) if self.has_told(update)) {
            return;
        }
        match (update, &mut self.overlap) {
            (StreamResponse::ArtifactUpdate(update), Some(overlap)) => {
                for update in overlap.pass(update) {
                    self.tell(StreamResponse::ArtifactUpdate(update));
                }
            }
            (StreamResponse::StatusUpdate(update), Some(overlap))
                if overlap.shows(&update) && !update.status.state.is_terminal() => {}
            (update, _) => self.tell_or_confirm(update),
        }
    }

    /// Remembers what came without an event.
    pub(super) fn note(&mut self, Mark { id, after, retry, .. }: Mark) {
        self.come_back = retry.or(self.come_back);
        let Some(id) = id else { return };
        match Position::parse(&id, after).filter(|_| self.is_numbered) {
            None if self.is_numbered => {}
            None => self.last_id = Some(id),
            Some(position) if self.position.is_some_and(|last| position.step(last) == Step::Next) => {
                (self.position, self.last_id) = (Some(position), Some(id));
                self.put_due();
            }
            // It says that something is missing; the event after it will say so too.
            Some(_) => {}
        }
    }

    /// What was to fill a hole has not come. It is asked for, and if it does not come then either, it is missing.
    pub(super) fn doubt(&mut self) {
        match self.early.believed() {
            Some(event) => self.ask_what_was_missed(event),
            None => {
                self.early.forget();
                self.connection = None;
            }
        }
    }

    /// Tells a numbered event whose turn it is.
    pub(super) fn put(&mut self, (position, event, id): (Position, StreamResponse, Option<String>)) {
        (self.position, self.last_id) = (Some(position), id);
        self.tell_or_confirm(event);
    }

    /// Tells what has waited for what was told just now.
    pub(super) fn put_due(&mut self) {
        while self.errand.is_none()
            && let Some(event) = self.early.due(self.position)
        {
            self.put(event);
        }
    }

    /// Nobody who numbers events needs to be asked whether they were all, unless some are missing.
    fn tell_or_confirm(&mut self, event: StreamResponse) {
        let is_sure = self.is_numbered && !self.is_doubtful;
        match self.ends(&event) && !is_sure {
            true => self.confirm(event, 0),
            false => self.tell(event),
        }
    }

    /// Whether an artifact was told exactly like this.
    fn has_told(&self, update: &TaskArtifactUpdate) -> bool {
        let mut told = self.told.iter().flat_map(|task| &task.artifacts);
        let is_finished = !update.last_chunk || self.finished.contains(&update.artifact.artifact_id);
        !update.append && is_finished && told.any(|artifact| *artifact == update.artifact)
    }

    /// Counts what has come. A stream need not end, so what is kept of it has a limit.
    fn weigh(&mut self, frame: &StreamResponse, size: usize) -> Result<(), ClientError> {
        let limit = self.client.peer().limits.task;
        let told = self.told.as_ref().filter(|_| !matches!(frame, StreamResponse::Task(_)));
        match (self.growth.exceeds(told, size, limit), self.task_id()) {
            (true, Some(task)) => Err(ClientError::TaskTooLarge { task, limit }),
            (true, None) => Err(ClientError::TooLarge { origin: self.client.shown(), limit }),
            (false, _) => Ok(()),
        }
    }
}
