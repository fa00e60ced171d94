//! Reads a question from the log of its task. It is the last status of a task that waits; messages that are not read yet may
//! stand behind it, so the log is read from its end.

use switchboard_a2a::{Message, TaskStatusUpdate, Timestamp};
use switchboard_engine::event::Event;
use switchboard_engine::ids::TaskKey;
use switchboard_engine::store::{EventRow, Store, StoreError, TaskRow};
use switchboard_engine::{Review, Seq};

use crate::remote::fold_of_waiting;

/// Rows that are read back from the end of a log, which costs less than reading the task. A task with more messages behind its question is read from its snapshot.
pub(crate) const STEPS: usize = 16;
/// How a line of a status begins.
const STATUS: &[u8] = br#"{"statusUpdate""#;

/// A status that asks.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) seq: Seq,
    pub(crate) update: TaskStatusUpdate,
    /// What it says of its answer, if it does.
    pub(crate) review: Option<Review>,
    /// The row of the log that it is in.
    pub(crate) events: EventRow,
}

impl Question {
    /// The question that a task waits with; nothing if it does not wait.
    pub(crate) async fn open(store: &dyn Store, row: &TaskRow) -> Result<Option<Self>, StoreError> {
        if !row.state.state.is_interrupted() {
            return Ok(None);
        }
        match before(store, row.key, row.last_seq.plus(1), STEPS).await? {
            Found::Question(question) => return Ok(Some(*question)),
            Found::None => return Ok(None),
            Found::TooFar => {}
        }
        match fold_of_waiting(store, &row.task.id).await? {
            Some(fold) => Self::at(store, row.key, Seq(fold.kernel.last_stop)).await,
            None => Ok(None),
        }
    }

    /// The question of this number; nothing if that event asks nothing.
    pub(crate) async fn at(store: &dyn Store, key: TaskKey, seq: Seq) -> Result<Option<Self>, StoreError> {
        let Some(previous) = seq.0.checked_sub(1) else { return Ok(None) };
        let mut rows = store.read(key, Seq(previous), 1).await?.into_iter();
        let Some(events) = rows.next() else { return Ok(None) };
        let update = events.line(seq).and_then(status);
        Ok(update.and_then(|update| Self::of(seq, update, events)))
    }

    /// The question that a message has answered, by the number of the message, unless it is further away than so many rows.
    pub(crate) async fn answered_by(
        store: &dyn Store,
        key: TaskKey,
        seq: Seq,
        rows: usize,
    ) -> Result<Option<Self>, StoreError> {
        match before(store, key, seq, rows).await? {
            Found::Question(question) => Ok(Some(*question)),
            Found::None | Found::TooFar => Ok(None),
        }
    }

    fn of(seq: Seq, update: TaskStatusUpdate, events: EventRow) -> Option<Self> {
        let is_question = update.status.state.is_interrupted();
        is_question.then(|| Self { seq, review: Review::of_status(&update), update, events })
    }

    /// What it asks; a question may have no words.
    pub(crate) fn message(&self) -> Option<&Message> {
        self.update.status.message.as_ref()
    }

    pub(crate) fn asked_at(&self) -> Timestamp {
        self.update.status.timestamp.unwrap_or(Timestamp(0))
    }
}

enum Found {
    Question(Box<Question>),
    /// The last status before the place asks nothing.
    None,
    /// There is none in the rows that were read.
    TooFar,
}

/// The last status before a place in a log.
async fn before(store: &dyn Store, key: TaskKey, place: Seq, steps: usize) -> Result<Found, StoreError> {
    let mut end = place;
    for _ in 0..steps {
        // The row that has the event before.
        let Some(previous) = end.0.checked_sub(2) else { return Ok(Found::None) };
        let mut rows = store.read(key, Seq(previous), 1).await?.into_iter();
        let Some(events) = rows.next() else { return Ok(Found::None) };
        let last = events.lines().filter(|(seq, line)| *seq < end && line.starts_with(STATUS)).last();
        if let Some((seq, update)) = last.and_then(|(seq, line)| Some((seq, status(line)?))) {
            return Ok(Question::of(seq, update, events).map_or(Found::None, |found| Found::Question(Box::new(found))));
        }
        end = events.first_seq;
    }
    Ok(Found::TooFar)
}

fn status(line: &[u8]) -> Option<TaskStatusUpdate> {
    match Event::decode(line) {
        Ok(Event::StatusUpdate(update)) => Some(update),
        _ => None,
    }
}
