//! The order of all rows of a store: the events of every task, and the journal, which holds what happened outside of tasks.
//!
//! Rows of both have ids of one sequence that rise with commits and are never used twice. So a reader of everything has one
//! cursor, and a store that answers with rows after it leaves none out.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use switchboard_a2a::{TaskId, TaskStatusUpdate, Timestamp};

use super::{EventRow, TaskIdentity};
use crate::event::{self, Event, Received};
use crate::ids::{CallerId, Epoch, Seq, TaskKey};

/// The largest payload of a journal line: it is read with everything else, so it is a message and no document.
pub const JOURNAL_LINE_BYTES: usize = 64 << 10;

/// A place in the order of all rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position {
    /// Orders the rows of a store that several processes write to; 0 where one does.
    pub major: u64,
    /// The row.
    pub row: i64,
    /// The last event of the row that counts as read; 0 in a journal line.
    pub seq: Seq,
}

/// Where a reader of all rows stands, so that it survives a restart: the wire form is `epoch.major.row.seq`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FeedCursor {
    /// The epoch the row was written in.
    pub epoch: Epoch,
    /// The row and how much of it was read.
    pub position: Position,
}

impl FeedCursor {
    /// Before the first row.
    pub const BEGINNING: Self = Self { epoch: Epoch(0), position: Position { major: 0, row: 0, seq: Seq(0) } };

    /// Reads `epoch.major.row.seq`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.trim().split('.');
        let epoch = Epoch(numbers.next()?.parse().ok()?);
        let major = numbers.next()?.parse().ok()?;
        let row = numbers.next()?.parse().ok()?;
        let seq = Seq(numbers.next()?.parse().ok()?);
        numbers.next().is_none().then_some(Self { epoch, position: Position { major, row, seq } })
    }
}

impl fmt::Display for FeedCursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Position { major, row, seq } = self.position;
        write!(formatter, "{}.{major}.{row}.{seq}", self.epoch.0)
    }
}

/// Where to begin to read all rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedStart {
    /// With the oldest row there is.
    Oldest,
    /// With the next row to come.
    Now,
    /// After what was read before.
    After(FeedCursor),
}

/// The place of a [`FeedStart`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Located {
    /// The rows after it are to be read.
    pub cursor: FeedCursor,
    /// Rows after the cursor that was asked for may be gone: deleted, or lost with its epoch.
    pub is_gap: bool,
    /// The greatest row that retention has deleted.
    pub evicted_to: Position,
}

/// One row of the order: one commit's events of a task, or a journal line.
#[derive(Debug)]
pub struct FeedRow {
    pub major: u64,
    pub row: i64,
    pub epoch: Epoch,
    pub content: FeedContent,
}

/// What a row holds.
#[derive(Debug)]
pub enum FeedContent {
    Events {
        key: TaskKey,
        task: Arc<TaskIdentity>,
        /// Not visible to callers.
        hidden: bool,
        events: EventRow,
        written: WrittenOnce,
    },
    Journal(JournalLine),
}

/// What the first reader of a row that asks wants to know. It is not kept for others, who decode it: rows stay in memory for a
/// while, and small ones cost less.
#[derive(Debug, Default)]
pub struct WrittenOnce(Mutex<Option<Box<Written>>>);

/// What readers of a row want to know, as the process that wrote it had it in memory: it need not be decoded again.
#[derive(Clone, Debug)]
pub struct Written {
    /// The task's first message, if the row has it.
    pub first: Option<Arc<Received>>,
    /// The terminal event, if the row ends its task; it is the last one.
    pub end: Option<TaskStatusUpdate>,
    /// The status that asks something, if the row ends with one.
    pub question: Option<TaskStatusUpdate>,
}

impl WrittenOnce {
    /// Nothing if the row was read from the store, or somebody has taken it.
    pub fn take(&self) -> Option<Box<Written>> {
        self.0.lock().take()
    }

    pub(crate) fn of(first_seq: Seq, mut events: Vec<Event>) -> Self {
        let first = match events.first() {
            Some(Event::Received(first)) if first_seq == Seq(1) => Some(Arc::clone(first)),
            _ => None,
        };
        let (end, question) = match events.pop() {
            Some(Event::StatusUpdate(end)) if end.status.state.is_terminal() => (Some(end), None),
            Some(Event::StatusUpdate(question)) if question.status.state.is_interrupted() => (None, Some(question)),
            _ => (None, None),
        };
        Self(Mutex::new(Some(Box::new(Written { first, end, question }))))
    }
}

impl FeedRow {
    /// Where a reader stands that has read all of it.
    pub fn cursor(&self) -> FeedCursor {
        let seq = match &self.content {
            FeedContent::Events { events, .. } => events.last_seq(),
            FeedContent::Journal(_) => Seq(0),
        };
        FeedCursor { epoch: self.epoch, position: Position { major: self.major, row: self.row, seq } }
    }

    /// Whether no caller may see it: its task is hidden, or it holds no more than a message that came while its task was
    /// hidden. A reader that keeps up is past that message when its task is shown, so it is shown to no other reader.
    pub fn is_hidden(&self) -> bool {
        match &self.content {
            FeedContent::Events { hidden, events, .. } => {
                let came_hidden = events.lines().next().is_some_and(|(_, line)| event::is_hidden_message(line));
                *hidden || (came_hidden && !events.lines().any(|(_, line)| event::is_sent(line)))
            }
            FeedContent::Journal(_) => false,
        }
    }

    /// The bytes of its events or its payload.
    pub fn size(&self) -> usize {
        match &self.content {
            FeedContent::Events { events, .. } => events.events.len(),
            FeedContent::Journal(line) => line.payload.len(),
        }
    }
}

/// Something that happened outside of a task's log. It holds no secrets: what writes it has redacted them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalLine {
    pub at: Timestamp,
    /// Whose it is; nothing for what concerns the server.
    pub owner: Option<CallerId>,
    /// The task it is about. It may be gone.
    pub task: Option<TaskId>,
    /// Words with dots between, from the general to the particular. Those that begin with `audit.` are kept longer.
    pub topic: String,
    /// JSON of at most [`JOURNAL_LINE_BYTES`].
    pub payload: Bytes,
}

/// A name as one word of a topic: other characters than letters, digits, `-` and `_` become `_`.
pub fn topic_segment(name: &str) -> String {
    let kept = |letter: char| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '_' };
    name.chars().map(kept).collect()
}

/// Rows in order.
#[derive(Debug, Default)]
pub struct FeedPage {
    pub rows: Vec<FeedRow>,
    /// The greatest row that retention has deleted: what was read up to an earlier one may lack rows.
    pub evicted_to: Position,
}

/// Which rows of the logs of some tasks to read.
#[derive(Clone, Debug)]
pub struct LogsQuery {
    pub tasks: Vec<TaskKey>,
    /// Those that hold events after this place, …
    pub after: Position,
    /// … up to this row.
    pub upto: i64,
    pub newest_first: bool,
    pub max_rows: usize,
    /// No more are read once these are passed, but at least one row if there is one.
    pub max_bytes: usize,
}

/// How long journal lines are kept.
#[derive(Clone, Copy, Debug)]
pub struct JournalRetention {
    /// Older ones go, …
    pub before: Timestamp,
    /// … but those of the audit only if they are older than this.
    pub audit_before: Timestamp,
}
