//! Follows the files of routes while the server runs, and puts files and registrations together: a file hides the
//! registration of its name.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use switchboard_engine::Engine;
use switchboard_engine::store::feed::JournalLine;
use switchboard_host::redact;

use super::definition::Definition;
use super::journal::line;
use super::owed::prefix;
use super::table::{Route, RouteTable, Source};
use super::{Defined, Routes};
use crate::journal_text::shortened;

/// How soon files are read again of which one may have been read while it was written.
const SETTLES: Duration = Duration::from_secs(1);

impl Routes {
    /// Follows the files until the server stops.
    pub(crate) fn start(self: &Arc<Self>, engine: &Engine) {
        self.is_started.store(true, Ordering::Release);
        let reload_now = Arc::clone(&self.reload_now);
        self.parts.reloads.listen(move |_| reload_now.notify_one());
        let (routes, closing) = (Arc::clone(self), engine.closing().clone());
        engine.spawn(async move {
            closing.run_until_cancelled(routes.follow_files()).await;
        });
    }

    async fn follow_files(&self) {
        loop {
            let usual = self.parts.config.hub.reload.duration();
            let every = match self.files.lock().is_unsettled() {
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
            self.read_files(is_asked_for).await;
        }
    }

    /// Reads the files and applies what has changed. What is wrong with them is logged, and is a line of the journal.
    pub(super) async fn read_files(&self, is_asked_for: bool) {
        let files = Arc::clone(&self.files);
        let listing = match tokio::task::spawn_blocking(move || files.lock().read(is_asked_for)).await {
            Ok(Some(listing)) => listing,
            Ok(None) => return,
            Err(error) => return tracing::error!(%error, "the files of routes could not be read"),
        };
        let now = self.parts.clock.now();
        let mut defined = self.defined.lock().await;
        let mut lines = Vec::new();
        let before = std::mem::replace(&mut defined.files, listing);
        for problem in defined.files.problems.iter().filter(|problem| !before.problems.contains(problem)) {
            tracing::error!(problem, "a file of routes is refused, and its route stays as it is");
            let payload = json!({ "problem": shortened(&redact::text(problem)) });
            lines.push(JournalLine {
                at: now,
                owner: None,
                task: None,
                topic: "hub.config.refused".to_owned(),
                payload: payload.to_string().into(),
            });
        }
        if self.is_started.load(Ordering::Acquire) {
            lines.extend(
                changes(&before.found, &defined.files.found).map(|(change, name)| line(now, change, name, json!({}))),
            );
        }
        self.apply(&defined).await;
        drop(defined);
        self.tell(lines).await;
    }

    /// Puts the routes together that are in force.
    pub(super) async fn apply(&self, defined: &Defined) {
        let max = self.parts.config.hub.routes.max.get();
        let mut routes = Vec::new();
        for (name, definition) in &defined.files.found {
            if routes.len() >= max {
                tracing::error!(route = name, max, "there are more routes than hub.routes.max, and it is left out");
                continue;
            }
            let source = Source::File { shadows_registration: defined.registered.contains_key(name) };
            routes.push(self.in_force(definition, source).await);
        }
        for (name, registered) in defined.registered.iter().filter(|(name, _)| !defined.files.found.contains_key(*name))
        {
            if routes.len() >= max {
                tracing::error!(route = name, max, "there are more routes than hub.routes.max, and it is left out");
                continue;
            }
            let source = Source::Registration { version: registered.version, owner: registered.owner.clone() };
            routes.push(self.in_force(&registered.definition, source).await);
        }
        let table = RouteTable::new(routes);
        self.states.lock().retain(|name, _| table.find(name).is_some());
        *self.table.write() = Arc::new(table);
    }

    async fn in_force(&self, definition: &Definition, source: Source) -> Arc<Route> {
        let name = definition.name.as_str();
        let is_known = self.states.lock().contains_key(name);
        let state = self.state(name);
        if !is_known {
            match self.parts.store.count_jobs_named(&prefix(name)).await {
                Ok(owed) => state.set_owed(owed, self.parts.config.hub.routes.owed.get() as u64),
                Err(error) => tracing::warn!(route = name, %error, "what a route owes could not be counted"),
            }
        }
        if self.table().find(name).is_some_and(|before| before.definition != *definition) {
            state.begin_anew();
        }
        Arc::new(Route { definition: definition.clone(), source, state })
    }
}

/// What has changed between two sets of definitions.
fn changes<'a>(
    before: &'a BTreeMap<String, Definition>,
    after: &'a BTreeMap<String, Definition>,
) -> impl Iterator<Item = (&'static str, &'a str)> {
    let gone = before.keys().filter(|name| !after.contains_key(*name)).map(|name| ("removed", name.as_str()));
    let there = after.iter().filter_map(|(name, definition)| match before.get(name) {
        None => Some(("added", name.as_str())),
        Some(known) if known != definition => Some(("changed", name.as_str())),
        Some(_) => None,
    });
    gone.chain(there)
}
