//! What a task has used: of its own, and with all that it has called.
//!
//! A child that ends is told to its parent, whose turn writes that into its log: so the task, its stream and its webhooks
//! say the same, and reading a task costs no query. Each child counts by its id, however often it is told. What comes while
//! no turn may write, because the task is parked or its answer waits for a permit, is kept until one does, or until the
//! terminal event. After a crash the recovered turn finds its children in the store, with and without a key, and so does
//! a parked task that was not in memory, when it is answered or ended: those that have ended meanwhile have told nobody.
//!
//! Not told are children that end once the terminal event of their parent is on its way (a program's, which are canceled
//! then). `GET /api/tasks/{id}/tree` adds up the rows of the whole tree and counts every one.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use serde::{Deserialize, Serialize};
use switchboard_a2a::{Json, Metadata, TaskId};

use crate::engine::{Engine, EngineState};
use crate::error::Error;
use crate::event::{ChildUsage, Event, Usage};
use crate::fold::USAGE_KEY;
use crate::ids::TaskKey;
use crate::live_task::{Core, LiveTask, Output};
use crate::output::push;
use crate::store::Phase;

/// How many rows of a tree are read at a time.
const PAGE: usize = 256;

/// What the metadata of a task say of its usage. The members of the task's own usage stand beside `own` too, where readers
/// that know of no tree find them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskUsage {
    /// What the task itself has used.
    #[serde(flatten)]
    pub(crate) own: Usage,
    #[serde(rename = "own", default, skip_deserializing)]
    nested: Usage,
    /// The same with what it has called, as far as that had ended.
    #[serde(default)]
    tree: Option<Usage>,
}

impl TaskUsage {
    /// The usage of a task and of the trees of its children.
    pub(crate) fn new(own: Usage, children: impl IntoIterator<Item = Usage>) -> Self {
        let tree = children.into_iter().fold(own, Usage::plus);
        Self { own, nested: own, tree: Some(tree) }
    }

    /// What the metadata of a task or of its last event say.
    pub fn read(metadata: Option<&Metadata>) -> Option<Self> {
        metadata?.get(USAGE_KEY)?.read().ok()
    }

    /// What the task and all that it has called have used.
    pub fn tree(&self) -> Usage {
        self.tree.unwrap_or(self.own)
    }

    pub(crate) fn write_to(self, metadata: &mut Metadata) {
        // Numbers cannot fail to be JSON.
        if let Ok(value) = Json::from_serialize(&self) {
            metadata.insert(USAGE_KEY, value);
        }
    }
}

impl Engine {
    /// What a task itself has used so far, if it is in memory: then its log need not be read for it.
    pub fn usage_in_memory(&self, id: &TaskId) -> Option<Usage> {
        let live = self.inner.live.get(id)?;
        let core = live.core.lock();
        Some(TaskUsage::read(core.fold.task.metadata.as_ref()).map(|used| used.own).unwrap_or_default())
    }
}

/// Adds what the task has used to a terminal event's metadata, if that is known.
pub(crate) fn with_usage(core: &Core, metadata: Option<Metadata>) -> Option<Metadata> {
    let own = core.output.usage.or(core.fold.kernel.used);
    // What was told last counts: of one that is not written, then not committed, then in the log.
    let Output { children, unwritten_children, .. } = &core.output;
    let told = core.fold.kernel.children_used.iter().chain(children).chain(unwritten_children);
    let children: BTreeMap<&TaskId, Usage> = told.map(|(id, tree)| (id, *tree)).collect();
    if own.is_none() && children.is_empty() {
        return metadata;
    }
    let mut metadata = metadata.unwrap_or_default();
    TaskUsage::new(own.unwrap_or_default(), children.into_values()).write_to(&mut metadata);
    Some(metadata)
}

impl Output {
    /// What is known of children and may not be in the log.
    pub(crate) fn take_children(&mut self) -> BTreeMap<TaskId, Usage> {
        let mut children = std::mem::take(&mut self.children);
        children.append(&mut self.unwritten_children);
        children
    }
}

