//! The tasks in memory, in shards so that tasks rarely share a lock.
//!
//! Entries are weak: the users of a task keep it alive, the map only finds it. If another task of its shard was inserted
//! while a task was loaded, that may have been the same one, changed and dropped since: it is compared with the store
//! once more (`EngineState::adopt`).

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use switchboard_a2a::TaskId;

use crate::ids::TaskKey;
use crate::live_task::LiveTask;

/// The tasks in memory.
pub(crate) struct LiveTasks {
    shards: Vec<Mutex<Shard>>,
    /// By the store's key, where other nodes announce theirs.
    by_key: Mutex<HashMap<TaskKey, Weak<LiveTask>>>,
}

#[derive(Default)]
struct Shard {
    tasks: HashMap<TaskId, Weak<LiveTask>>,
    insertions: Insertions,
}

/// How many tasks were ever inserted into a shard.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Insertions(u64);

impl Default for LiveTasks {
    fn default() -> Self {
        Self { shards: (0..64).map(|_| Mutex::default()).collect(), by_key: Mutex::default() }
    }
}

impl LiveTasks {
    fn shard(&self, id: &TaskId) -> &Mutex<Shard> {
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        &self.shards[(hasher.finish() % self.shards.len() as u64) as usize]
    }

    pub(crate) fn get(&self, id: &TaskId) -> Option<Arc<LiveTask>> {
        self.find(id).ok()
    }

    /// A task in memory, or how many were inserted beside it until now, for [`Self::insert_loaded`].
    pub(crate) fn find(&self, id: &TaskId) -> Result<Arc<LiveTask>, Insertions> {
        let shard = self.shard(id).lock();
        shard.tasks.get(id).and_then(Weak::upgrade).ok_or(shard.insertions)
    }

    pub(crate) fn insert_or_get(&self, live: Arc<LiveTask>) -> Arc<LiveTask> {
        self.insert_loaded(live, Insertions::default()).0
    }

    /// Inserts a task that was loaded since `before`; the one already there wins. Says whether the task may have been in
    /// memory meanwhile, so that what was loaded may be behind the log.
    pub(crate) fn insert_loaded(&self, live: Arc<LiveTask>, before: Insertions) -> (Arc<LiveTask>, bool) {
        let mut shard = self.shard(&live.task.id).lock();
        let may_be_behind = shard.insertions != before;
        if let Some(known) = shard.tasks.get(&live.task.id).and_then(Weak::upgrade) {
            return (known, may_be_behind);
        }
        shard.insertions.0 += 1;
        shard.tasks.insert(live.task.id.clone(), Arc::downgrade(&live));
        (live, may_be_behind)
    }

    /// Lets a task be found by its key.
    pub(crate) fn index(&self, key: TaskKey, live: &Arc<LiveTask>) {
        self.by_key.lock().insert(key, Arc::downgrade(live));
    }

    pub(crate) fn by_key(&self, key: TaskKey) -> Option<Arc<LiveTask>> {
        self.by_key.lock().get(&key).and_then(Weak::upgrade)
    }

    /// Forgets a task that has ended or is no longer held.
    pub(crate) fn forget(&self, id: &TaskId) {
        self.shard(id).lock().tasks.remove(id);
    }

    /// All tasks in memory; those no longer held are forgotten.
    pub(crate) fn all(&self) -> Vec<Arc<LiveTask>> {
        self.by_key.lock().retain(|_, weak| weak.strong_count() > 0);
        let mut all = Vec::new();
        for shard in &self.shards {
            shard.lock().tasks.retain(|_, weak| {
                let live = weak.upgrade();
                let held = live.is_some();
                all.extend(live);
                held
            });
        }
        all
    }
}
