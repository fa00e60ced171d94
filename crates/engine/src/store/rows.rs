//! The rows of a task: its own, of which there is one, and those of its events, one per commit.
//!
//! Events change a task's row by a patch: what an append does not name stays as another writer has left it.

use std::mem::replace;

use bytes::Bytes;
use switchboard_a2a::{TaskState, Timestamp};

use super::TaskIdentity;
use crate::ids::{Epoch, Fence, Seq, TaskKey};

/// The part of a task's row that events change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowState {
    pub state: TaskState,
    /// When it was entered; strictly increasing per task.
    pub status_at: Timestamp,
    /// Whether a turn waits, runs, or neither.
    pub phase: Phase,
    /// The fence from now on.
    pub fence: Fence,
    /// When a waiting task fails: its question is unanswered, or it is past its deadline.
    pub expires_at: Option<Timestamp>,
    /// Not visible to callers: a direct reply, or a task whose agent has not yet said what it will be.
    pub hidden: bool,
    /// Processes that its turn has lost since the last event that went out on the wire. A graceful shutdown is none.
    pub recoveries: u32,
}

/// What an append changes in a row. What it does not name stays as it is, also where another node wrote it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowPatch {
    pub status: Option<(TaskState, Timestamp)>,
    pub phase: Option<Phase>,
    pub fence: Option<Fence>,
    pub expires_at: Option<Option<Timestamp>>,
    pub hidden: Option<bool>,
    pub recoveries: Option<u32>,
}

impl RowPatch {
    /// What makes `after` of `before`. A new task's row is made of [`RowState::default`].
    pub fn between(before: &RowState, after: &RowState) -> Self {
        fn change<T: Copy + PartialEq>(before: &T, after: &T) -> Option<T> {
            (before != after).then_some(*after)
        }
        Self {
            status: change(&(before.state, before.status_at), &(after.state, after.status_at)),
            phase: change(&before.phase, &after.phase),
            fence: change(&before.fence, &after.fence),
            expires_at: change(&before.expires_at, &after.expires_at),
            hidden: change(&before.hidden, &after.hidden),
            recoveries: change(&before.recoveries, &after.recoveries),
        }
    }

    /// The row with the change made.
    #[must_use]
    pub fn onto(&self, row: &RowState) -> RowState {
        let (state, status_at) = self.status.unwrap_or((row.state, row.status_at));
        RowState {
            state,
            status_at,
            phase: self.phase.unwrap_or(row.phase),
            fence: self.fence.unwrap_or(row.fence),
            expires_at: self.expires_at.unwrap_or(row.expires_at),
            hidden: self.hidden.unwrap_or(row.hidden),
            recoveries: self.recoveries.unwrap_or(row.recoveries),
        }
    }
}

/// Whether a turn waits, runs, or neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Phase {
    /// A message waits for a turn; it has no owner.
    #[default]
    Queued,
    /// A turn that had begun, and was then lost or interrupted, waits for a permit; it has no owner. Unlike a queued one
    /// its agent is asked how to go on, and it goes before those that have not begun.
    Requeued,
    /// A turn runs; its node is the holder.
    Running,
    /// Was running when its node shut down gracefully; it has no owner.
    Interrupted,
    /// Waits for an answer.
    Parked,
    /// Ended.
    Done,
}

impl Phase {
    /// Whether a turn waits for a slot, begun or not.
    pub fn is_queued(self) -> bool {
        matches!(self, Self::Queued | Self::Requeued)
    }
}

/// Which node holds a task's turn, as the node that asks sees it. Only a running turn is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Holder {
    /// None.
    #[default]
    Unheld,
    /// The node that asks.
    This,
    /// Another one that is alive.
    Other,
    /// One that is dead: any node may claim the turn.
    Dead,
}

/// A task's whole row.
#[derive(Clone, Debug)]
pub struct TaskRow {
    /// The store's name of it.
    pub key: TaskKey,
    pub task: TaskIdentity,
    pub state: RowState,
    pub holder: Holder,
    /// The last event, which is also the row's version.
    pub last_seq: Seq,
    /// The bytes of its event rows.
    pub bytes: u64,
    /// Whether it has or had webhooks, which are notified of its events.
    pub watched: bool,
}

/// What tells whether a task has changed since it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskHead {
    pub key: TaskKey,
    pub last_seq: Seq,
    pub fence: Fence,
    pub phase: Phase,
    pub holder: Holder,
}

/// A task as read back.
#[derive(Clone, Debug)]
pub struct LoadedTask {
    pub row: TaskRow,
    /// The newest snapshot, the event it is as of, and the epoch of that event.
    pub snapshot: Option<(Seq, Epoch, Bytes)>,
    /// The event rows after the snapshot; all of them if there is none.
    pub events: Vec<EventRow>,
}

impl LoadedTask {
    /// The bytes of its snapshot and events.
    pub fn size(&self) -> usize {
        let snapshot = self.snapshot.as_ref().map_or(0, |(_, _, snapshot)| snapshot.len());
        snapshot + self.events.iter().map(|row| row.events.len()).sum::<usize>()
    }
}

/// A task that was to be read only if it is small.
#[derive(Clone, Debug)]
pub enum LoadedTaskWithin {
    /// It is, and here it is.
    Whole(Box<LoadedTask>),
    /// It is larger; [`TaskRow::bytes`] says how large.
    Larger(Box<TaskRow>),
}

/// One commit's events of one task.
#[derive(Clone, Debug)]
pub struct EventRow {
    pub row: i64,
    /// The number of its first event.
    pub first_seq: Seq,
    /// How many events it holds.
    pub count: u32,
    /// The epoch it was written in.
    pub epoch: Epoch,
    /// The events, one line each.
    pub events: Bytes,
}

impl EventRow {
    /// The lines of its events with their numbers.
    pub fn lines(&self) -> impl Iterator<Item = (Seq, &[u8])> {
        // Not `split`, which looks at one byte at a time: of a page of short tasks that was a twelfth of the time.
        let ends = memchr::memchr_iter(b'\n', &self.events).chain([self.events.len()]);
        let lines = ends.scan(0, |begin, end| Some(&self.events[replace(begin, end + 1)..end]));
        (self.first_seq.0..).map(Seq).zip(lines)
    }

    /// The number of its last event.
    pub fn last_seq(&self) -> Seq {
        Seq((self.first_seq.0 + u64::from(self.count)).saturating_sub(1))
    }

    /// The line of its last event.
    pub fn last_line(&self) -> &[u8] {
        let begin = memchr::memrchr(b'\n', &self.events).map_or(0, |end| end + 1);
        &self.events[begin..]
    }

    /// The line of one event.
    pub fn line(&self, seq: Seq) -> Option<&[u8]> {
        self.lines().find(|(number, _)| *number == seq).map(|(_, line)| line)
    }
}
