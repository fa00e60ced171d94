//! Merges that a killed server has left halfway and that no turn goes on with: they are undone.

use std::path::Path;

use switchboard_engine::Engine;

use super::checkout_update::{CheckoutUpdate, MergeRecord};
use crate::git::Git;
use crate::worktree::Records;

/// Undoes the merges of ended tasks. Returns how many are left.
pub(crate) async fn sweep(git: &Git, home: &Path, records: &Records<MergeRecord>, engine: &Engine) -> usize {
    let mut left = 0;
    for name in records.names() {
        let Ok(Some(record)) = records.read(&name) else { continue };
        let is_done = match engine.has_ended(&record.task).await {
            Ok(true) => undo(git, home, records, &name).await,
            Ok(false) | Err(_) => false,
        };
        left += usize::from(!is_done);
    }
    left
}

/// Undoes a merge that is halfway, if it is; says whether nothing of it is left.
pub(super) async fn undo(git: &Git, home: &Path, records: &Records<MergeRecord>, name: &str) -> bool {
    let repository = match records.read(name) {
        Ok(Some(record)) => record.repository,
        Ok(None) => return true,
        Err(error) => {
            tracing::warn!(merge = name, %error, "what a merge has left cannot be read; look into its repository");
            return true;
        }
    };
    // Whoever makes it is let through before.
    let _alone = git.lock_worktree_list(&repository).await;
    let Ok(Some(record)) = records.read(name) else { return true };
    if record.home != home {
        let checkout = record.top.display();
        tracing::warn!(%checkout, "a merge is left halfway where this agent works under another account now; look at it");
        return true;
    }
    let (task, checkout) = (record.task.clone(), record.top.clone());
    let update = CheckoutUpdate { git: git.clone(), records: records.clone(), name: name.to_owned(), record };
    match update.undo().await {
        Ok(()) => true,
        Err(obstacle) => {
            let checkout = checkout.display();
            tracing::warn!(%task, %checkout, %obstacle, "a merge that is halfway cannot be undone; this is tried again");
            false
        }
    }
}
