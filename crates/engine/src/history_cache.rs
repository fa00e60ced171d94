//! A cache of the message history of conversations, for agents that read it on every turn.
//!
//! Each entry names its task and the last event it includes, and is used only while the task's row agrees. The least
//! recently used conversations go when there are too many (`limits.contexts`) or they are too large together.

use std::sync::Arc;

use parking_lot::Mutex;
use switchboard_a2a::{Message, TaskId};

use crate::byte_cache::ByteCache;
use crate::ids::Seq;
use crate::store::{Conversation, TaskIdentity, TaskRow};

/// All conversations together stay below this.
const MAX_BYTES: usize = 32 << 20;

/// The messages of one task.
#[derive(Clone)]
pub(crate) struct TaskHistory {
    pub(crate) task: TaskId,
    /// The event it is as of.
    pub(crate) last_seq: Seq,
    /// Oldest first.
    pub(crate) messages: Arc<[Message]>,
}

impl TaskHistory {
    /// Whether it is what the row's task says now.
    pub(crate) fn is_of(&self, row: &TaskRow) -> bool {
        self.task == row.task.id && self.last_seq == row.last_seq
    }
}

/// The cached conversations.
#[derive(Default)]
pub(crate) struct HistoryCache {
    conversations: Mutex<ByteCache<Conversation, Arc<[TaskHistory]>>>,
}

impl HistoryCache {
    /// What is cached of a task's conversation.
    pub(crate) fn get(&self, task: &TaskIdentity) -> Option<Arc<[TaskHistory]>> {
        self.conversations.lock().touch(&task.conversation()).cloned()
    }

    /// Keeps what was read of a task's conversation, for at most `max` conversations.
    pub(crate) fn keep(&self, task: &TaskIdentity, histories: Vec<TaskHistory>, max: usize) {
        let bytes = histories.iter().flat_map(|history| history.messages.iter()).map(weight).sum();
        let mut conversations = self.conversations.lock();
        if histories.is_empty() || bytes > MAX_BYTES / 8 {
            return conversations.remove(&task.conversation());
        }
        conversations.insert(task.conversation(), histories.into(), bytes, max, MAX_BYTES);
    }
}

/// About how much memory a message takes.
fn weight(message: &Message) -> usize {
    512 + serde_json::to_vec(message).map_or(0, |json| json.len())
}
