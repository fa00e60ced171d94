//! A cache of ended tasks as the bytes they are answered with: a task that callers poll should not cost a read of the
//! store each time. Ended tasks never change, so no entry is stale; when retention deletes tasks, it is emptied.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::RwLock;
use switchboard_a2a::TaskId;

use crate::byte_cache::ByteCache;
use crate::store::TaskIdentity;

/// What all shards keep together.
const MAX_BYTES: usize = 16 << 20;
/// What an entry takes beside its JSON: the identity of the task, the table's slot, the order of use. Of a short task that
/// is nearly half.
const ENTRY_BYTES: usize = 448;
const SHARDS: usize = 16;

type Shard = ByteCache<TaskId, (TaskIdentity, Bytes)>;

/// The cached tasks, in shards.
#[derive(Default)]
pub(crate) struct TerminalTaskCache {
    shards: [RwLock<Shard>; SHARDS],
    /// Rises with every deletion, so that a task read before it is not kept after it.
    deletions: AtomicU64,
}

impl TerminalTaskCache {
    fn shard(&self, id: &TaskId) -> &RwLock<Shard> {
        // The last bytes of our ids are random.
        let last = id.as_str().bytes().rev().take(2).fold(0usize, |sum, byte| sum * 31 + usize::from(byte));
        &self.shards[last % SHARDS]
    }

    pub(crate) fn get(&self, id: &TaskId) -> Option<(TaskIdentity, Bytes)> {
        self.shard(id).read().peek(id).cloned()
    }

    /// How many deletions there were; taken before a task is read and given to `keep`.
    pub(crate) fn deletions(&self) -> u64 {
        self.deletions.load(Ordering::Acquire)
    }

    pub(crate) fn keep(&self, task: &TaskIdentity, json: &[u8], deletions: u64) {
        let max_bytes = MAX_BYTES / SHARDS;
        let bytes = json.len() + ENTRY_BYTES;
        let mut shard = self.shard(&task.id).write();
        if bytes <= max_bytes / 8 && self.deletions() == deletions && shard.peek(&task.id).is_none() {
            // A copy, because the buffer it was encoded into may be larger.
            let json = Bytes::copy_from_slice(json);
            shard.insert(task.id.clone(), (task.clone(), json), bytes, usize::MAX, max_bytes);
        }
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

    #[test]
    fn what_was_read_before_a_deletion_is_not_kept_after_it() {
        let cache = TerminalTaskCache::default();
        let task = TaskIdentity {
            id: TaskId::generate(),
            owner: "ann".into(),
            agent: "a".into(),
            context: "c".into(),
            lineage: Lineage::default(),
        };
        let read_at = cache.deletions();
        cache.keep(&task, b"{}", read_at);
        assert!(cache.get(&task.id).is_some());
        cache.clear();
        cache.keep(&task, b"{}", read_at);
        assert!(cache.get(&task.id).is_none());
        cache.keep(&task, &vec![b'x'; MAX_BYTES / SHARDS], cache.deletions());
        assert!(cache.get(&task.id).is_none(), "one task may not take the place of many");
    }
}
