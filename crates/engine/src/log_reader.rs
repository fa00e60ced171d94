//! A task's log for a reader with a cursor of its own, which need not see the task live: events after a number, and the
//! task as it was right after one of them.

use std::sync::Arc;

use switchboard_a2a::{Task, TaskId};

use crate::engine::{Engine, EngineState};
use crate::error::Error;
use crate::event::{Event, LoggedEvent};
use crate::fold::Fold;
use crate::ids::{Seq, TaskKey};
use crate::watch::lines;

/// How much of a log is read at a time to find out how a task was.
const FOLD_BYTES: usize = 1 << 20;

/// One task's log.
pub struct LogReader {
    engine: Arc<EngineState>,
    id: TaskId,
    key: TaskKey,
    /// The task as of an event, kept so that a reader that goes forward reads everything once.
    as_of: Option<AsOf>,
}

/// A task as of an event.
struct AsOf {
    seq: Seq,
    fold: Fold,
    /// How much was read to come here, which is about what the fold holds or more.
    bytes: usize,
}

impl Engine {
    /// The log of a task.
    pub fn log(&self, id: &TaskId, key: TaskKey) -> LogReader {
        LogReader { engine: Arc::clone(&self.inner), id: id.clone(), key, as_of: None }
    }
}

impl LogReader {
    /// The events after a number, of any kind, until `max_bytes` are passed (at least one if there is one).
    pub async fn after(&self, seq: Seq, max_bytes: usize) -> Result<Vec<Arc<LoggedEvent>>, Error> {
        let at_hand = self.engine.live.get(&self.id).and_then(|live| live.core.lock().tail_after(seq));
        if let Some(events) = at_hand
            && !events.is_empty()
        {
            return Ok(events);
        }
        let rows = self.engine.store.read(self.key, seq, max_bytes).await.map_err(|error| Error::from_store(&error))?;
        Ok(rows.iter().flat_map(lines).filter(|event| event.seq > seq).collect())
    }

    /// The task as it was right after an event. Cheapest for one event after the other.
    pub async fn task_as_of(&mut self, seq: Seq) -> Result<Task, Error> {
        let mut as_of = match self.as_of.take().filter(|as_of| as_of.seq <= seq) {
            Some(known) => known,
            None => self.begin(seq).await?,
        };
        while as_of.seq < seq {
            let rows = self.engine.store.read(self.key, as_of.seq, FOLD_BYTES).await;
            let rows = rows.map_err(|error| Error::from_store(&error))?;
            if rows.is_empty() {
                return Err(Error::TaskNotFound(self.id.clone()));
            }
            for event in rows.iter().flat_map(lines).filter(|event| event.seq <= seq) {
                if event.seq <= as_of.seq {
                    continue;
                }
                let decoded = Event::decode(&event.line).map_err(|error| crate::read::damaged(&error))?;
                as_of.fold.apply(event.seq, &decoded);
                as_of.seq = event.seq;
                as_of.bytes += event.line.len();
            }
        }
        let task = as_of.fold.task.clone();
        self.as_of = Some(as_of);
        Ok(task)
    }

    /// Lets go of it; the next reading begins anew.
    pub fn let_go(&mut self) {
        self.as_of = None;
    }

    /// About how much this holds of the task, for whoever keeps it.
    pub fn held_bytes(&self) -> usize {
        self.as_of.as_ref().map_or(0, |as_of| as_of.bytes)
    }

    /// The newest fold that is stored, if it is not too new, else the empty one.
    async fn begin(&self, seq: Seq) -> Result<AsOf, Error> {
        let loaded = self.engine.store.load(&self.id).await.map_err(|error| Error::from_store(&error))?;
        let loaded = loaded.ok_or_else(|| Error::TaskNotFound(self.id.clone()))?;
        match &loaded.snapshot {
            Some((as_of, _, snapshot)) if *as_of <= seq => {
                let fold = Fold::from_snapshot(snapshot).map_err(|error| crate::read::damaged(&error))?;
                Ok(AsOf { seq: *as_of, fold, bytes: snapshot.len() })
            }
            _ => Ok(AsOf { seq: Seq(0), fold: Fold::new(&loaded.row.task), bytes: 0 }),
        }
    }
}
