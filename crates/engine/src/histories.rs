//! Histories of conversations that an agent has asked for, kept at hand.
//!
//! The tasks are the truth; this only spares an agent that reads its conversation on every turn the folding of all of
//! them. An entry is dropped as soon as a task of its conversation changes, and the least recently used ones go when
//! there are too many (`limits.contexts`) or they are too large together.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use switchboard_a2a::{ContextId, Message, TaskId};

use crate::ids::{AgentName, CallerId};
use crate::store::NewTask;

/// All histories together stay below this.
const MOST_BYTES: usize = 32 << 20;

type Conversation = (CallerId, AgentName, ContextId);

/// The histories at hand.
#[derive(Default)]
pub(crate) struct Histories {
    kept: Mutex<Kept>,
    /// So that a server whose agents never look back pays nothing.
    count: AtomicUsize,
}

#[derive(Default)]
struct Kept {
    entries: HashMap<Conversation, Entry>,
    by_use: BTreeMap<u64, Conversation>,
    /// Conversations being read now, and by which read. A change takes them out, so that nothing stale is kept.
    reading: HashMap<Conversation, u64>,
    uses: u64,
    bytes: usize,
}

struct Entry {
    /// Newest first.
    messages: Arc<[Message]>,
    /// The task that asked; a history leaves its own task out.
    asker: TaskId,
    /// How many were asked for when it was made.
    wanted: usize,
    bytes: usize,
    used: u64,
}

impl Histories {
    /// The newest messages, newest first, if they are at hand.
    pub(crate) fn get(&self, task: &NewTask, wanted: usize) -> Option<Arc<[Message]>> {
        let mut kept = self.kept.lock();
        kept.uses += 1;
        let now = kept.uses;
        let conversation = conversation(task);
        let entry =
            kept.entries.get_mut(&conversation).filter(|entry| entry.wanted >= wanted && entry.asker == task.id)?;
        let before = std::mem::replace(&mut entry.used, now);
        let messages = entry.messages.clone();
        kept.by_use.remove(&before);
        kept.by_use.insert(now, conversation);
        Some(messages)
    }

    /// Says that a conversation is about to be read from the store; the answer names the read to `keep`.
    pub(crate) fn begin(&self, task: &NewTask) -> u64 {
        let mut kept = self.kept.lock();
        kept.uses += 1;
        let read = kept.uses;
        kept.reading.insert(conversation(task), read);
        self.recount(&kept);
        read
    }

    /// Keeps the newest messages of a conversation, newest first, unless it changed while they were read.
    pub(crate) fn keep(&self, task: &NewTask, read: u64, wanted: usize, messages: Arc<[Message]>, most: usize) {
        let bytes = messages.iter().map(weight).sum();
        let mut kept = self.kept.lock();
        let unchanged = kept.reading.get(&conversation(task)) == Some(&read);
        if !unchanged {
            return;
        }
        kept.reading.remove(&conversation(task));
        kept.remove(&conversation(task));
        if bytes > MOST_BYTES / 8 || most == 0 {
            self.recount(&kept);
            return;
        }
        kept.uses += 1;
        let used = kept.uses;
        kept.bytes += bytes;
        kept.by_use.insert(used, conversation(task));
        kept.entries.insert(conversation(task), Entry { messages, asker: task.id.clone(), wanted, bytes, used });
        while kept.entries.len() > most || kept.bytes > MOST_BYTES {
            let Some((_, oldest)) = kept.by_use.pop_first() else { break };
            kept.remove(&oldest);
        }
        self.recount(&kept);
    }

    /// A task of the conversation has changed.
    pub(crate) fn forget(&self, task: &NewTask) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut kept = self.kept.lock();
        kept.reading.remove(&conversation(task));
        kept.remove(&conversation(task));
        self.recount(&kept);
    }

    fn recount(&self, kept: &Kept) {
        self.count.store(kept.entries.len() + kept.reading.len(), Ordering::Release);
    }
}

impl Kept {
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
        NewTask { id: "asker".into(), owner: "ann".into(), agent: "echo".into(), context: context.into() }
    }

    fn keep(histories: &Histories, context: &str, text: &str, most: usize) {
        let read = histories.begin(&task(context));
        histories.keep(&task(context), read, 5, said(text), most);
    }

    fn said(text: &str) -> Arc<[Message]> {
        Arc::from(vec![Message::text(Role::User, text)])
    }

    #[test]
    fn the_least_recently_used_goes_first_and_a_change_forgets() {
        let histories = Histories::default();
        keep(&histories, "a", "a", 2);
        keep(&histories, "b", "b", 2);
        assert!(histories.get(&task("a"), 5).is_some());
        keep(&histories, "c", "c", 2);
        assert!(histories.get(&task("b"), 5).is_none(), "b was used least recently");
        assert!(histories.get(&task("a"), 6).is_none(), "fewer were read than are wanted now");
        histories.forget(&task("a"));
        assert!(histories.get(&task("a"), 5).is_none());
        assert_eq!(histories.get(&task("c"), 1).unwrap()[0].joined_text(), "c");
        let kept = histories.kept.lock();
        assert_eq!((kept.entries.len(), kept.by_use.len()), (1, 1));
    }

    #[test]
    fn what_changed_while_it_was_read_is_not_kept() {
        let histories = Histories::default();
        let read = histories.begin(&task("a"));
        histories.forget(&task("a"));
        histories.keep(&task("a"), read, 5, said("stale"), 2);
        assert!(histories.get(&task("a"), 5).is_none());
        assert_eq!(histories.count.load(Ordering::Acquire), 0);
    }

    #[test]
    fn together_they_stay_below_the_limit() {
        let histories = Histories::default();
        let large = "x".repeat(MOST_BYTES / 10);
        for number in 0..20 {
            keep(&histories, &number.to_string(), &large, 100);
        }
        let kept = histories.kept.lock();
        assert!(kept.bytes <= MOST_BYTES && kept.entries.len() == 9, "{} entries", kept.entries.len());
    }
}
