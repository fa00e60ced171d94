//! The tasks in memory, in shards so that tasks rarely share a lock.
//!
//! Entries are weak: the users of a task keep it alive, the map only finds it. A task that nobody holds leaves its room
//! behind with its entry, so entries are forgotten whenever there are twice as many as were held the last time. If another
//! task of its shard was inserted while a task was loaded, that may have been the same one, changed and dropped since:
//! whoever finds it first compares it with the store once more (`EngineState::refresh`).

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use switchboard_a2a::TaskId;

use crate::ids::TaskKey;
use crate::live_task::LiveTask;

/// Fewer entries of a map are not looked through for those that nobody holds.
const FEW: usize = 16;

/// The tasks in memory.
pub(crate) struct LiveTasks {
    shards: Vec<Mutex<Shard>>,
    /// By the store's key, where other nodes announce theirs.
    by_key: Mutex<Entries<TaskKey>>,
}

#[derive(Default)]
struct Shard {
    tasks: Entries<TaskId>,
    insertions: Insertions,
}

struct Entries<K> {
    known: HashMap<K, Weak<LiveTask>>,
    /// With so many entries, those that nobody holds are forgotten before the next one comes.
    forget_at: usize,
}

impl<K> Default for Entries<K> {
    fn default() -> Self {
        Self { known: HashMap::new(), forget_at: FEW }
    }
}

impl<K: Hash + Eq> Entries<K> {
    fn get(&self, key: &K) -> Option<Arc<LiveTask>> {
        self.known.get(key).and_then(Weak::upgrade)
    }

    fn insert(&mut self, key: K, live: &Arc<LiveTask>) {
        if self.known.len() >= self.forget_at {
            self.known.retain(|_, weak| weak.strong_count() > 0);
            self.forget_at = (2 * self.known.len()).max(FEW);
        }
        self.known.insert(key, Arc::downgrade(live));
    }
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
        shard.tasks.get(id).ok_or(shard.insertions)
    }

    pub(crate) fn insert_or_get(&self, live: Arc<LiveTask>) -> Arc<LiveTask> {
        self.insert(live, None)
    }

    /// Inserts a task that was loaded since `before`; the one already there wins. If the task may have been in memory
    /// meanwhile, what was loaded may be behind the log: it is marked so before anyone can find it.
    pub(crate) fn insert_loaded(&self, live: Arc<LiveTask>, before: Insertions) -> Arc<LiveTask> {
        self.insert(live, Some(before))
    }

    fn insert(&self, live: Arc<LiveTask>, loaded_since: Option<Insertions>) -> Arc<LiveTask> {
        let mut shard = self.shard(&live.task.id).lock();
        if let Some(known) = shard.tasks.get(&live.task.id) {
            return known;
        }
        let may_be_behind = loaded_since.is_some_and(|before| before != shard.insertions);
        live.may_be_behind.store(may_be_behind, Ordering::Release);
        shard.insertions.0 += 1;
        shard.tasks.insert(live.task.id.clone(), &live);
        live
    }

    /// Lets a task be found by its key.
    pub(crate) fn index(&self, key: TaskKey, live: &Arc<LiveTask>) {
        self.by_key.lock().insert(key, live);
    }

    pub(crate) fn by_key(&self, key: TaskKey) -> Option<Arc<LiveTask>> {
        self.by_key.lock().get(&key)
    }

    /// Forgets a task that has ended or is no longer held.
    pub(crate) fn forget(&self, id: &TaskId) {
        self.shard(id).lock().tasks.known.remove(id);
    }

    /// All tasks in memory; those no longer held are forgotten.
    pub(crate) fn all(&self) -> Vec<Arc<LiveTask>> {
        self.by_key.lock().known.retain(|_, weak| weak.strong_count() > 0);
        let mut all = Vec::new();
        for shard in &self.shards {
            shard.lock().tasks.known.retain(|_, weak| {
                let live = weak.upgrade();
                let held = live.is_some();
                all.extend(live);
                held
            });
        }
        all
    }
}
