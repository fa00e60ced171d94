//! Reading tasks: one, or one as it was.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use switchboard_a2a::{Json, Message, Task, TaskId};

use crate::caller::Caller;
use crate::directory::{Address, Hosted};
use crate::engine::{Engine, EngineState, visible};
use crate::error::Error;
use crate::event::Event;
use crate::fold::{LogFold, NumberedMessage, task_line};
use crate::history_cache::TaskHistory;
use crate::ids::{Cursor, Seq};
use crate::live_task::{Core, LiveTask};
use crate::store::{EventRow, LoadedTask, LoadedTaskWithin, Phase, StoreError, TaskIdentity, TaskRow};
use crate::terminal_task_cache::Cached;
use crate::watch::events_after;

/// A larger log is folded on a blocking thread, where it delays no other task.
const FOLDED_AT_ONCE: usize = 64 << 10;
/// How much of a log that grew elsewhere is read at a time.
const CATCH_UP_BYTES: usize = 256 << 10;

/// Metadata key of why a turn is queued, where its agent is at its limit.
pub const QUEUE_REASON_KEY: &str = "switchboard/queueReason";
/// Metadata key of a turn's position in the queue; 1 is next.
pub const QUEUE_POSITION_KEY: &str = "switchboard/queuePosition";

/// A task as read, in the form that was in memory or stored.
#[derive(Clone, Debug)]
pub enum TaskReading {
    /// Its v1.0 JSON, byte for byte as stored.
    Encoded(Bytes),
    /// The task.
    Folded {
        /// The task.
        task: Box<Task>,
        /// The bytes of its events, which is about what its JSON has.
        bytes: u64,
    },
}

/// A task that was to be read only if it is small.
#[derive(Clone, Debug)]
pub enum ReadWithin {
    /// It is, and here it is.
    Task(TaskReading),
    /// It is larger, and has about so many bytes.
    Larger(u64),
}

impl TaskReading {
    pub(crate) fn of(live: &LiveTask) -> Self {
        let core = live.core.lock();
        match &core.ended_json {
            Some(json) => Self::Encoded(json.clone()),
            None => Self::Folded { task: Box::new(core.task()), bytes: core.bytes },
        }
    }

    /// About how many bytes its JSON has.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Encoded(json) => json.len() as u64,
            Self::Folded { bytes, .. } => *bytes,
        }
    }

    /// The task itself.
    pub fn into_task(self) -> Result<Task, Error> {
        match self {
            Self::Folded { task, .. } => Ok(*task),
            Self::Encoded(json) => serde_json::from_slice(&json).map_err(|error| Error::damaged_task(&error)),
        }
    }
}

impl Engine {
    /// Whether a task has ended or is gone. For what an agent keeps beside the log, which goes with its task.
    pub async fn has_ended(&self, id: &TaskId) -> Result<bool, Error> {
        if let Some(live) = self.inner.live.get(id) {
            self.inner.refresh(&live).await?;
            return Ok(live.core.lock().is_done());
        }
        let row = self.inner.store.row(id).await?;
        Ok(row.is_none_or(|row| row.state.phase == Phase::Done))
    }

    /// One task.
    pub async fn get(&self, address: &Address, caller: &Caller, id: &TaskId) -> Result<TaskReading, Error> {
        let engine = &self.inner;
        if let Some(json) = engine.cached(address, caller, id)? {
            return Ok(TaskReading::Encoded(json));
        }
        if let Some(reading) = engine.in_memory(address, caller, id).await? {
            return Ok(reading);
        }
        let deletions = engine.terminal_tasks.deletions();
        let loaded = engine.store.load(id).await?;
        let loaded = loaded.ok_or_else(|| Error::TaskNotFound(id.clone()))?;
        engine.stored_reading(address, caller, loaded, deletions).await
    }

