//! A cache of the message history of conversations, for agents that read it on every turn.
//!
//! Each entry names its task and the last event it includes, and is used only while the task's row agrees. The least
//! recently used conversations go when there are too many (`limits.contexts`) or they are too large together.

use std::sync::Arc;

use parking_lot::Mutex;
use switchboard_a2a::{ContextId, Message, TaskId};

use crate::byte_cache::ByteCache;
use crate::ids::{AgentName, CallerId, Seq};
use crate::store::{NewTask, TaskRow};

/// All conversations together stay below this.
const MAX_BYTES: usize = 32 << 20;

type Conversation = (CallerId, AgentName, ContextId);

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
    pub(crate) fn get(&self, task: &NewTask) -> Option<Arc<[TaskHistory]>> {
        self.conversations.lock().touch(&conversation(task)).cloned()
    }

    /// Keeps what was read of a task's conversation, for at most `max` conversations.
    pub(crate) fn keep(&self, task: &NewTask, histories: Vec<TaskHistory>, max: usize) {
        let bytes = histories.iter().flat_map(|history| history.messages.iter()).map(weight).sum();
        let mut conversations = self.conversations.lock();
        if histories.is_empty() || bytes > MAX_BYTES / 8 {
            return conversations.remove(&conversation(task));
        }
        conversations.insert(conversation(task), histories.into(), bytes, max, MAX_BYTES);
    }
}

fn conversation(task: &NewTask) -> Conversation {
    (task.owner.clone(), task.agent.clone(), task.context.clone())
}

/// About how much memory a message takes.
fn weight(message: &Message) -> usize {
    512 + serde_json::to_vec(message).map_or(0, |json| json.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchboard_a2a::Role;

    fn task(context: &str) -> NewTask {
        NewTask { id: TaskId::generate(), owner: "ann".into(), agent: "echo".into(), context: context.into() }
    }

    fn history(text: &str) -> Vec<TaskHistory> {
        vec![TaskHistory { task: "t".into(), last_seq: Seq(3), messages: Arc::from([Message::text(Role::User, text)]) }]
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let histories = HistoryCache::default();
        histories.keep(&task("a"), history("a"), 2);
        histories.keep(&task("b"), history("b"), 2);
        assert!(histories.get(&task("a")).is_some());
        histories.keep(&task("c"), history("c"), 2);
        assert!(histories.get(&task("b")).is_none(), "b was used least recently");
        assert_eq!(histories.get(&task("a")).unwrap()[0].messages[0].joined_text(), "a");
        assert_eq!(histories.conversations.lock().counts().0, 2);
    }

    #[test]
    fn together_they_stay_below_the_limit() {
        let histories = HistoryCache::default();
        let large = "x".repeat(MAX_BYTES / 10);
        for number in 0..20 {
            histories.keep(&task(&number.to_string()), history(&large), 100);
        }
        let (entries, bytes) = histories.conversations.lock().counts();
        assert!(bytes <= MAX_BYTES && entries == 9, "{entries} entries");
    }
}
