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

    /// The ends of remote tasks that notifications have told, the newest first.
    pub(super) async fn ends(&self, task: &TaskId) -> Vec<StreamResponse> {
        self.receiver.ends(task).await.unwrap_or_else(|error| {
            tracing::warn!(%task, %error, "notifications of a remote task cannot be read");
            Vec::new()
        })
    }
}
