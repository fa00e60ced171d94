//! A cache of the message history of conversations, for agents that read it on every turn.
//!
//! Each entry names its task and the last event it includes, and is used only while the task's row agrees. The least
//! recently used conversations go when there are too many (`limits.contexts`) or they are too large together.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use switchboard_a2a::{ContextId, Message, TaskId};

use crate::ids::{AgentName, CallerId, Seq};
use crate::store::{NewTask, TaskRow};

/// All conversations together stay below this.
const MOST_BYTES: usize = 32 << 20;

type Conversation = (CallerId, AgentName, ContextId);

/// The messages of one task.
#[derive(Clone)]
pub(crate) struct TaskHistory {
    pub(crate) task: TaskId,
    /// The event it is as of.
    pub(crate) last_seq: Seq,
    /// Oldest first.
    pub(crate) said: Arc<[Message]>,
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
    kept: Mutex<CachedHistories>,
}

#[derive(Default)]
struct CachedHistories {
    entries: HashMap<Conversation, CachedConversation>,
    by_use: BTreeMap<u64, Conversation>,
    uses: u64,
    bytes: usize,
}

struct CachedConversation {
    pieces: Arc<[TaskHistory]>,
    bytes: usize,
    used: u64,
}

impl HistoryCache {
    /// What is cached of a task's conversation.
    pub(crate) fn get(&self, task: &NewTask) -> Option<Arc<[TaskHistory]>> {
        let mut kept = self.kept.lock();
        kept.uses += 1;
        let now = kept.uses;
        let conversation = conversation(task);
        let entry = kept.entries.get_mut(&conversation)?;
        let before = std::mem::replace(&mut entry.used, now);
        let pieces = entry.pieces.clone();
        kept.by_use.remove(&before);
        kept.by_use.insert(now, conversation);
        Some(pieces)
    }

    /// Keeps what was read of a task's conversation, for at most `most` conversations.
    pub(crate) fn keep(&self, task: &NewTask, pieces: Vec<TaskHistory>, most: usize) {
        let bytes = pieces.iter().flat_map(|piece| piece.said.iter()).map(weight).sum();
        let mut kept = self.kept.lock();
        kept.remove(&conversation(task));
        if pieces.is_empty() || bytes > MOST_BYTES / 8 {
            return;
        }
        kept.uses += 1;
        let used = kept.uses;
        kept.bytes += bytes;
        kept.by_use.insert(used, conversation(task));
        kept.entries.insert(conversation(task), CachedConversation { pieces: pieces.into(), bytes, used });
        while kept.entries.len() > most || kept.bytes > MOST_BYTES {
            let Some((_, oldest)) = kept.by_use.pop_first() else { break };
            kept.remove(&oldest);
        }
    }
}

impl CachedHistories {
    fn remove(&mut self, conversation: &Conversation) {
        if let Some(entry) = self.entries.remove(conversation) {
            self.by_use.remove(&entry.used);
            self.bytes -= entry.bytes;
        }
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

    fn piece(text: &str) -> Vec<TaskHistory> {
        vec![TaskHistory { task: "t".into(), last_seq: Seq(3), said: Arc::from([Message::text(Role::User, text)]) }]
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let histories = HistoryCache::default();
        histories.keep(&task("a"), piece("a"), 2);
        histories.keep(&task("b"), piece("b"), 2);
        assert!(histories.get(&task("a")).is_some());
        histories.keep(&task("c"), piece("c"), 2);
        assert!(histories.get(&task("b")).is_none(), "b was used least recently");
        assert_eq!(histories.get(&task("a")).unwrap()[0].said[0].joined_text(), "a");
        let kept = histories.kept.lock();
        assert_eq!((kept.entries.len(), kept.by_use.len()), (2, 2));
    }

    #[test]
    fn together_they_stay_below_the_limit() {
        let histories = HistoryCache::default();
        let large = "x".repeat(MOST_BYTES / 10);
        for number in 0..20 {
            histories.keep(&task(&number.to_string()), piece(&large), 100);
        }
        let kept = histories.kept.lock();
        assert!(kept.bytes <= MOST_BYTES && kept.entries.len() == 9, "{} entries", kept.entries.len());
    }
}
