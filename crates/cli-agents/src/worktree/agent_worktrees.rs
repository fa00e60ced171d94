//! The worktrees of an agent: their folder, one queue for each, and the sweep of abandoned ones.

use std::path::PathBuf;
use std::sync::Arc;

use switchboard_admission::ExclusiveQueue;
use switchboard_engine::{Engine, sha256};

use super::checkout::Checkout;
use super::record::WorktreeRecords;
use crate::git::Git;

/// An agent's worktrees.
pub(crate) struct AgentWorktrees {
    pub(crate) home: PathBuf,
    /// Not in the folder of the worktrees, if these are another account's.
    pub(super) records: WorktreeRecords,
    /// One task at a time in each: a worktree is removed before the conversation's next task makes its own there.
    pub(super) queue: Arc<ExclusiveQueue<String>>,
}

impl AgentWorktrees {
    pub(crate) fn new(home: PathBuf, records: PathBuf) -> Arc<Self> {
        Arc::new(Self { home, records: WorktreeRecords { folder: records }, queue: ExclusiveQueue::per_key() })
    }

    /// The name of a conversation's worktree, unique among agents and servers, since git keeps its data about all
    /// worktrees of a repository under their names.
    pub(super) fn name(&self, context: &str) -> String {
        let home = self.home.as_os_str().as_encoded_bytes();
        // Context ids are the caller's words; a folder's name must not be.
        short_name(&[home, b"\n", context.as_bytes()].concat())
    }

    /// Commits and removes the worktrees of ended tasks. Returns how many belong to tasks that may still be recovered.
    pub(crate) async fn sweep(&self, git: &Git, engine: &Engine) -> usize {
        let mut waiting = 0;
        for name in self.records.names() {
            let position = self.queue.enqueue(name.clone());
            if !position.is_admitted() {
                // The turn that has it removes it.
                continue;
            }
            let record = match self.records.read(&name) {
                Ok(Some(record)) => record,
                Ok(None) => continue,
                Err(error) => {
                    let folder = self.home.join(&name);
                    tracing::warn!(path = %folder.display(), %error, "whose worktree this is cannot be read; it is kept");
                    continue;
                }
            };
            let (home, records) = (self.home.clone(), self.records.clone());
            if record.home != home {
                // Another account's, which the agent does not have any more.
                let path = record.home.join(&name);
                tracing::warn!(path = %path.display(), "a worktree is left where this agent has none any more; remove it");
                continue;
            }
            match engine.has_ended(&record.task).await {
                Ok(true) => Checkout { git: git.clone(), home, records, name, record }.commit_and_remove().await,
                Ok(false) => waiting += 1,
                Err(error) => {
                    tracing::debug!(%error, "whether a task is over cannot be read");
                    waiting += 1;
                }
            }
        }
        waiting
    }
}

/// A folder name that no caller chooses: a hash.
pub(crate) fn short_name(of: &[u8]) -> String {
    sha256([of]).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
