//! The journal lines of the registry, in the order in which things have happened. What cannot be written now is written
//! later, before all that comes after it: an agent must not be up in the journal before it was down.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use switchboard_engine::clock::Clock;
use switchboard_engine::store::feed::JournalLine;
use switchboard_engine::store::{ServerStore, StoreError};
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use super::Registry;

/// Lines that are held while the journal cannot be written. Of more the oldest are lost: what is so now counts most.
const HELD: usize = 10_000;
/// Lines of one write.
const BATCH: usize = 100;
/// How long lines wait that could not be written.
const RETRY: Duration = Duration::from_secs(5);

/// Lines on their way to the journal.
pub(super) struct JournalQueue {
    store: Arc<dyn ServerStore>,
    lines: Mutex<VecDeque<JournalLine>>,
    /// Held while lines are written: one write at a time keeps them in order.
    writing: tokio::sync::Mutex<()>,
    /// Some lines could not be written.
    owed: Notify,
}

impl JournalQueue {
    pub(super) fn new(store: Arc<dyn ServerStore>) -> Self {
        Self { store, lines: Mutex::default(), writing: tokio::sync::Mutex::default(), owed: Notify::new() }
    }

    /// Adds lines, to be written with the next [`Self::flush`].
    pub(super) fn add(&self, lines: Vec<JournalLine>) {
        let mut queue = self.lines.lock();
        queue.extend(lines);
        keep_newest(&mut queue);
    }

    /// Writes all lines that were added, or leaves them for later. It must run to its end: what it has taken is lost else.
    pub(super) async fn flush(&self) {
        let _writing = self.writing.lock().await;
        let mut most = BATCH;
        loop {
            let batch = self.take(most);
            let Some(first) = batch.first() else { return };
            match self.store.journal(batch.clone()).await {
                Ok(_) => {}
                // It is refused for ever, and must not hold up the others.
                Err(error @ StoreError::TooLarge { .. }) if batch.len() == 1 => {
                    tracing::error!(topic = first.topic, %error, "a change of an agent is not in the journal");
                }
                Err(StoreError::TooLarge { .. }) => {
                    self.put_back(batch);
                    most = 1;
                }
                Err(error) => {
                    tracing::warn!(%error, "changes of agents cannot be written to the journal for now");
                    self.put_back(batch);
                    self.owed.notify_one();
                    return;
                }
            }
        }
    }

    /// Writes again what could not be written, until it is stopped, and then once more.
    pub(super) async fn run(&self, clock: &dyn Clock, stop: &CancellationToken) {
        while stop.run_until_cancelled(self.retry_due(clock)).await.is_some() {
            self.flush().await;
        }
        self.flush().await;
    }

    async fn retry_due(&self, clock: &dyn Clock) {
        self.owed.notified().await;
        clock.sleep(RETRY).await;
    }

    fn take(&self, most: usize) -> Vec<JournalLine> {
        let mut lines = self.lines.lock();
        let count = lines.len().min(most);
        lines.drain(..count).collect()
    }

    fn put_back(&self, batch: Vec<JournalLine>) {
        let mut lines = self.lines.lock();
        for line in batch.into_iter().rev() {
            lines.push_front(line);
        }
        keep_newest(&mut lines);
    }
}

fn keep_newest(lines: &mut VecDeque<JournalLine>) {
    let surplus = lines.len().saturating_sub(HELD);
    if surplus > 0 {
        lines.drain(..surplus);
        tracing::error!(
            lines = surplus,
            "changes of agents are not in the journal, which could not be written for long"
        );
    }
}

impl Registry {
    /// Writes lines to the journal; what cannot be written now is written later.
    pub(super) async fn write_journal(&self, lines: Vec<JournalLine>) {
        if !lines.is_empty() {
            self.journal.add(lines);
            self.flush_journal().await;
        }
    }

    /// Writes the lines that were added to the journal. Once the kernel runs, as work of its own: what calls this, such as
    /// a probe, may be ended at any time.
    pub(super) async fn flush_journal(&self) {
        let engine = self.engine.read().clone();
        let Some(engine) = engine else { return self.journal.flush().await };
        let (flushed, ended) = oneshot::channel::<()>();
        let journal = Arc::clone(&self.journal);
        engine.spawn(async move {
            journal.flush().await;
            drop(flushed);
        });
        // Nothing is sent: it ends with its sender.
        let _ = ended.await;
    }
}
