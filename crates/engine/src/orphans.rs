//! Child tasks that have outlived the task that called them. Nothing waits for what they make, so the job that finds them has
//! them stopped.

use std::sync::Arc;

use switchboard_a2a::TaskId;

use crate::engine::Engine;
use crate::error::Error;
use crate::ids::TaskKey;

impl Engine {
    /// Requests that the live children of a task stop, and theirs. Says whether there was one; when it has stopped is not
    /// waited for.
    pub async fn cancel_children_of(&self, parent: &TaskId) -> Result<bool, Error> {
        let Some(live) = self.inner.find_task(parent).await? else { return Ok(false) };
        let Some(key) = live.core.lock().key else { return Ok(false) };
        if self.inner.store.children(key, TaskKey(0), 1).await?.is_empty() {
            return Ok(false);
        }
        let engine = Arc::clone(&self.inner);
        // Spawned: memory has to follow the appends, whatever becomes of the caller.
        self.inner.work.spawn(async move { engine.cancel_children(&live).await }).await??;
        Ok(true)
    }
}
