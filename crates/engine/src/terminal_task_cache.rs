//! A cache of ended tasks as the bytes they are answered with: a task that callers poll should not cost a read of the
//! store each time. Ended tasks never change, so no entry is stale; when retention deletes tasks, it is emptied.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::RwLock;
use switchboard_a2a::TaskId;

use crate::caller::Caller;
use crate::directory::Address;
use crate::engine::is_visible;
use crate::ids::{AgentName, CallerId, TaskKey};
use crate::store::TaskIdentity;

/// What all shards keep together.
const MAX_BYTES: usize = 10 << 20;
/// What an entry takes beside its JSON: its id, the table's slot, its place in the order.
const ENTRY_BYTES: usize = 256;
const SHARDS: usize = 16;

/// The cached tasks, in shards.
#[derive(Default)]
pub(crate) struct TerminalTaskCache {
    shards: [RwLock<Shard>; SHARDS],
    /// Rises with every deletion, so that a task read before it is not kept after it.
    deletions: AtomicU64,
}

/// In the order they came, and the oldest go first: an order by use would have to be written with every read.
#[derive(Default)]
struct Shard {
    tasks: HashMap<TaskId, TerminalTask>,
    order: VecDeque<TaskId>,
    bytes: usize,
}

/// An ended task, and what tells who may see it.
struct TerminalTask {
    owner: CallerId,
    agent: AgentName,
    parent: Option<TaskKey>,
    json: Bytes,
}

/// What is known of a task that was asked for.
pub(crate) enum Cached {
    /// It has ended, and this is its v1.0 JSON.
    Task(Bytes),
    /// It has ended, and the caller may not see it here.
    Invisible,
    /// Nothing.
    Unknown,
}

impl TerminalTaskCache {
    fn shard(&self, id: &TaskId) -> &RwLock<Shard> {
        // The last bytes of our ids are random.
        let last = id
            .as_str()
            .bytes()
            .rev()
            .take(8)
            .fold(0usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(byte)));
        &self.shards[last % SHARDS]
    }

    /// A task as a caller sees it at an address.
    pub(crate) fn get(&self, address: &Address, caller: &Caller, id: &TaskId) -> Cached {
        let shard = self.shard(id).read();
        let Some(TerminalTask { owner, agent, parent, json }) = shard.tasks.get(id) else { return Cached::Unknown };
        match is_visible(address, caller, owner, agent, *parent) {
            true => Cached::Task(json.clone()),
            false => Cached::Invisible,
        }
    }

    /// How many deletions there were; taken before a task is read and given to `keep`.
    pub(crate) fn deletions(&self) -> u64 {
        self.deletions.load(Ordering::Acquire)
    }

    pub(crate) fn keep(&self, task: &TaskIdentity, json: &[u8], deletions: u64) {
        let max_bytes = MAX_BYTES / SHARDS;
        let bytes = json.len() + ENTRY_BYTES;
        let mut shard = self.shard(&task.id).write();
        if bytes > max_bytes / 8 || self.deletions() != deletions || shard.tasks.contains_key(&task.id) {
            return;
        }
        while shard.bytes + bytes > max_bytes
            && let Some(oldest) = shard.order.pop_front()
        {
            let removed = shard.tasks.remove(&oldest);
            shard.bytes -= removed.map_or(0, |removed| removed.json.len() + ENTRY_BYTES);
        }
        // A copy, because the buffer it was encoded into may be larger.
        let json = Bytes::copy_from_slice(json);
        let entry = TerminalTask { owner: task.owner.clone(), agent: task.agent.clone(), parent: task.parent(), json };
        shard.tasks.insert(task.id.clone(), entry);
        shard.order.push_back(task.id.clone());
        shard.bytes += bytes;
    }

    pub(crate) fn clear(&self) {
        self.deletions.fetch_add(1, Ordering::AcqRel);
        for shard in &self.shards {
            *shard.write() = Shard::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::lineage::Lineage;

    fn task() -> TaskIdentity {
        TaskIdentity {
            id: TaskId::generate(),
            owner: "local".into(),
            agent: "a".into(),
            context: "c".into(),
            lineage: Lineage::default(),
        }
    }

    fn is_kept(cache: &TerminalTaskCache, task: &TaskIdentity) -> bool {
        matches!(cache.get(&Address::Root, &Caller::local(), &task.id), Cached::Task(_))
    }

    #[test]
    fn what_was_read_before_a_deletion_is_not_kept_after_it() {
        let (cache, task) = (TerminalTaskCache::default(), task());
        let read_at = cache.deletions();
        cache.keep(&task, b"{}", read_at);
        assert!(is_kept(&cache, &task));
        let elsewhere = Address::Agent("b".into());
        assert!(matches!(cache.get(&elsewhere, &Caller::local(), &task.id), Cached::Invisible));
        cache.clear();
        cache.keep(&task, b"{}", read_at);
        assert!(!is_kept(&cache, &task));
        cache.keep(&task, &vec![b'x'; MAX_BYTES / SHARDS], cache.deletions());
        assert!(!is_kept(&cache, &task), "one task may not take the place of many");
    }

    #[test]
    fn the_oldest_go_first_and_the_bytes_stay_below_their_limit() {
        let cache = TerminalTaskCache::default();
        let tasks: Vec<_> = (0..800).map(|_| task()).collect();
        let json = vec![b'x'; MAX_BYTES / SHARDS / 10];
        for task in &tasks {
            cache.keep(task, &json, 0);
            cache.keep(task, &json, 0);
        }
        for shard in &cache.shards {
            let shard = shard.read();
            let bytes: usize = shard.tasks.values().map(|task| task.json.len() + ENTRY_BYTES).sum();
            assert!(shard.bytes == bytes && bytes <= MAX_BYTES / SHARDS && shard.order.len() == shard.tasks.len());
        }
        assert!(is_kept(&cache, &tasks[799]) && !is_kept(&cache, &tasks[0]));
        let kept = tasks.iter().filter(|task| is_kept(&cache, task)).count();
        assert!(kept >= 9 * SHARDS / 2, "{kept} are kept");
    }
}
