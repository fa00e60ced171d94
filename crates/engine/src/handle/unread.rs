//! Messages that wait while a turn runs. An agent that joins several into one looks at them first, and takes them together
//! with what it saves of them: a message that was taken and is in nothing that was saved would be lost with the process.

use switchboard_a2a::{TaskId, Timestamp};

use crate::engine::Engine;
use crate::error::Error;
use crate::event::Event;
use crate::fold::NumberedMessage;
use crate::handle::{Stopped, TaskHandle};
use crate::ids::Seq;
use crate::live_task::Core;

impl TaskHandle {
    /// The messages that no turn has taken, oldest first. They stay.
    pub fn unread(&self) -> Vec<NumberedMessage> {
        self.live.core.lock().unread()
    }

    /// When a message was received that waits, or that the turn has got last.
    pub fn received_at(&self, seq: Seq) -> Option<Timestamp> {
        let core = self.live.core.lock();
        let kernel = &core.fold.kernel;
        let mut known = kernel.current.iter().chain(&kernel.unread);
        known.find(|message| message.seq == seq.0).map(|message| message.received.at)
    }

    /// Resolves once a message waits whose number is above this one.
    pub async fn unread_after(&self, seq: Seq) -> Result<(), Stopped> {
        self.live
            .wait_for(|core| {
                if self.must_stop(core) {
                    return Some(Err(self.stopped(core)));
                }
                let is_there = core.fold.kernel.unread.iter().any(|unread| unread.seq > seq.0);
                is_there.then_some(Ok(()))
            })
            .await
    }

    /// Takes what waits up to this number and saves something, and returns once that is committed. What is saved comes first
    /// in the log: a turn that finds it may find messages of it still waiting, and takes them once more, but none is missing.
    pub async fn take_unread(&self, through: Seq, saved: &impl serde::Serialize) -> Result<(), Stopped> {
        self.push_saved(saved).await?;
        let mark = {
            let mut core = self.live.core.lock();
            let waiting: Vec<u64> =
                core.unread().iter().map(|unread| unread.seq).filter(|seq| *seq <= through.0).collect();
            for seq in waiting {
                self.push(&mut core, Event::Joined(seq))?;
                core.output.taken = seq;
            }
            core.output.pushed
        };
        self.committed_or_stopped(mark).await
    }

    /// Whether this task was started by a turn of that one.
    pub fn is_child_of(&self, other: &Self) -> bool {
        let key = other.live.core.lock().key;
        key.is_some() && self.live.task.parent() == key
    }
}

impl Engine {
    /// The messages of a task that no turn has taken, oldest first. They stay.
    pub async fn unread(&self, id: &TaskId) -> Result<Vec<NumberedMessage>, Error> {
        let live = self.inner.find_task(id).await?.ok_or_else(|| Error::TaskNotFound(id.clone()))?;
        let unread = live.core.lock().unread();
        Ok(unread)
    }
}

impl Core {
    fn unread(&self) -> Vec<NumberedMessage> {
        let taken = self.output.taken;
        self.fold.kernel.unread.iter().filter(|unread| unread.seq > taken).cloned().collect()
    }
}