    /// One task, unless it has more than `max_bytes`: then how many it has.
    pub async fn get_within(
        &self,
        address: &Address,
        caller: &Caller,
        id: &TaskId,
        max_bytes: u64,
    ) -> Result<ReadWithin, Error> {
        let engine = &self.inner;
        let within = |reading: TaskReading| match reading.bytes() {
            bytes if bytes > max_bytes => ReadWithin::Larger(bytes),
            _ => ReadWithin::Task(reading),
        };
        if let Some(json) = engine.cached(address, caller, id)? {
            return Ok(within(TaskReading::Encoded(json)));
        }
        // A task that is in memory is copied to be read, so its size is asked first.
        if let Some(bytes) = engine.live_bytes(address, caller, id)
            && bytes > max_bytes
        {
            return Ok(ReadWithin::Larger(bytes));
        }
        if let Some(reading) = engine.in_memory(address, caller, id).await? {
            return Ok(within(reading));
        }
        let deletions = engine.terminal_tasks.deletions();
        let loaded = engine.store.load_within(id, max_bytes).await?;
        match loaded {
            None => Err(Error::TaskNotFound(id.clone())),
            Some(LoadedTaskWithin::Whole(loaded)) => {
                engine.stored_reading(address, caller, *loaded, deletions).await.map(ReadWithin::Task)
            }
            Some(LoadedTaskWithin::Larger(row)) if visible(address, caller, &row.task, row.state.hidden) => {
                Ok(ReadWithin::Larger(row.bytes))
            }
            Some(LoadedTaskWithin::Larger(_)) => Err(Error::TaskNotFound(id.clone())),
        }
    }

    /// About how many bytes a task has as JSON.
    pub async fn size(&self, address: &Address, caller: &Caller, id: &TaskId) -> Result<u64, Error> {
        if let Some(bytes) = self.inner.live_bytes(address, caller, id) {
            return Ok(bytes);
        }
        Ok(self.inner.visible_row(address, caller, id).await?.bytes)
    }

    /// The agent of a task that the caller may see, if it is still served.
    pub async fn agent_of(
        &self,
        address: &Address,
        caller: &Caller,
        id: &TaskId,
    ) -> Result<Option<Arc<Hosted>>, Error> {
        Ok(self.inner.open(address, caller, id).await?.hosted.clone())
    }
}

impl EngineState {
    /// The size of a task in memory, if the caller may see it.
    fn live_bytes(&self, address: &Address, caller: &Caller, id: &TaskId) -> Option<u64> {
        let live = self.live.get(id)?;
        let core = live.core.lock();
        visible(address, caller, &live.task, core.row.hidden).then_some(core.bytes)
    }

    /// An ended task that was read lately.
    fn cached(&self, address: &Address, caller: &Caller, id: &TaskId) -> Result<Option<Bytes>, Error> {
        match self.terminal_tasks.get(address, caller, id) {
            Cached::Task(json) => Ok(Some(json)),
            Cached::Invisible => Err(Error::TaskNotFound(id.clone())),
            Cached::Unknown => Ok(None),
        }
    }

    /// A task that is in memory because it is in use, so that the store need not be asked.
    async fn in_memory(&self, address: &Address, caller: &Caller, id: &TaskId) -> Result<Option<TaskReading>, Error> {
        let Some(live) = self.live.get(id) else { return Ok(None) };
        self.refresh(&live).await?;
        let hidden = live.core.lock().row.hidden;
        if !visible(address, caller, &live.task, hidden) {
            return Err(Error::TaskNotFound(id.clone()));
        }
        let mut reading = self.reading(&live);
        if let TaskReading::Folded { task, .. } = &mut reading {
            self.add_blocker(&live, caller, task);
        }
        Ok(Some(reading))
    }

    /// A task as it is stored.
    async fn stored_reading(
        self: &Arc<Self>,
        address: &Address,
        caller: &Caller,
        loaded: LoadedTask,
        deletions: u64,
    ) -> Result<TaskReading, Error> {
        let row = &loaded.row;
        if !visible(address, caller, &row.task, row.state.hidden) {
            return Err(Error::TaskNotFound(row.task.id.clone()));
        }
        let ended = row.state.phase == Phase::Done && loaded.events.is_empty();
        if let (true, Some((_, _, snapshot))) = (ended, &loaded.snapshot) {
            let json = task_line(snapshot);
            self.terminal_tasks.keep(&row.task, &json, deletions);
            return Ok(TaskReading::Encoded(json));
        }
        let bytes = row.bytes;
        if row.state.phase == Phase::Done && loaded.size() <= FOLDED_AT_ONCE {
            let task = row.task.clone();
            let json = self.fold_log(&loaded)?.fold.task_json();
            self.terminal_tasks.keep(&task, &json, deletions);
            return Ok(TaskReading::Encoded(json));
        }
        if loaded.size() <= FOLDED_AT_ONCE {
            return Ok(TaskReading::Folded { task: Box::new(self.fold_task(loaded)?), bytes });
        }
        let engine = Arc::clone(self);
        let folding = tokio::task::spawn_blocking(move || engine.fold_task(loaded));
        let failed = |error| Error::retry_soon(format!("a stored task could not be read: {error}"));
        let folded = folding.await.map_err(failed)?;
        Ok(TaskReading::Folded { task: Box::new(folded?), bytes })
    }

