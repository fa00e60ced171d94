//! A page of tasks, one at a time: the store says which they are and how large, a few are loaded at once (small ones come
//! with the page), and each is given away before the next is looked at. So a page of large tasks never is in memory as a whole, and of each task only
//! as much is read as was asked for. Loading and reading are apart, so that a server can read large tasks on a thread
//! where that delays no other request.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use switchboard_a2a::{ContextId, Metadata, Task, TaskId, TaskState, TaskStatus};

use crate::caller::Caller;
use crate::directory::Address;
use crate::engine::{Engine, EngineState};
use crate::error::Error;
use crate::fold::{Fold, task_line};
use crate::ids::AgentName;
use crate::store::{ListFilter, ListPosition, ListQuery, LoadedTask, Phase, TaskRow};

/// What is loaded at once: enough for a page of ordinary tasks, so that a page costs one trip to the store, and little
/// beside one large task.
const PORTION_BYTES: usize = 1 << 20;

/// One page of tasks, newest status first.
pub struct TaskPage {
    engine: Arc<EngineState>,
    caller: Caller,
    state: Option<TaskState>,
    /// Whether tasks are read with their artifacts; not unless it is set.
    pub artifacts: bool,
    /// How many of the newest messages of each task are read; all unless it is set.
    pub history: Option<usize>,
    /// Those that are not loaded yet.
    places: VecDeque<ListPosition>,
    /// The bytes of the events of all of them.
    sizes: Vec<u64>,
    /// Those that are loaded and not given yet.
    loaded: VecDeque<(ListPosition, LoadedTask)>,
    /// Where the next page begins if all of this one are taken.
    pub next_page: Option<ListPosition>,
    /// How many match in all.
    pub total: u64,
}

/// One task of a page.
#[derive(Clone, Debug)]
pub struct TaskPageEntry {
    /// Where it stands: the next page begins here if this is the last one taken.
    pub place: ListPosition,
    /// The agent that works on it.
    pub agent: AgentName,
    /// The task, with as much of it as was asked for.
    pub task: Task,
}

impl Engine {
    /// A page of the caller's tasks.
    pub async fn list(&self, address: &Address, caller: &Caller, filter: ListFilter) -> Result<TaskPage, Error> {
        let state = filter.state;
        let query = ListQuery {
            owner: caller.id.clone(),
            agents: match (address, &caller.scopes.agents) {
                (Address::Agent(name), scope) if scope.allows(name) => Some(vec![name.clone()]),
                (Address::Agent(_), _) => Some(Vec::new()),
                (Address::Root, scope) => {
                    scope.names().map(|names| [names, AgentName::OWN.map(AgentName::from).as_slice()].concat())
                }
            },
            parent: caller.scopes.agents.task().map(|scope| scope.parent),
            filter,
        };
        let page = self.inner.store.list(query).await?;
        let (places, loaded) = match page.loaded.len() == page.places.len() {
            true => (VecDeque::new(), page.places.into_iter().zip(page.loaded).collect()),
            false => (page.places.into(), VecDeque::new()),
        };
        Ok(TaskPage {
            engine: Arc::clone(&self.inner),
            caller: caller.clone(),
            state,
            artifacts: false,
            history: None,
            places,
            sizes: page.sizes,
            loaded,
            next_page: page.next,
            total: page.total,
        })
    }

    /// What the store's secret is for: sealing what callers keep for us.
    pub fn secret(&self) -> [u8; 32] {
        self.inner.store.secret()
    }
}

impl TaskPage {
    /// The bytes of all tasks of the page together, before anything is left out of them.
    pub fn bytes(&self) -> u64 {
        self.sizes.iter().sum()
    }

    /// The bytes of its largest task.
    pub fn largest(&self) -> u64 {
        self.sizes.iter().copied().max().unwrap_or_default()
    }

    /// The next task, loaded and read at once; none at the end of the page.
    pub async fn next(&mut self) -> Result<Option<TaskPageEntry>, Error> {
        loop {
            if let Some(listed) = self.next_loaded() {
                return Ok(Some(listed));
            }
            if !self.load().await? {
                return Ok(None);
            }
        }
    }

