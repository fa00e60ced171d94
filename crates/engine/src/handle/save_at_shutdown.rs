//! What a run has to save that grows all the time, such as how long it has lasted. A graceful shutdown does not wait for
//! every run, so the run says beforehand what is to be saved, and the shutdown stores it with its own mark.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use switchboard_a2a::Json;

use super::TaskHandle;
use crate::turn::panic_text;

/// Says what is to be saved at the moment; nothing leaves what was saved last.
pub(crate) type SaveAtShutdown = Arc<dyn Fn() -> Option<Json> + Send + Sync>;

/// While it lives, a shutdown saves what the function says. See [`TaskHandle::save_at_shutdown`].
#[must_use = "nothing is saved at a shutdown once it is dropped"]
pub struct ShutdownSave {
    task: TaskHandle,
    save: SaveAtShutdown,
}

impl TaskHandle {
    /// If a graceful shutdown interrupts the run, what the function returns then is saved, in place of what [`Self::save`]
    /// has saved last. The function must not call the handle. One at a time: the newest counts.
    ///
    /// A crash saves nothing, so what must not be lost for longer than some time is to be saved that often, too.
    pub fn save_at_shutdown<S: serde::Serialize>(&self, value: impl Fn() -> S + Send + Sync + 'static) -> ShutdownSave {
        let task = self.id().clone();
        let save: SaveAtShutdown = Arc::new(move || {
            // A shutdown goes on without it: other turns are to be marked, and the store to be closed.
            let saved = std::panic::catch_unwind(AssertUnwindSafe(|| Json::from_serialize(&value()).ok()));
            saved.unwrap_or_else(|panic| {
                let panic = panic_text(panic.as_ref());
                tracing::error!(%task, panic, "what a run has to save at a shutdown panicked");
                None
            })
        });
        let mut core = self.live.core.lock();
        if core.turn.is_run(self.run)
            && let Some(driven) = core.turn.driven_mut()
        {
            driven.at_shutdown = Some(Arc::clone(&save));
        }
        drop(core);
        ShutdownSave { task: self.clone(), save }
    }
}

impl Drop for ShutdownSave {
    fn drop(&mut self) {
        let mut core = self.task.live.core.lock();
        if let Some(driven) = core.turn.driven_mut()
            && driven.at_shutdown.as_ref().is_some_and(|newest| Arc::ptr_eq(newest, &self.save))
        {
            driven.at_shutdown = None;
        }
    }
}
