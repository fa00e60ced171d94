//! A task's log for a reader with a cursor of its own, such as a webhook: the events after a sequence number, and the
//! task as it was right after one of them.

use std::sync::Arc;

use switchboard_a2a::{Task, TaskId};

use crate::engine::{Engine, EngineState};
use crate::error::Error;
use crate::event::LoggedEvent;
use crate::fold::LogFold;
use crate::ids::{Seq, TaskKey};
use crate::watch::events_after;

/// One task's log.
pub struct LogReader {
    engine: Arc<EngineState>,
    id: TaskId,
    key: TaskKey,
    /// The fold up to the last event asked for, so that a reader that goes forward reads everything once.
    log: Option<LogFold>,
}

impl Engine {
    /// The log of a task.
    pub fn log(&self, id: &TaskId, key: TaskKey) -> LogReader {
        LogReader { engine: Arc::clone(&self.inner), id: id.clone(), key, log: None }
    }
}

impl LogReader {
    /// The events after a number, of any kind, until `max_bytes` are passed (at least one if there is one).
    pub async fn after(&self, seq: Seq, max_bytes: usize) -> Result<Vec<Arc<LoggedEvent>>, Error> {
        let in_memory = self.engine.live.get(&self.id).and_then(|live| live.core.lock().tail_after(seq));
        if let Some(events) = in_memory.filter(|events| !events.is_empty()) {
            return Ok(events);
        }
        Ok(events_after(&self.engine.store.read(self.key, seq, max_bytes).await?, seq))
    }

    /// The task as it was right after an event. Cheapest for one event after the other.
    pub async fn task_as_of(&mut self, seq: Seq) -> Result<Task, Error> {
        let mut log = match self.log.take().filter(|log| log.seq <= seq) {
            Some(log) => log,
            None => self.begin(seq).await?,
        };
        self.engine.fold_up_to(self.key, &mut log, seq).await?;
        let task = log.fold.task.clone();
        self.log = Some(log);
        Ok(task)
    }

    /// Drops the fold; the next call of [`Self::task_as_of`] begins anew.
    pub fn let_go(&mut self) {
        self.log = None;
    }

    /// About how much memory the fold takes, for the cache that keeps this reader.
    pub fn held_bytes(&self) -> usize {
        self.log.as_ref().map_or(0, |log| log.snapshot_bytes + log.event_bytes)
    }

    /// The newest stored snapshot if it is not too new, else the beginning of the log.
    async fn begin(&self, seq: Seq) -> Result<LogFold, Error> {
        let loaded = self.engine.store.load(&self.id).await?;
        let loaded = loaded.ok_or_else(|| Error::TaskNotFound(self.id.clone()))?;
        match &loaded.snapshot {
            Some(snapshot) if snapshot.0 <= seq => LogFold::from_snapshot(&loaded.row.task, snapshot),
            _ => Ok(LogFold::new(&loaded.row.task)),
        }
    }
}
