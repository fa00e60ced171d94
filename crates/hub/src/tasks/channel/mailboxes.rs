//! The mailboxes that are open: of channels whose agent works just now. Only then is there a turn in this process that can
//! take messages out, and it does so itself, because what it has taken has to be saved with all else that it knows.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use switchboard_a2a::ContextId;
use switchboard_engine::fold::NumberedMessage;
use switchboard_engine::{CallerId, TaskHandle};
use tokio::sync::{mpsc, oneshot};

/// Requests that may wait for one turn.
const REQUESTS: usize = 16;

/// Open mailboxes by owner and conversation. A conversation has one task at a time.
#[derive(Default)]
pub struct Mailboxes {
    open: Mutex<HashMap<(CallerId, ContextId), Mailbox>>,
}

/// The way to a turn that waits for its agent.
#[derive(Clone)]
pub(crate) struct Mailbox {
    task: TaskHandle,
    drains: mpsc::Sender<Drain>,
}

/// A request to take out what is unread.
pub(crate) type Drain = oneshot::Sender<Vec<NumberedMessage>>;

/// Closes its mailbox when it is dropped: who has asked meanwhile is told that the turn does not run.
pub(crate) struct OpenMailbox {
    mailboxes: Arc<Mailboxes>,
    key: (CallerId, ContextId),
    drains: mpsc::Receiver<Drain>,
}

impl Mailboxes {
    /// Opens that of a task.
    pub(crate) fn open(self: &Arc<Self>, task: &TaskHandle) -> OpenMailbox {
        let (sender, drains) = mpsc::channel(REQUESTS);
        let key = (task.caller().clone(), task.context_id().clone());
        self.open.lock().insert(key.clone(), Mailbox { task: task.clone(), drains: sender });
        OpenMailbox { mailboxes: Arc::clone(self), key, drains }
    }

    pub(crate) fn find(&self, owner: &CallerId, context: &ContextId) -> Option<Mailbox> {
        self.open.lock().get(&(owner.clone(), context.clone())).cloned()
    }
}

impl Mailbox {
    /// The channel's task.
    pub(crate) fn task(&self) -> &TaskHandle {
        &self.task
    }

    /// Takes out what is unread; nothing if the turn does not wait for its agent any more.
    pub(crate) async fn drain(&self) -> Option<Vec<NumberedMessage>> {
        let (sender, drained) = oneshot::channel();
        self.drains.send(sender).await.ok()?;
        drained.await.ok()
    }
}

impl OpenMailbox {
    /// The next request. Dropped without loss.
    pub(crate) async fn next(&mut self) -> Drain {
        match self.drains.recv().await {
            Some(drain) => drain,
            // The sender is in the table for as long as this is.
            None => std::future::pending().await,
        }
    }
}

impl Drop for OpenMailbox {
    fn drop(&mut self) {
        self.mailboxes.open.lock().remove(&self.key);
    }
}