    /// A live task as callers see it, with its queue position.
    pub(crate) fn reading(&self, live: &Arc<LiveTask>) -> TaskReading {
        let mut reading = TaskReading::of(live);
        if let TaskReading::Folded { task, .. } = &mut reading {
            self.add_queue_position(live, task);
        }
        reading
    }

    pub(crate) fn add_queue_position(&self, live: &Arc<LiveTask>, task: &mut Task) {
        let waits = {
            let core = live.core.lock();
            core.row.phase.is_queued() || core.turn.waits_for_permit()
        };
        if waits
            && let Some(position) = self.admission.position(live)
            && let Ok(value) = Json::from_serialize(&position)
        {
            let metadata = task.metadata.get_or_insert_default();
            metadata.insert(QUEUE_POSITION_KEY, value);
            let full = live.hosted.as_ref().and_then(|hosted| hosted.full(self.settings.running_per_agent));
            if let Some(reason) = full.and_then(|reason| Json::from_serialize(&reason).ok()) {
                metadata.insert(QUEUE_REASON_KEY, reason);
            }
        }
    }

    pub(crate) fn fold_task(&self, loaded: LoadedTask) -> Result<Task, Error> {
        if let (true, Some((_, _, snapshot))) = (loaded.events.is_empty(), &loaded.snapshot) {
            return TaskReading::Encoded(task_line(snapshot)).into_task();
        }
        Ok(self.fold_log(&loaded)?.fold.task)
    }

    /// The task as it was right after an event, and the cursor of a reader that has seen it.
    pub(crate) async fn task_as_of(&self, live: &LiveTask, seq: Seq) -> Result<(Cursor, Task), Error> {
        let Some(key) = live.core.lock().key else { return Err(Error::TaskNotFound(live.task.id.clone())) };
        let mut log = LogFold::new(&live.task);
        self.fold_up_to(key, &mut log, seq).await?;
        Ok((Cursor { epoch: log.epoch.unwrap_or_default(), seq }, log.fold.task))
    }

    /// The message of a task that has this number in its log.
    pub(crate) async fn received(&self, live: &LiveTask, seq: Seq) -> Result<Option<NumberedMessage>, StoreError> {
        let key = {
            let core = live.core.lock();
            let current = core.fold.kernel.current.as_ref().filter(|current| current.seq == seq.0);
            if current.is_some() {
                return Ok(current.cloned());
            }
            core.key
        };
        let (Some(key), Some(before)) = (key, seq.0.checked_sub(1)) else { return Ok(None) };
        // One row is read however small the limit is, and the first one holds the event after `before`.
        let rows = self.store.read(key, Seq(before), 1).await?;
        Ok(match rows.first().and_then(|row| row.line(seq)).map(Event::decode) {
            Some(Ok(Event::Received(received))) => Some(NumberedMessage { seq: seq.0, received }),
            _ => None,
        })
    }

    /// The newest messages of a conversation's other tasks, oldest first.
    pub(crate) async fn context_history(&self, task: &TaskIdentity, max: usize) -> Vec<Message> {
        let rows = self.store.context(task.conversation(), max.max(1)).await.unwrap_or_default();
        let known = self.history_cache.get(task);
        let mut histories: Vec<TaskHistory> = Vec::new();
        let mut newest_first = Vec::new();
        for row in rows {
            if row.task.id == task.id || newest_first.len() >= max {
                continue;
            }
            let cached = known.iter().flat_map(|known| known.iter()).find(|history| history.is_of(&row)).cloned();
            let history = match cached {
                Some(history) => history,
                None => {
                    let Ok(Some(loaded)) = self.store.load(&row.task.id).await else { continue };
                    let last_seq = loaded.row.last_seq;
                    let Ok(earlier) = self.fold_task(loaded) else { continue };
                    let messages = earlier.history.into_iter().chain(earlier.status.message).collect();
                    TaskHistory { task: row.task.id, last_seq, messages }
                }
            };
            newest_first.extend(history.messages.iter().rev().cloned());
            histories.push(history);
        }
        self.history_cache.keep(task, histories, self.settings.contexts);
        newest_first.truncate(max);
        newest_first.reverse();
        newest_first
    }
}

