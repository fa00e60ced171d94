//! A queue position under which a child process works: the queue admits the next task only once the child's whole
//! process tree has exited, also if the turn that started the child was dropped before.

use std::ops::Deref;
use std::sync::Arc;

use switchboard_admission::QueuePosition;

use super::process::TreeExit;

/// A position in an exclusive queue (of a conversation, a worktree or a repository); dropping it leaves the queue.
pub(super) struct ProcessBoundPosition<T: Send + 'static> {
    position: Arc<QueuePosition<T>>,
    tree_exit: Option<TreeExit>,
}

impl<T: Send> ProcessBoundPosition<T> {
    pub(super) fn new(position: QueuePosition<T>) -> Self {
        Self { position: Arc::new(position), tree_exit: None }
    }

    /// From now on the position is held until this process tree has exited, even if it is dropped before.
    pub(super) fn hold_until_exit(&mut self, tree_exit: TreeExit) {
        self.tree_exit = Some(tree_exit);
    }

    /// Waits until the last process tree that worked under the position has exited.
    pub(super) async fn child_exited(&self) {
        if let Some(tree_exit) = &self.tree_exit {
            tree_exit.clone().wait().await;
        }
    }
}

impl<T: Send> Deref for ProcessBoundPosition<T> {
    type Target = QueuePosition<T>;

    fn deref(&self) -> &Self::Target {
        &self.position
    }
}

impl<T: Send> Drop for ProcessBoundPosition<T> {
    fn drop(&mut self) {
        let running = self.tree_exit.take().filter(|tree_exit| !tree_exit.has_exited());
        if let (Some(tree_exit), Ok(runtime)) = (running, tokio::runtime::Handle::try_current()) {
            let position = Arc::clone(&self.position);
            runtime.spawn(async move {
                tree_exit.wait().await;
                drop(position);
            });
        }
    }
}
