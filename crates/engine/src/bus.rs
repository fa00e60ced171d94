//! The bus: how nodes that share a store hear that a task has changed. It carries names of tasks and no data; a node that
//! hears one reads the log, so an announcement that is lost or comes twice does no harm beyond delay.

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, SendError};

use crate::ids::TaskKey;

/// Announcements that a listener may be behind before it is told that it has missed some.
const CAPACITY: usize = 4_096;

/// The bus as one node uses it.
pub trait Bus: Send + Sync {
    /// Tells the other nodes that a task has changed. Called after the commit and under the task's lock: must not block.
    fn announce(&self, key: TaskKey);

    /// What the other nodes announce from now on.
    fn listen(&self) -> Announcements;
}

/// What was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Announcement {
    /// This task has changed.
    Task(TaskKey),
    /// Some announcements were lost: any task may have changed.
    Any,
}

/// A listener's announcements, oldest first.
pub struct Announcements {
    node: u64,
    heard: broadcast::Receiver<(u64, TaskKey)>,
}

impl Announcements {
    /// The next one; nothing once the bus is gone.
    pub async fn next(&mut self) -> Option<Announcement> {
        loop {
            match self.heard.recv().await {
                Ok((node, _)) if node == self.node => {}
                Ok((_, key)) => return Some(Announcement::Task(key)),
                Err(RecvError::Lagged(_)) => return Some(Announcement::Any),
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

/// The bus between the nodes of one process.
#[derive(Clone)]
pub struct LocalBus {
    node: u64,
    sender: broadcast::Sender<(u64, TaskKey)>,
}

impl LocalBus {
    /// A bus with its first node.
    pub fn new(node: u64) -> Self {
        Self { node, sender: broadcast::Sender::new(CAPACITY) }
    }

    /// The same bus as another node uses it.
    #[must_use]
    pub fn joined(&self, node: u64) -> Self {
        Self { node, sender: self.sender.clone() }
    }
}

impl Bus for LocalBus {
    fn announce(&self, key: TaskKey) {
        // No node listens yet, or any more.
        let _: Result<usize, SendError<_>> = self.sender.send((self.node, key));
    }

    fn listen(&self) -> Announcements {
        Announcements { node: self.node, heard: self.sender.subscribe() }
    }
}
