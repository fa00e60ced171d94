//! The fold of a stored log: the only reader of stored events that makes a task of them, from a snapshot where there is one.

use bytes::Bytes;
use switchboard_a2a::{TaskId, TaskStatusUpdate};

use super::Fold;
use crate::engine::EngineState;
use crate::error::Error;
use crate::event::{self, Event};
use crate::ids::{Epoch, Seq, TaskKey};
use crate::store::{EventRow, TaskIdentity};

/// How much of a log is read from the store at a time.
const FOLD_BYTES: usize = 1 << 20;

/// A log that is being folded: the task right after one of its events. The only reader of stored events that makes a
/// task of them. A damaged line is an error with its location, because a task folded around it would be wrong.
pub(crate) struct LogFold {
    id: TaskId,
    pub(crate) fold: Fold,
    /// The last event that is folded.
    pub(crate) seq: Seq,
    /// The epoch of the row that holds it, once one was read.
    pub(crate) epoch: Option<Epoch>,
    /// Bytes of the snapshot and of the events read since.
    pub(crate) snapshot_bytes: usize,
    pub(crate) event_bytes: usize,
    /// Whether artifacts are folded; they are most of what a task has, and a list seldom asks for them.
    pub(crate) artifacts: bool,
}

impl LogFold {
    /// Before the first event.
    pub(crate) fn new(task: &TaskIdentity) -> Self {
        let (id, fold) = (task.id.clone(), Fold::new(task));
        Self { id, fold, seq: Seq(0), epoch: None, snapshot_bytes: 0, event_bytes: 0, artifacts: true }
    }

    /// Continues from a stored snapshot.
    pub(crate) fn from_snapshot(
        task: &TaskIdentity,
        (seq, epoch, snapshot): &(Seq, Epoch, Bytes),
    ) -> Result<Self, Error> {
        let decoded = Fold::from_snapshot(snapshot);
        let fold =
            decoded.map_err(|error| Error::damaged_log(&task.id, &format!("the snapshot of event {seq}"), &error))?;
        let (id, epoch, snapshot_bytes) = (task.id.clone(), Some(*epoch), snapshot.len());
        Ok(Self { id, fold, seq: *seq, epoch, snapshot_bytes, event_bytes: 0, artifacts: true })
    }

    /// Folds the events of a row that are not folded yet, up to and including the event `last`.
    pub(crate) fn apply(&mut self, row: &EventRow, last: Seq) -> Result<(), Error> {
        if row.first_seq > last {
            return Ok(());
        }
        self.epoch = Some(row.epoch);
        let folded = self.seq;
        for (seq, line) in row.lines().skip_while(|(seq, _)| *seq <= folded) {
            if seq > last {
                // The status that follows an answer in the same commit dates the task as of the answer.
                if self.fold.is_answer(last)
                    && let Event::StatusUpdate(update) = self.decode(seq, line)?
                    && let Some(status_at) = update.status.timestamp
                {
                    self.fold.task.status.timestamp = Some(status_at);
                }
                break;
            }
            if self.artifacts || !event::is_artifact(line) {
                match self.decode(seq, line)? {
                    Event::StatusUpdate(TaskStatusUpdate { status, metadata, .. }) => {
                        self.fold.apply_status(seq, status, metadata.as_ref());
                    }
                    event => self.fold.apply(seq, &event),
                }
            }
            self.seq = seq;
            self.event_bytes += line.len();
        }
        Ok(())
    }

    fn decode(&self, seq: Seq, line: &[u8]) -> Result<Event, Error> {
        Event::decode(line).map_err(|error| Error::damaged_log(&self.id, &format!("event {seq}"), &error))
    }
}

impl EngineState {
    /// Folds a stored log up to and including an event.
    pub(crate) async fn fold_up_to(&self, key: TaskKey, log: &mut LogFold, last: Seq) -> Result<(), Error> {
        while log.seq < last {
            let rows = self.store.read(key, log.seq, FOLD_BYTES).await?;
            if rows.is_empty() {
                return Err(Error::TaskNotFound(log.id.clone()));
            }
            for row in &rows {
                log.apply(row, last)?;
            }
        }
        Ok(())
    }
}
