//! Tasks as they were at the last event that a webhook was told of, for the few webhooks that go on right now: a body that
//! holds the whole task then costs what has come since, not the whole log again.

use std::collections::VecDeque;

use parking_lot::Mutex;
use switchboard_engine::LogReader;
use switchboard_engine::store::webhooks::WebhookKey;

/// How many are kept, and of what size at most: together they take no more than a few large tasks do.
const MOST: usize = 64;
const LARGEST: usize = 256 << 10;

/// The readers of logs that were used last.
#[derive(Default)]
pub(crate) struct Folds(Mutex<VecDeque<(WebhookKey, LogReader)>>);

impl Folds {
    /// The reader that a webhook's last step left, if it is still here.
    pub(crate) fn take(&self, webhook: WebhookKey) -> Option<LogReader> {
        let mut kept = self.0.lock();
        let index = kept.iter().position(|(of, _)| *of == webhook)?;
        kept.remove(index).map(|(_, reader)| reader)
    }

    /// Keeps a reader for the webhook's next step, if what it holds is small.
    pub(crate) fn keep(&self, webhook: WebhookKey, reader: LogReader, bytes: usize) {
        if bytes > LARGEST {
            return;
        }
        let mut kept = self.0.lock();
        if kept.len() >= MOST {
            kept.pop_front();
        }
        kept.push_back((webhook, reader));
    }
}
