//! Push notifications of a remote agent: where it sends them, and what they say here. One only says that there is news;
//! its body counts where the agent no longer knows a task that it has ended.

use switchboard_a2a::{StreamResponse, TaskId};
use switchboard_webhooks::{CallbackReceiver, CallbackWatch};

/// Where a remote agent sends push notifications to.
#[derive(Clone)]
pub struct Callbacks {
    pub receiver: CallbackReceiver,
    /// The address at which the remote server reaches this one.
    pub base: String,
}

impl Callbacks {
    /// The address of a task's callback.
    pub(super) fn address(&self, task: &TaskId) -> String {
        CallbackReceiver::address(&self.base, task)
    }

    pub(super) fn watch(&self, task: &TaskId) -> CallbackWatch {
        self.receiver.watch(task)
    }

    /// The end of the remote task, if a notification has told it.
    pub(super) async fn end(&self, task: &TaskId) -> Option<StreamResponse> {
        match self.receiver.end(task).await {
            Ok(end) => end,
            Err(error) => {
                tracing::warn!(%task, %error, "notifications of a remote task cannot be read");
                None
            }
        }
    }
}
