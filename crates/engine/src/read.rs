//! Reading tasks: one, or one as it was.

use std::sync::Arc;

use bytes::Bytes;
use switchboard_a2a::{Json, Message, Task, TaskId};

use crate::aside::Standing;
use crate::caller::Caller;
use crate::directory::{Address, Hosted};
use crate::engine::{Engine, Inner, visible};
use crate::error::Error;
use crate::event::Event;
use crate::fold::{Fold, Numbered, task_line};
use crate::histories::Piece;
use crate::ids::{Cursor, Seq};
use crate::live::LiveTask;
use crate::store::{Loaded, NewTask, Phase, StoreError};

/// Metadata key of what a waiting turn waits for, where that is a place at its agent.
pub const QUEUE_REASON_KEY: &str = "switchboard/queueReason";
/// Metadata key of a waiting turn's place in the queue; 1 is next.
pub const QUEUE_POSITION_KEY: &str = "switchboard/queuePosition";

/// A task as read, in whichever form was at hand.
#[derive(Clone, Debug)]
pub enum TaskReading {
    /// Its v1.0 JSON, byte for byte as stored.
    Encoded(Bytes),
    /// The task.
    Folded(Box<Task>),
}

impl TaskReading {
    pub(crate) fn of(live: &LiveTask) -> Self {
        let core = live.core.lock();
        match &core.ended_json {
            Some(json) => Self::Encoded(json.clone()),
            None => Self::Folded(Box::new(core.task())),
        }
    }

    /// The task itself.
    pub fn into_task(self) -> Result<Task, Error> {
        match self {
            Self::Folded(task) => Ok(*task),
            Self::Encoded(json) => serde_json::from_slice(&json).map_err(|error| damaged(&error)),
        }
    }
}

/// What the caller is told of a stored task that is no task.
pub(crate) fn damaged(error: &serde_json::Error) -> Error {
    tracing::error!(%error, "a stored task cannot be read");
    let problem = "a stored task is damaged, run `switchboard db check`".to_owned();
    Error::Unavailable { problem, retry_after_ms: 60_000 }
}

impl Engine {
    /// Whether nobody will work on a task any more: it has ended, or is not there. For what an agent keeps beside the
    /// log, which goes when its task does.
    pub async fn has_ended(&self, id: &TaskId) -> Result<bool, Error> {
        if let Some(live) = self.inner.live.get(id) {
            return Ok(live.core.lock().is_done());
        }
        let row = self.inner.store.row(id).await.map_err(|error| Error::from_store(&error))?;
        Ok(row.is_none_or(|row| row.state.phase == Phase::Done))
    }

