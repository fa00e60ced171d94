//! A task in memory: the fold of what is committed, and the output that is not yet.
//!
//! There is at most one per task in a process, and it exists only while a turn, a watcher or a request holds it.
//! Everything here follows the log; nothing is ahead of it. What this process does with the task's turn is a state
//! machine of its own (`turn_state`).

mod driven_turn;
mod turn_state;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use switchboard_a2a::{
    ArtifactId, Message, Metadata, Task, TaskId, TaskState, TaskStatus, TaskStatusUpdate, Timestamp,
};
use tokio::sync::Notify;

use crate::batch::Batch;
use crate::blocking_task::BlockingTask;
use crate::delegation::TokenGrant;
use crate::directory::{Hosted, Served};
use crate::event::{Event, LoggedEvent, Usage};
use crate::final_message::ProducedArtifacts;
use crate::fold::{Fold, NumberedMessage};
use crate::ids::{Cursor, Epoch, Seq, TaskKey};
use crate::manifest::Park;
use crate::reason::Reason;
use crate::review::Review;
use crate::store::{Holder, Phase, RowState, TaskIdentity};

pub(crate) use driven_turn::{DrivenTurn, RunProgress};
pub(crate) use turn_state::{Claimed, TurnState};

/// Committed lines kept in memory for watchers; older ones are read from the store.
const TAIL_BYTES: usize = 256 << 10;

/// One task in memory.
pub(crate) struct LiveTask {
    /// Shared with the rows of the feed and the writer of the store.
    pub(crate) task: Arc<TaskIdentity>,
    pub(crate) hosted: Option<Arc<Hosted>>,
    pub(crate) core: Mutex<Core>,
    /// Woken after every commit and whenever else a waiting reader should look again.
    pub(crate) changed: Notify,
    /// Woken when the running turn has output to write or a reason to stop.
    pub(crate) output: Notify,
    /// Held across each append, so that memory follows the log in order.
    pub(crate) writing: tokio::sync::Mutex<()>,
    /// The task that has called it, while that is in memory.
    pub(crate) parent: Mutex<Weak<Self>>,
    /// Live children of a turn that was recovered or woken, held so that they find it here when they end.
    pub(crate) held_children: Mutex<Vec<Arc<Self>>>,
    /// Its conversation was begun with it: until the task is committed nobody else knows the id.
    pub(crate) begins_context: bool,
    /// It may have changed while it was loaded, and has not been compared with the store since. Readers do that first.
    pub(crate) may_be_behind: AtomicBool,
    /// A catch-up with another node's appends is due and has not begun to read.
    pub(crate) catch_up_due: AtomicBool,
    /// Its number in the queue; 0 while it does not wait there. Changed only by the queue.
    pub(crate) queue_number: AtomicU64,
}

/// What is known of the task.
pub(crate) struct Core {
    /// Absent until the task's first commit.
    pub(crate) key: Option<TaskKey>,
    pub(crate) fold: Fold,
    pub(crate) row: RowState,
    /// Which node holds its turn.
    pub(crate) holder: Holder,
    pub(crate) last_seq: Seq,
    /// The epoch the last event was written in.
    pub(crate) last_epoch: Epoch,
    pub(crate) bytes: u64,
    /// A webhook has a cursor in the log and is notified when it grows.
    pub(crate) watched: bool,
    pub(crate) since_snapshot: usize,
    pub(crate) snapshot_bytes: usize,
    /// The task's v1.0 JSON as of `last_seq`, once it has ended.
    pub(crate) ended_json: Option<Bytes>,
    tail: VecDeque<Arc<LoggedEvent>>,
    tail_bytes: usize,
    pub(crate) output: Output,
    /// What this process does with the turn.
    pub(crate) turn: TurnState,
    /// The agent of the last run in this process, as it was served when that began.
    pub(crate) served: Option<Arc<Served>>,
    /// When the last append was committed.
    pub(crate) last_append_at: Timestamp,
}

/// Where a task's turn runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnLocation {
    /// A driver of this process has it, or is about to.
    Here,
    /// Another node has it.
    Elsewhere,
    /// No turn runs, or the node that ran it is gone.
    Nowhere,
}