impl EngineState {
    /// Compares a task in memory with the log where another node may have written to it, or another request while it was
    /// loaded: no read may fall behind an acknowledged write.
    pub(crate) async fn refresh(&self, live: &LiveTask) -> Result<(), StoreError> {
        if !self.is_shared && !live.may_be_behind.load(Ordering::Acquire) {
            return Ok(());
        }
        let can_change = {
            let core = live.core.lock();
            core.key.is_some() && !core.is_done()
        };
        if !can_change {
            return Ok(());
        }
        // First without the lock, which a writer may hold for long: mostly nothing has changed.
        let row = self.store.row(&live.task.id).await?.ok_or(StoreError::Missing)?;
        let is_current = live.core.lock().is_as_stored(&row);
        if !is_current {
            let _writing = live.writing.lock().await;
            live.catch_up(self).await?;
        }
        live.may_be_behind.store(false, Ordering::Release);
        Ok(())
    }
}

impl LiveTask {
    /// Lets memory follow what other writers have committed: the events after the last one here, and the row, which a
    /// claim changes without an event. The caller holds `writing`.
    pub(crate) async fn catch_up(&self, engine: &EngineState) -> Result<(), StoreError> {
        let row = engine.store.row(&self.task.id).await?.ok_or(StoreError::Missing)?;
        let (known, epoch) = {
            let mut core = self.core.lock();
            core.watched |= row.watched;
            if core.is_as_stored(&row) {
                return Ok(());
            }
            (core.last_seq, core.last_epoch)
        };
        let mut missed = Vec::new();
        let mut read = known;
        while read < row.last_seq {
            // The row of the last event here comes first, to compare its epoch.
            let after = Seq(if missed.is_empty() { read.0.saturating_sub(1) } else { read.0 });
            let rows = engine.store.read(row.key, after, CATCH_UP_BYTES).await?;
            let Some(last) = rows.last() else { return Err(StoreError::Missing) };
            read = last.first_seq.plus(u64::from(last.count) - 1);
            missed.extend(rows);
        }
        let was_rewound = row.last_seq < known
            || missed.first().is_some_and(|first| first.first_seq <= known && first.epoch != epoch);
        if was_rewound {
            return self.reload(engine).await;
        }
        let has_ended = {
            let mut core = self.core.lock();
            let waited = core.row.state.is_interrupted();
            core.follow(&missed, row.last_seq).map_err(|error| StoreError::Failed(error.to_string()))?;
            self.follow_row(&mut core, row.state, row.holder);
            engine.forget_closed_question(&core, waited);
            if core.is_taken_over() {
                // The driver finds that its run is over, and drops the agent with what it has produced and started.
                core.abandon_turn();
            }
            if core.is_done() && core.ended_json.is_none() {
                core.ended_json = Some(core.fold.task_json());
            }
            core.is_done()
        };
        if has_ended {
            // Its writer, on another node, knows nothing of a parent here.
            self.tell_usage(engine);
        }
        self.wake();
        Ok(())
    }

    /// The whole task anew, because the log no longer has what is in memory. A run that worked on that is dropped.
    pub(crate) async fn reload(&self, engine: &EngineState) -> Result<(), StoreError> {
        let loaded = engine.store.load(&self.task.id).await?.ok_or(StoreError::Missing)?;
        let fresh = engine.fold_loaded(loaded).map_err(|error| StoreError::Failed(error.to_string()))?;
        let has_ended = {
            let mut core = self.core.lock();
            let turn = std::mem::take(&mut core.turn);
            let unwritten_children = core.output.take_children();
            let waited = core.row.state.is_interrupted();
            *core = fresh;
            core.output.unwritten_children = unwritten_children;
            engine.forget_closed_question(&core, waited);
            core.turn = turn;
            let Core { turn, row, holder, .. } = &mut *core;
            turn.follow_row(row, *holder);
            core.abandon_turn();
            core.is_done()
        };
        if has_ended {
            self.tell_usage(engine);
        }
        self.wake();
        Ok(())
    }
}

impl Core {
    /// Whether memory has what the row in the store says.
    fn is_as_stored(&self, row: &TaskRow) -> bool {
        self.last_seq == row.last_seq && self.row == row.state && self.holder == row.holder
    }

    /// Folds events that other writers have committed, after the last one here and up to `last`.
    fn follow(&mut self, rows: &[EventRow], last: Seq) -> Result<(), serde_json::Error> {
        for event in events_after(rows, self.last_seq) {
            if event.seq > last {
                break;
            }
            self.fold.apply(event.seq, &Event::decode(&event.line)?);
            self.since_snapshot += event.line.len();
            self.bytes += event.line.len() as u64;
            (self.last_seq, self.last_epoch) = (event.seq, event.epoch);
            self.remember(event);
        }
        Ok(())
    }
}
