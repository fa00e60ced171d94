//! Follows `channels.yaml` while the server runs. A file that is wrong leaves the channels as they are.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use switchboard_engine::Engine;
use switchboard_engine::store::feed::JournalLine;
use switchboard_host::redact;

use super::{ChannelTable, Channels};
use crate::journal_text::shortened;

/// How soon the file is read again that may have been read while it was written.
const SETTLES: Duration = Duration::from_secs(1);

impl Channels {
    /// Follows the file until the server stops.
    pub(crate) fn start(self: &Arc<Self>, engine: &Engine) {
        self.is_started.store(true, Ordering::Release);
        let reload_now = Arc::clone(&self.reload_now);
        self.parts.reloads.listen(move |_| reload_now.notify_one());
        let (channels, closing) = (Arc::clone(self), engine.closing().clone());
        engine.spawn(async move {
            closing.run_until_cancelled(channels.follow_file()).await;
        });
    }

    async fn follow_file(&self) {
        loop {
            let usual = self.parts.config.hub.reload.duration();
            let every = match self.file.lock().is_unsettled() {
                true => Some(usual.map_or(SETTLES, |usual| usual.min(SETTLES))),
                false => usual,
            };
            let due = async {
                match every {
                    Some(every) => self.parts.clock.sleep(every).await,
                    None => std::future::pending().await,
                }
            };
            let is_asked_for = tokio::select! {
                () = due => false,
                () = self.reload_now.notified() => true,
            };
            self.read_file(is_asked_for).await;
        }
    }

    /// Reads the file and applies it. What is wrong with it is logged, and is a line of the journal.
    pub(super) async fn read_file(&self, is_asked_for: bool) {
        let file = Arc::clone(&self.file);
        let read = match tokio::task::spawn_blocking(move || file.lock().read(is_asked_for)).await {
            Ok(Some(read)) => read,
            Ok(None) => return,
            Err(error) => return tracing::error!(%error, "the file of channels could not be read"),
        };
        let before = self.table();
        let (topic, payload) = match read {
            Ok(bindings) => {
                let is_changed = bindings != before.bindings;
                let count = bindings.len();
                *self.table.write() = Arc::new(ChannelTable { bindings, problem: None });
                if !is_changed || !self.is_started.load(Ordering::Acquire) {
                    return;
                }
                ("hub.channels.changed", json!({ "channels": count }))
            }
            Err(problem) => {
                let bindings = before.bindings.clone();
                tracing::error!(problem, "the file of channels is refused, and the channels stay as they are");
                let payload = json!({ "problem": shortened(&redact::text(&problem)) });
                *self.table.write() = Arc::new(ChannelTable { bindings, problem: Some(problem) });
                ("hub.config.refused", payload)
            }
        };
        let line = JournalLine {
            at: self.parts.clock.now(),
            owner: None,
            task: None,
            topic: topic.to_owned(),
            payload: payload.to_string().into(),
        };
        if let Err(error) = self.parts.store.journal(vec![line]).await {
            tracing::warn!(%error, "what happened to channels could not be written to the journal");
        }
    }
}