/// What the running turn has produced and not yet committed.
#[derive(Default)]
pub(crate) struct Output {
    pub(crate) batch: Batch,
    /// Bytes and events of the append that is under way.
    pub(crate) in_flight: (usize, usize),
    /// Events pushed and committed since the task came into memory; `complete` waits for its own.
    pub(crate) pushed: u64,
    pub(crate) committed: u64,
    /// Those of the last turn that was taken over: they are never committed.
    pub(crate) dropped: Range<u64>,
    /// The state once everything pushed is committed.
    pub(crate) state: TaskState,
    pub(crate) status_at: Timestamp,
    /// The highest message taken, committed or not.
    pub(crate) taken: u64,
    /// Whether the task has or will have an artifact.
    pub(crate) has_artifact: bool,
    /// Usage as the agent reported it since the task came into memory.
    pub(crate) usage: Option<Usage>,
    /// Usage of children as it was written since the task came into memory.
    pub(crate) children: BTreeMap<TaskId, Usage>,
    /// The same of children that ended while no turn here could write it.
    pub(crate) unwritten_children: BTreeMap<TaskId, Usage>,
    /// Why the turn has to stop.
    pub(crate) stop: Option<Reason>,
    pub(crate) run: RunOutput,
}

/// What belongs to one run of the agent, and begins anew with the next.
#[derive(Default)]
pub(crate) struct RunOutput {
    /// The artifact that `text` writes to, once begun.
    pub(crate) text_artifact: Option<ArtifactId>,
    /// The artifacts that the final message names.
    pub(crate) produced: ProducedArtifacts,
    /// The task that the run waits for, while its permit is released.
    pub(crate) blocker: Option<BlockingTask>,
    /// What a program of the run may do from outside.
    pub(crate) grant: Option<TokenGrant>,
    /// It asks before the agent's work begins, so that nothing has to wait in memory.
    pub(crate) parks: bool,
    /// Who answers what the agent asks, whatever it says itself.
    pub(crate) checkpoints: Option<Box<Review>>,
}

impl LiveTask {
    pub(crate) fn create(task: TaskIdentity, hosted: Arc<Hosted>, row: RowState) -> Self {
        let fold = Fold::new(&task);
        Self::with_core(Arc::new(task), Some(hosted), Core::new(None, fold, row, Seq(0), 0))
    }

    /// The same in a conversation whose id was made with the task.
    pub(crate) fn create_in_new_context(task: TaskIdentity, hosted: Arc<Hosted>, row: RowState) -> Self {
        Self { begins_context: true, ..Self::create(task, hosted, row) }
    }

    pub(crate) fn with_core(task: Arc<TaskIdentity>, hosted: Option<Arc<Hosted>>, core: Core) -> Self {
        Self {
            task,
            hosted,
            core: Mutex::new(core),
            changed: Notify::new(),
            output: Notify::new(),
            writing: tokio::sync::Mutex::new(()),
            parent: Mutex::default(),
            held_children: Mutex::default(),
            begins_context: false,
            may_be_behind: AtomicBool::new(false),
            catch_up_due: AtomicBool::new(false),
            queue_number: AtomicU64::new(0),
        }
    }

    /// Waits until `check` finds what it looks for.
    pub(crate) async fn wait_for<T>(&self, mut check: impl FnMut(&mut Core) -> Option<T>) -> T {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if let Some(found) = check(&mut self.core.lock()) {
                return found;
            }
            changed.await;
        }
    }

    /// Lets memory have the row that is committed now, here or elsewhere, and what follows from it.
    pub(crate) fn follow_row(&self, core: &mut Core, row: RowState, holder: Holder) {
        if core.output.batch.is_empty() {
            core.output.state = row.state;
        }
        core.output.status_at = core.output.status_at.max(row.status_at);
        if core.fold.kernel.cancel_requested && row.phase != Phase::Done {
            // Under the same lock: the turn must not park the task after this commit.
            core.output.stop.get_or_insert(Reason::CanceledByCaller);
        }
        core.turn.follow_row(&row, holder);
        core.row = row;
        core.holder = holder;
    }

    /// Whether its agent can be put away while it waits for an answer.
    pub(crate) fn may_park(&self, core: &Core) -> bool {
        if core.output.run.parks || core.row.phase == Phase::Parked {
            return true;
        }
        let allows = |served: &Arc<Served>| served.manifest.park == Park::Allowed;
        match &core.served {
            Some(served) => allows(served),
            None => self.hosted.as_ref().is_none_or(|hosted| allows(&hosted.served())),
        }
    }

    /// Wakes all readers and the turn's driver.
    pub(crate) fn wake(&self) {
        self.changed.notify_waiters();
        self.output.notify_one();
    }

    /// A status event of this task with the next timestamp.
    pub(crate) fn status_event(
        &self,
        state: TaskState,
        at: Timestamp,
        message: Option<Message>,
        metadata: Option<Metadata>,
    ) -> Event {
        let message = message.map(|message| Message {
            task_id: Some(self.task.id.clone()),
            context_id: Some(self.task.context.clone()),
            ..message
        });
        Event::StatusUpdate(TaskStatusUpdate {
            task_id: self.task.id.clone(),
            context_id: self.task.context.clone(),
            status: TaskStatus { state, message, timestamp: Some(at) },
            metadata,
        })
    }
}

