//! The kernel's part in webhooks: a webhook is set by an append to its task, and the webhook service is notified of
//! later appends. A wake-up carries no data; losing one costs time, never an event.

use std::sync::Arc;

use bytes::Bytes;
use switchboard_a2a::TaskId;

use crate::append::PendingAppend;
use crate::caller::Caller;
use crate::directory::Address;
use crate::engine::{Engine, EngineState, visible};
use crate::error::Error;
use crate::ids::{Seq, TaskKey};
use crate::live_task::{Core, LiveTask};
use crate::store::webhooks::NewWebhook;
use crate::store::{Append, AppendGuard, KnownVersion, Phase, RowPatch, SideWrites, StoreError, TaskRow};
use crate::submit::named;

/// Called with every task that has grown and has a webhook. Must not block.
pub type AppendListener = Arc<dyn Fn(TaskKey) + Send + Sync>;

impl Engine {
    /// Registers the listener for appends to tasks with webhooks. Only the first one counts.
    pub fn on_append(&self, listener: AppendListener) {
        if self.inner.listener.set(listener).is_err() {
            tracing::warn!("a listener for appends is already registered");
        }
    }

    /// The store's name of a task that the caller may see at this address.
    pub async fn find(&self, address: &Address, caller: &Caller, id: &TaskId) -> Result<TaskKey, Error> {
        Ok(self.inner.visible_row(address, caller, id).await?.key)
    }

    /// Sets a webhook of a task. It starts with the last status if that is terminal or interrupted, else with the next
    /// event.
    pub async fn set_webhook(
        &self,
        address: &Address,
        caller: &Caller,
        id: &TaskId,
        webhook: NewWebhook,
    ) -> Result<(), Error> {
        let row = self.inner.store.row(id).await?;
        let ended = row.filter(|row| row.state.phase == Phase::Done);
        let engine = Arc::clone(&self.inner);
        // Spawned: the caller may disconnect, memory must follow the commit.
        let set = match ended.filter(|row| visible(address, caller, &row.task, row.state.hidden)) {
            Some(row) => self.inner.work.spawn(async move { engine.set_on_ended(row, webhook).await }),
            None => {
                let live = self.inner.open(address, caller, id).await?;
                self.inner.work.spawn(async move { engine.set_on_live(&live, webhook).await })
            }
        };
        set.await?.map_err(|error| match error {
            // It was deleted after it was looked at.
            StoreError::Missing => Error::TaskNotFound(id.clone()),
            error => Error::from(error),
        })
    }
}

/// The event before the last status that ended a wait. An ended task's is its last event, which its snapshot need not say.
fn before_stop(core: &Core) -> Seq {
    let stop = if core.is_done() { core.last_seq.0 } else { core.fold.kernel.last_stop };
    Seq(stop.saturating_sub(1))
}

impl EngineState {
    async fn set_on_live(&self, live: &LiveTask, webhook: NewWebhook) -> Result<(), StoreError> {
        let webhook = named(Some(webhook), &live.task.id);
        let decide = |core: &mut Core| {
            let stopped = core.is_done() || core.row.state.is_interrupted();
            let sides = SideWrites {
                webhook: webhook.clone().map(|webhook| NewWebhook {
                    cursor: if stopped { before_stop(core) } else { core.last_seq },
                    late: stopped,
                    ..webhook
                }),
                ..SideWrites::default()
            };
            Some(PendingAppend { sides, refusable: true, ..PendingAppend::inbox(Vec::new(), core.row.clone()) })
        };
        live.inbox_if(self, decide).await.map(drop)
    }

    /// An ended task does not change any more, so that nothing of it need be read but its row.
    async fn set_on_ended(&self, row: TaskRow, webhook: NewWebhook) -> Result<(), StoreError> {
        let late = NewWebhook { cursor: Seq(row.last_seq.0.saturating_sub(1)), late: true, ..webhook };
        let append = Append {
            guard: AppendGuard::Inbox(KnownVersion { key: row.key, version: row.last_seq, fence: row.state.fence }),
            events: Bytes::new(),
            count: 0,
            row: RowPatch::default(),
            snapshot: None,
            note: None,
            sides: SideWrites { webhook: named(Some(late), &row.task.id), ..SideWrites::default() },
            refusable: true,
        };
        self.store.append(append).await?;
        self.tell_of_append(row.key, true);
        Ok(())
    }

    pub(crate) fn notify_listener(&self, key: TaskKey) {
        if let Some(listener) = self.listener.get() {
            listener(key);
        }
    }
}