    /// One task.
    pub async fn get(&self, address: &Address, caller: &Caller, id: &TaskId) -> Result<TaskReading, Error> {
        let engine = &self.inner;
        if let Some((task, json)) = engine.ended.get(id) {
            let seen = visible(address, caller, &task, false);
            return if seen { Ok(TaskReading::Encoded(json)) } else { Err(Error::TaskNotFound(id.clone())) };
        }
        if engine.live.get(id).is_none() {
            let deletions = engine.ended.deletions();
            let loaded = engine.store.load(id).await.map_err(|error| Error::from_store(&error))?;
            let loaded = loaded.ok_or_else(|| Error::TaskNotFound(id.clone()))?;
            let row = &loaded.row;
            let ended = row.state.phase == Phase::Done && loaded.events.is_empty();
            if let (true, Some((_, _, snapshot))) = (ended, &loaded.snapshot) {
                let seen = visible(address, caller, &row.task, row.state.hidden);
                if !seen {
                    return Err(Error::TaskNotFound(id.clone()));
                }
                let json = task_line(snapshot);
                engine.ended.keep(&row.task, json.clone(), deletions);
                return Ok(TaskReading::Encoded(json));
            }
        }
        let live = engine.open(address, caller, id).await?;
        Ok(engine.reading(&live))
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

impl Inner {
    /// A live task as callers see it, with its place in the queue if it waits for one.
    pub(crate) fn reading(&self, live: &Arc<LiveTask>) -> TaskReading {
        let mut reading = TaskReading::of(live);
        if let TaskReading::Folded(task) = &mut reading {
            self.tell_position(live, task);
        }
        reading
    }

    pub(crate) fn tell_position(&self, live: &Arc<LiveTask>, task: &mut Task) {
        let waits = {
            let core = live.core.lock();
            core.row.phase.is_queued() || core.output.standing == Standing::Returns
        };
        if waits
            && let Some(position) = self.caps.position(live)
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

    pub(crate) fn fold_task(&self, loaded: Loaded) -> Result<Task, Error> {
        if let (true, Some((_, _, snapshot))) = (loaded.events.is_empty(), &loaded.snapshot) {
            return TaskReading::Encoded(task_line(snapshot)).into_task();
        }
        Ok(self.fold_loaded(loaded)?.fold.task)
    }

    /// The task as it was right after an event, and where a reader of it stands.
    pub(crate) async fn task_as_of(&self, live: &LiveTask, seq: Seq) -> Result<(Cursor, Task), Error> {
        let Some(key) = live.core.lock().key else { return Err(Error::TaskNotFound(live.task.id.clone())) };
        let mut fold = Fold::new(&live.task);
        let mut at = Seq(0);
        let mut epoch = self.epoch;
        while at < seq {
            let rows = self.store.read(key, at, 1 << 20).await.map_err(|error| Error::from_store(&error))?;
            if rows.is_empty() {
                break;
            }
            for row in rows.iter().take_while(|row| row.first_seq <= seq) {
                epoch = row.epoch;
                for line in row.events.split(|byte| *byte == b'\n') {
                    at = at.plus(1);
                    let Ok(event) = Event::decode(line) else { continue };
                    if at <= seq {
                        fold.apply(at, &event);
                        continue;
                    }
                    if let Event::StatusUpdate(update) = event
                        && let Some(status_at) = update.status.timestamp
                    {
                        fold.date_answer(seq, status_at);
                    }
                    break;
                }
            }
        }
        Ok((Cursor { epoch, seq }, fold.task))
    }

    /// The message of a task that has this number in its log.
    pub(crate) async fn received(&self, live: &LiveTask, seq: Seq) -> Result<Option<Numbered>, StoreError> {
        let key = {
            let core = live.core.lock();
            let current = core.fold.inner.current.as_ref().filter(|current| current.seq == seq.0);
            if current.is_some() {
                return Ok(current.cloned());
            }
            core.key
        };
        let (Some(key), Some(before)) = (key, seq.0.checked_sub(1)) else { return Ok(None) };
        // One row is read however small the limit is, and the first one holds the event after `before`.
        let rows = self.store.read(key, Seq(before), 1).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let index = usize::try_from(seq.0.saturating_sub(row.first_seq.0)).unwrap_or(usize::MAX);
        let line = row.events.split(|byte| *byte == b'\n').nth(index);
        Ok(match line.map(Event::decode) {
            Some(Ok(Event::Received(received))) => Some(Numbered { seq: seq.0, received }),
            _ => None,
        })
    }

    /// The newest messages of a conversation's other tasks, oldest first.
    pub(crate) async fn context_history(&self, task: &NewTask, max: usize) -> Vec<Message> {
        let rows = self.store.context(&task.owner, &task.agent, &task.context, max.max(1)).await.unwrap_or_default();
        let known = self.histories.get(task);
        let mut pieces: Vec<Piece> = Vec::new();
        let mut newest_first = Vec::new();
        for row in rows {
            if row.task.id == task.id || newest_first.len() >= max {
                continue;
            }
            let at_hand = known.iter().flat_map(|known| known.iter()).find(|piece| piece.is_of(&row)).cloned();
            let piece = match at_hand {
                Some(piece) => piece,
                None => {
                    let Ok(Some(loaded)) = self.store.load(&row.task.id).await else { continue };
                    let last_seq = loaded.row.last_seq;
                    let Ok(earlier) = self.fold_task(loaded) else { continue };
                    let said = earlier.history.into_iter().chain(earlier.status.message).collect();
                    Piece { task: row.task.id, last_seq, said }
                }
            };
            newest_first.extend(piece.said.iter().rev().cloned());
            pieces.push(piece);
        }
        self.histories.keep(task, pieces, self.settings.contexts);
        newest_first.truncate(max);
        newest_first.reverse();
        newest_first
    }
}

impl LiveTask {
    /// Lets memory catch up with a log that grew elsewhere. The caller holds `writing`.
    pub(crate) async fn reload(&self, engine: &Inner) -> Result<(), StoreError> {
        let loaded = engine.store.load(&self.task.id).await?.ok_or(StoreError::Missing)?;
        {
            let mut core = self.core.lock();
            core.watched = loaded.row.watched;
            if loaded.row.last_seq == core.last_seq {
                return Ok(());
            }
        }
        let fresh = engine.fold_loaded(loaded).map_err(|error| StoreError::Failed(error.to_string()))?;
        let mut core = self.core.lock();
        core.fold = fresh.fold;
        core.row = fresh.row;
        core.last_seq = fresh.last_seq;
        core.last_epoch = fresh.last_epoch;
        core.bytes = fresh.bytes;
        core.since_snapshot = fresh.since_snapshot;
        core.snapshot_bytes = fresh.snapshot_bytes;
        core.ended_json = fresh.ended_json;
        core.forget_tail();
        Ok(())
    }
}