impl Core {
    pub(crate) fn new(key: Option<TaskKey>, fold: Fold, row: RowState, last_seq: Seq, bytes: u64) -> Self {
        let has_artifact = !fold.task.artifacts.is_empty();
        let output = Output { state: row.state, status_at: row.status_at, has_artifact, ..Output::default() };
        Self {
            key,
            fold,
            row,
            holder: Holder::Unheld,
            last_seq,
            last_epoch: Epoch(0),
            bytes,
            watched: false,
            since_snapshot: 0,
            snapshot_bytes: 0,
            ended_json: None,
            tail: VecDeque::new(),
            tail_bytes: 0,
            output,
            turn: TurnState::default(),
            served: None,
            last_append_at: Timestamp(0),
        }
    }

    /// Where the task's turn runs. A turn that waits in the queue or for an answer runs nowhere, even if its agent is kept
    /// in memory here.
    pub(crate) fn location(&self) -> TurnLocation {
        match self.row.phase {
            Phase::Running | Phase::Interrupted if self.turn.is_here() => TurnLocation::Here,
            Phase::Running if self.holder == Holder::Other => TurnLocation::Elsewhere,
            _ => TurnLocation::Nowhere,
        }
    }

    /// Whether another node has claimed the turn that a driver of this process still holds, even if it has left it again
    /// since: then an agent that waits here would take the answer to another question for its own.
    pub(crate) fn is_taken_over(&self) -> bool {
        let Some(driven) = self.turn.driven() else { return false };
        let fence = self.row.fence;
        // Once without a claim: by an answer that waits for a permit, or by a shutdown.
        let is_only_moved =
            fence == driven.fence.next() && matches!(self.row.phase, Phase::Queued | Phase::Interrupted);
        fence != driven.fence && self.holder != Holder::This && !is_only_moved && !self.is_done()
    }

    /// Drops the output of a turn that goes on elsewhere, or that the log no longer has.
    pub(crate) fn abandon_turn(&mut self) {
        let unwritten_children = self.output.take_children();
        let Output { pushed, committed, in_flight, .. } = self.output;
        self.output = Output {
            in_flight,
            pushed,
            committed: pushed,
            dropped: committed..pushed,
            state: self.row.state,
            status_at: self.row.status_at,
            has_artifact: !self.fold.task.artifacts.is_empty(),
            stop: self.fold.kernel.cancel_requested.then_some(Reason::CanceledByCaller),
            unwritten_children,
            ..Output::default()
        };
        self.turn.leave();
    }

    /// The time of the next status: now, but after the one before.
    pub(crate) fn next_status_at(&mut self, now: Timestamp) -> Timestamp {
        let at = Timestamp(now.0.max(self.output.status_at.0 + 1));
        self.output.status_at = at;
        at
    }

    /// Where a reader of the task as it is stands.
    pub(crate) fn cursor(&self) -> Cursor {
        Cursor { epoch: self.last_epoch, seq: self.last_seq }
    }

    /// The oldest message that no turn has taken, committed or not.
    pub(crate) fn next_unread(&self) -> Option<&NumberedMessage> {
        self.fold.kernel.unread.iter().find(|unread| unread.seq > self.output.taken)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.row.phase == Phase::Done
    }

    pub(crate) fn task(&self) -> Task {
        self.fold.task.clone()
    }

    pub(crate) fn remember(&mut self, event: Arc<LoggedEvent>) {
        self.tail_bytes += event.line.len();
        self.tail.push_back(event);
        while self.tail_bytes > TAIL_BYTES && self.tail.len() > 1 {
            if let Some(forgotten) = self.tail.pop_front() {
                self.tail_bytes -= forgotten.line.len();
            }
        }
    }

    pub(crate) fn has_tail_after(&self, after: Seq) -> bool {
        after >= self.last_seq || self.tail.front().is_some_and(|first| first.seq <= after.plus(1))
    }

    /// Committed events after a number, if all of them are in memory.
    pub(crate) fn tail_after(&self, after: Seq) -> Option<Vec<Arc<LoggedEvent>>> {
        if after >= self.last_seq {
            return Some(Vec::new());
        }
        let first = self.tail.front()?.seq;
        let skip = usize::try_from(after.plus(1).0.checked_sub(first.0)?).ok()?;
        Some(self.tail.iter().skip(skip).cloned().collect())
    }
}