    /// The next of the tasks that are loaded; none if more must be loaded first, or there are none.
    pub fn next_loaded(&mut self) -> Option<TaskPageEntry> {
        while let Some((place, loaded)) = self.loaded.pop_front() {
            // It may have gone on since the page was made.
            if self.state.is_none_or(|state| state == loaded.row.state.state) {
                let task = self.read(&loaded);
                return Some(TaskPageEntry { place, agent: loaded.row.task.agent, task });
            }
        }
        None
    }

    /// Loads the next few, unless some are loaded; says whether there are any.
    pub async fn load(&mut self) -> Result<bool, Error> {
        if !self.loaded.is_empty() {
            return Ok(true);
        }
        if self.places.is_empty() {
            return Ok(false);
        }
        let portion = usize::try_from(self.bytes()).unwrap_or(usize::MAX).min(PORTION_BYTES);
        let keys = self.places.iter().map(|(_, key)| *key).collect();
        let some = self.engine.store.load_some(keys, portion).await?;
        for loaded in some {
            // Those before it are gone.
            while let Some(place) = self.places.pop_front() {
                if place.1 == loaded.row.key {
                    self.loaded.push_back((place, loaded));
                    break;
                }
            }
        }
        if self.loaded.is_empty() {
            self.places.clear();
        }
        Ok(!self.loaded.is_empty())
    }

    fn read(&self, loaded: &LoadedTask) -> Task {
        let row = &loaded.row;
        let read = match &loaded.snapshot {
            Some((_, _, snapshot)) if loaded.events.is_empty() => self.read_snapshot(&task_line(snapshot)),
            _ => self.engine.fold_parts(loaded, self.artifacts).map(|log| self.trimmed(log.fold.task)),
        };
        // A damaged log must not hide all the others.
        let mut task = read.unwrap_or_else(|_| bare_task(row));
        if row.state.phase != Phase::Done
            && let Some(live) = self.engine.live.get(&row.task.id)
        {
            self.engine.add_queue_position(&live, &mut task);
            self.engine.add_blocker(&live, &self.caller, &mut task);
        }
        task
    }

    fn trimmed(&self, mut task: Task) -> Task {
        if !self.artifacts {
            task.artifacts.clear();
        }
        let surplus = self.history.map_or(0, |wanted| task.history.len().saturating_sub(wanted));
        task.history.drain(..surplus);
        task
    }

    /// A stored task, of which only what was asked for is read.
    fn read_snapshot(&self, json: &[u8]) -> Result<Task, Error> {
        let decoded = serde_json::from_slice::<StoredTaskJson<'_>>(json).and_then(|stored| {
            let artifacts = stored.artifacts.filter(|_| self.artifacts);
            let surplus = self.history.map_or(0, |wanted| stored.history.len().saturating_sub(wanted));
            let newest = stored.history.into_iter().skip(surplus);
            Ok(Task {
                id: stored.id,
                context_id: stored.context_id,
                status: stored.status,
                artifacts: artifacts.map_or(Ok(Vec::new()), |artifacts| serde_json::from_str(artifacts.get()))?,
                history: newest.map(|message| serde_json::from_str(message.get())).collect::<Result<_, _>>()?,
                metadata: stored.metadata,
            })
        });
        decoded.map_err(|error| Error::damaged_task(&error))
    }
}

/// A task as [`Fold::snapshot`] writes it, its large parts left as they are.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredTaskJson<'a> {
    id: TaskId,
    context_id: ContextId,
    status: TaskStatus,
    #[serde(borrow)]
    artifacts: Option<&'a RawValue>,
    #[serde(borrow, default)]
    history: Vec<&'a RawValue>,
    metadata: Option<Metadata>,
}

/// What the row alone tells of a task whose log cannot be read.
fn bare_task(row: &TaskRow) -> Task {
    let mut task = Fold::new(&row.task).task;
    task.status.state = row.state.state;
    task.status.timestamp = Some(row.state.status_at);
    task
}
