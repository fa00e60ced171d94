//! Reads the agent files every few seconds, and forgets agents that were removed once their last task has ended.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use switchboard_engine::store::feed::JournalLine;
use switchboard_host::redact;

use super::Registry;
use super::apply::RosterChange;
use crate::journal_text::shortened;

/// How often it is looked whether an agent that was removed is still needed.
const DRAINED_EVERY: Duration = Duration::from_secs(5);

/// How soon files are read again of which one may have been read while it was written or moved.
const SETTLES: Duration = Duration::from_secs(1);

impl Registry {
    /// Follows the files; ends with the server.
    pub(super) async fn follow_files(self: Arc<Self>) {
        loop {
            let asked = self.reload_now.notified();
            let usual = self.parts.config.hub.reload.duration();
            let every = if self.has_unsettled_files() {
                Some(usual.map_or(SETTLES, |usual| usual.min(SETTLES)))
            } else {
                usual
            };
            let due = async {
                match every {
                    Some(every) => self.parts.clock.sleep(every).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = due => {}
                () = asked => self.files.lock().ask_for_next(),
            }
            self.read_files().await;
            self.forget_drained().await;
        }
    }

    /// Forgets removed agents once their last task has ended, and writes tombstones that could not be written; ends with the
    /// server. It has its own time too, because files may be read when asked for only.
    pub(super) async fn follow_drained(self: Arc<Self>) {
        loop {
            self.parts.clock.sleep(DRAINED_EVERY).await;
            self.retry_tombstones().await;
            self.forget_drained().await;
        }
    }

    /// Reads the files and applies what has changed. What is wrong with them is logged, and is a line of the journal.
    pub(super) async fn read_files(self: &Arc<Self>) {
        let files = Arc::clone(&self.files);
        let listing = match tokio::task::spawn_blocking(move || files.lock().read()).await {
            Ok(Some(listing)) => listing,
            Ok(None) => return,
            Err(error) => {
                tracing::error!(%error, "the files of agents could not be read, and all agents stay as they are");
                return;
            }
        };
        let problems: Vec<String> = listing.problems.iter().map(ToString::to_string).collect();
        let mut definitions = self.definitions.lock().await;
        let gone = self.keep_tombstones(&mut definitions, &listing).await;
        // Later they are in the roster, and drain as they are.
        if self.engine.read().is_none() {
            self.bury(&definitions, gone);
        }
        self.store_file_definitions(&mut definitions, &listing).await;
        definitions.files = listing;
        let changes = self.apply(&definitions);
        let first_served = self.note_served(&mut definitions).await;
        if let Some(new) = &mut *self.first_served.lock() {
            new.extend(first_served);
        }
        let mut lines = self.change_lines(&changes);
        for problem in problems {
            tracing::error!(problem, "a file of agents is refused, and its agents stay as they are");
            let payload = json!({ "problem": shortened(&redact::text(&problem)) });
            lines.push(self.line("hub.config.refused".to_owned(), payload));
        }
        // While nothing else changes, so that lines are in the order of the changes.
        self.journal.add(lines);
        drop(definitions);
        self.flush_journal().await;
    }

    /// The journal lines of changes, which are logged too.
    pub(super) fn change_lines(&self, changes: &[RosterChange]) -> Vec<JournalLine> {
        let line = |(change, agent): &RosterChange| {
            if self.engine.read().is_some() {
                tracing::info!(%agent, change, "the agents have changed");
            }
            self.line(format!("hub.agent.{change}.{agent}"), json!({ "agent": agent.as_str() }))
        };
        // What a server starts with is no change.
        if self.engine.read().is_none() { Vec::new() } else { changes.iter().map(line).collect() }
    }

    pub(super) fn line(&self, topic: String, payload: Value) -> JournalLine {
        let payload = Bytes::from(payload.to_string());
        JournalLine { at: self.parts.clock.now(), owner: None, task: None, topic, payload }
    }
}