impl Core {
    /// Whether the log has this of a child, or will have it with the turn's output.
    fn has_written(&self, child: &TaskId, tree: &Usage) -> bool {
        let known = self.output.children.get(child).or_else(|| self.fold.kernel.children_used.get(child));
        known == Some(tree)
    }
}

impl LiveTask {
    /// Says which task has called this one, and tells it at once if this one has ended.
    pub(crate) fn called_by(&self, engine: &EngineState, parent: &Arc<Self>) {
        *self.parent.lock() = Arc::downgrade(parent);
        self.tell_usage(engine);
    }

    /// Tells the calling task what this one has used with all that it has called, if it has ended. The caller holds no
    /// task's lock.
    pub(crate) fn tell_usage(&self, engine: &EngineState) {
        let Some(parent) = Weak::upgrade(&self.parent.lock()) else { return };
        let used = {
            let core = self.core.lock();
            if !core.is_done() {
                return;
            }
            TaskUsage::read(core.fold.task.metadata.as_ref())
        };
        let Some(tree) = used.map(|used| used.tree()).filter(|tree| *tree != Usage::default()) else { return };
        parent.take_child_usage(engine, &self.task.id, tree);
    }

    /// Takes what a child has used, unless that is written.
    fn take_child_usage(&self, engine: &EngineState, child: &TaskId, tree: Usage) {
        let mut core = self.core.lock();
        if core.is_done() || core.has_written(child, &tree) {
            return;
        }
        core.output.unwritten_children.insert(child.clone(), tree);
        self.write_children(engine, &mut core);
    }

    /// Writes what children have used, if a turn here may write.
    pub(crate) fn write_children(&self, engine: &EngineState, core: &mut Core) {
        let state = core.output.state;
        let is_parked = state.is_interrupted() && self.may_park(core);
        let may_write = core.turn.owns(core.row.fence) && !core.is_done() && !state.is_terminal() && !is_parked;
        if core.output.unwritten_children.is_empty() || !may_write {
            return;
        }
        for (child, tree) in std::mem::take(&mut core.output.unwritten_children) {
            if core.has_written(&child, &tree) {
                continue;
            }
            let event = Event::ChildUsed(ChildUsage { child: child.clone(), tree });
            let written = push(engine, self, core, event).is_ok();
            let known = if written { &mut core.output.children } else { &mut core.output.unwritten_children };
            known.insert(child, tree);
        }
    }
}

impl EngineState {
    /// Finds the children of a turn that lost its process: those that have ended tell it what they have used, the others
    /// will.
    pub(crate) async fn link_children(&self, live: &Arc<LiveTask>) -> Result<(), Error> {
        let Some(key) = live.core.lock().key else { return Ok(()) };
        let root = live.task.lineage.ancestors.map_or(key, |ancestors| ancestors.root);
        let mut held = Vec::new();
        // A child has a greater key than its parent.
        let mut after: TaskKey = key;
        loop {
            let rows = self.store.tree(root, after, PAGE).await?;
            let Some(last) = rows.last() else { break };
            after = last.key;
            for row in rows.iter().filter(|row| row.task.parent() == Some(key)) {
                let is_written = live.core.lock().fold.kernel.children_used.contains_key(&row.task.id);
                if is_written {
                    continue;
                }
                let Some(child) = self.find_task(&row.task.id).await? else { continue };
                child.called_by(self, live);
                let is_live = !child.core.lock().is_done();
                if is_live {
                    held.push(child);
                }
            }
        }
        *live.held_children.lock() = held;
        Ok(())
    }

    /// The same for a parked task that is about to be answered or ended, if its agent is not in memory here. That is not
    /// refused because a child cannot be read.
    pub(crate) async fn link_children_of_parked(&self, live: &Arc<LiveTask>) {
        let is_left = {
            let core = live.core.lock();
            core.row.phase == Phase::Parked && core.turn.driven().is_none()
        };
        // Boxed: few tasks that are answered or ended have been put away.
        if is_left && let Err(error) = Box::pin(self.link_children(live)).await {
            tracing::warn!(task = %live.task.id, %error, "what the children of a task have used could not be read");
        }
    }
}
