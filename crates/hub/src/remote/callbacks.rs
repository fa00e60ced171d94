//! Push notifications of a remote agent: where it sends them, and what they say here. One only says that there is news;
//! its body counts where the agent no longer knows a task that it has ended.

use switchboard_a2a::{StreamResponse, TaskId};
use switchboard_webhooks::{CallbackReceiver, CallbackWatch, ReceiveError};

/// Where a remote agent sends push notifications to.
#[derive(Clone)]
pub struct Callbacks {
    pub receiver: CallbackReceiver,
    /// The address at which the remote server reaches this one.
    pub base: String,
}

impl Callbacks {
    /// Opens the callback of a task: its address and its token.
    pub(super) async fn open(&self, task: &TaskId) -> Result<(String, String), ReceiveError> {
        let token = self.receiver.open(task).await?;
        Ok((CallbackReceiver::address(&self.base, task), token))
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
