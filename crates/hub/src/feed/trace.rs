//! What a task's first message says of where it comes from: the work that it belongs to, its skill, when it came. Every item
//! of the task tells it, so what was read last is kept, and so is what logs of several rows report of their work.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use switchboard_a2a::{TaskId, Timestamp};
use switchboard_engine::event::{Event, Received};
use switchboard_engine::ids::TaskKey;
use switchboard_engine::store::{EventRow, ServerStore, StoreError, TaskIdentity};
use switchboard_engine::{RoutingHints, Seq, Usage};

use crate::health::Reported;

/// Tasks that are remembered: those that are active at the same time, on a busy server.
const REMEMBERED: usize = 10_000;

/// Reports that are kept: every reader of the feed asks for the same ones at about the same time.
const REPORTS: usize = 256;

/// Where a task comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TaskOrigin {
    /// Correlates everything that one request has caused: as its sender says, else the id of the root task.
    pub(crate) correlation: String,
    /// What caused it, as its sender says, else the task that has called it.
    pub(crate) parent: Option<String>,
    /// The skill that was asked for, else the one that routing has picked it by.
    pub(crate) skill: Option<String>,
    pub(crate) received_at: Timestamp,
}

/// Where the newest tasks come from.
pub(crate) struct TraceCache {
    store: Arc<dyn ServerStore>,
    origins: Mutex<Remembered<Arc<TaskOrigin>>>,
    /// What tasks that have ended have cost: every page of a tree adds up all of it.
    costs: Mutex<Remembered<TaskCost>>,
    /// What tasks that have ended report of their work, newest last.
    reports: Mutex<VecDeque<(TaskKey, Reported)>>,
}

/// What the work of a task itself has cost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TaskCost {
    pub(crate) usage: Usage,
    /// Whether it is tokens times their price.
    pub(crate) is_estimated: bool,
}

/// What is known of the newest tasks that were asked for.
struct Remembered<T> {
    known: HashMap<TaskKey, T>,
    order: VecDeque<TaskKey>,
}

impl<T> Default for Remembered<T> {
    fn default() -> Self {
        Self { known: HashMap::new(), order: VecDeque::new() }
    }
}

impl<T: Clone> Remembered<T> {
    fn get(&self, key: TaskKey) -> Option<T> {
        self.known.get(&key).cloned()
    }

    fn keep(&mut self, key: TaskKey, value: T) {
        if self.known.insert(key, value).is_none() {
            self.order.push_back(key);
        }
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

impl TraceCache {
    pub(crate) fn new(store: Arc<dyn ServerStore>) -> Self {
        Self { store, origins: Mutex::default(), costs: Mutex::default(), reports: Mutex::default() }
    }

    /// What a task that has ended has cost, if that was read a short while ago.
    pub(crate) fn cost(&self, key: TaskKey) -> Option<TaskCost> {
        self.costs.lock().get(key)
    }

    pub(crate) fn keep_cost(&self, key: TaskKey, cost: TaskCost) {
        self.costs.lock().keep(key, cost);
    }

    /// What a task that has ended reports of its work, if it was read a short while ago.
    pub(crate) fn reported(&self, key: TaskKey) -> Option<Reported> {
        self.reports.lock().iter().rev().find(|(known, _)| *known == key).map(|(_, reported)| reported.clone())
    }

    pub(crate) fn keep_reported(&self, key: TaskKey, reported: Reported) {
        let mut reports = self.reports.lock();
        if reports.len() >= REPORTS {
            reports.pop_front();
        }
        reports.push_back((key, reported));
    }

    /// Where the task of a row comes from; nothing if its log is gone.
    pub(crate) async fn origin(
        &self,
        key: TaskKey,
        task: &TaskIdentity,
        row: &EventRow,
    ) -> Result<Option<Arc<TaskOrigin>>, StoreError> {
        let known = self.origins.lock().get(key);
        if known.is_some() {
            return Ok(known);
        }
        let first = match row.line(Seq(1)).and_then(received) {
            Some(first) => Some(first),
            None => self.first_message(key).await?,
        };
        let Some(first) = first else { return Ok(None) };
        self.keep_origin(key, task, &first).await.map(Some)
    }

    /// Where a task with this first message comes from, for the rows of it that follow.
    pub(crate) async fn keep_origin(
        &self,
        key: TaskKey,
        task: &TaskIdentity,
        first: &Received,
    ) -> Result<Arc<TaskOrigin>, StoreError> {
        let origin = Arc::new(self.origin_of(task, first).await?);
        self.origins.lock().keep(key, Arc::clone(&origin));
        Ok(origin)
    }

    /// Where a task with this first message comes from.
    pub(crate) async fn origin_of(&self, task: &TaskIdentity, first: &Received) -> Result<TaskOrigin, StoreError> {
        let trace = first.trace.as_deref().cloned().unwrap_or_default();
        let (mut correlation, mut parent) = (trace.correlation_id, trace.parent_id);
        if let Some(ancestors) = task.lineage.ancestors {
            if correlation.is_none() {
                let root = self.first_message(ancestors.root).await?;
                correlation = root.and_then(|root| {
                    let trace = root.trace.as_ref().and_then(|trace| trace.correlation_id.clone());
                    trace.or_else(|| root.message.task_id.as_ref().map(TaskId::to_string))
                });
            }
            if parent.is_none() {
                let caller = self.first_message(ancestors.parent).await?;
                parent = caller.and_then(|caller| caller.message.task_id.as_ref().map(TaskId::to_string));
            }
        }
        Ok(TaskOrigin {
            correlation: correlation.unwrap_or_else(|| task.id.to_string()),
            parent,
            skill: RoutingHints::seen_by(&task.agent, first).skill,
            received_at: first.at,
        })
    }

    /// A log begins with the task's first message.
    async fn first_message(&self, key: TaskKey) -> Result<Option<Arc<Received>>, StoreError> {
        let rows = self.store.read(key, Seq(0), 1).await?;
        Ok(rows.first().and_then(|row| row.line(Seq(1))).and_then(received))
    }
}

fn received(line: &[u8]) -> Option<Arc<Received>> {
    match Event::decode(line) {
        Ok(Event::Received(received)) => Some(received),
        _ => None,
    }
}
