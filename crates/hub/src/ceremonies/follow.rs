//! Follows the files of ceremonies while the server runs. Of each file there is a row that says when it was last known to be due
//! by what schedule: stored with the job of its next run, so that what was missed while the server was down is known, and so
//! that a file that says something else begins anew.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use switchboard_engine::store::StoreError;
use switchboard_engine::store::feed::JournalLine;
use switchboard_engine::store::hub::{NewJob, PutRegistration};
use switchboard_engine::{Caller, Engine};
use switchboard_host::redact;

use super::definition::Definition;
use super::journal::change_line;
use super::progress::{Progress, job_name, progress_of};
use super::table::{Ceremony, Source};
use super::{Ceremonies, fire};
use crate::definition_files::Listing;
use crate::journal_text::shortened;
use crate::registry::all_registrations;

/// The kind of the rows about files.
const FILE_KIND: &str = "ceremony.file";
/// How soon files are read again of which one may have been read while it was written.
const SETTLES: Duration = Duration::from_secs(1);

/// The files as they were read last, and what is stored of them.
#[derive(Default)]
pub(super) struct Followed {
    listing: Listing<Definition>,
    rows: BTreeMap<String, FileRow>,
    /// Not all of it could be stored.
    is_unstored: bool,
}

struct FileRow {
    version: u64,
    timing: Bytes,
}

impl Followed {
    /// Whether a file has had a ceremony that may come back: one that cannot be read now is not gone.
    pub(super) fn knows(&self, id: &str) -> bool {
        self.rows.contains_key(id)
    }
}

impl Ceremonies {
    /// Follows the files until the server stops.
    pub(crate) fn start(self: &Arc<Self>, engine: &Engine) {
        self.is_started.store(true, Ordering::Release);
        let reload_now = Arc::clone(&self.reload_now);
        self.parts.reloads.listen(move |_| reload_now.notify_one());
        let (ceremonies, closing) = (Arc::clone(self), engine.closing().clone());
        engine.spawn(async move {
            closing.run_until_cancelled(ceremonies.follow_files()).await;
        });
    }

    async fn follow_files(&self) {
        loop {
            let usual = self.parts.config.hub.reload.duration();
            let is_unsettled = self.files.lock().is_unsettled() || self.followed.lock().await.is_unstored;
            let every = match is_unsettled {
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

    /// Reads what an earlier process has stored of the files.
    pub(super) async fn load_followed(&self) -> Result<(), StoreError> {
        self.followed.lock().await.rows = self.file_rows().await?;
        Ok(())
    }

    async fn file_rows(&self) -> Result<BTreeMap<String, FileRow>, StoreError> {
        let rows = all_registrations(&*self.parts.store, FILE_KIND).await?;
        Ok(rows.into_iter().map(|row| (row.name, FileRow { version: row.version, timing: row.body })).collect())
    }

    /// Reads the files and applies what has changed. What is wrong with them is logged, and is a line of the journal.
    pub(super) async fn read_files(&self, is_asked_for: bool) {
        let files = Arc::clone(&self.files);
        let listing = match tokio::task::spawn_blocking(move || files.lock().read(is_asked_for)).await {
            Ok(listing) => listing,
            Err(error) => return tracing::error!(%error, "the files of ceremonies could not be read"),
        };
        let now = self.parts.clock.now();
        let mut followed = self.followed.lock().await;
        let mut lines = Vec::new();
        match listing {
            Some(listing) => {
                let before = std::mem::replace(&mut followed.listing, listing);
                let listing = &followed.listing;
                for problem in listing.problems.iter().filter(|problem| !before.problems.contains(problem)) {
                    tracing::error!(problem, "a file of ceremonies is refused, and its ceremony stays as it is");
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
                        changes(&before, listing).into_iter().map(|(change, id)| change_line(now, change, &id)),
                    );
                }
            }
            None if followed.is_unstored => {}
            None => return,
        }
        if let Err(error) = self.apply_files(&mut followed).await {
            tracing::warn!(%error, "what the files of ceremonies say could not be stored, which is tried again");
            followed.is_unstored = true;
        }
        drop(followed);
        self.tell(lines).await;
    }

    /// Puts the ceremonies of the files into force, and stores when they are due.
    async fn apply_files(&self, followed: &mut Followed) -> Result<(), StoreError> {
        let max = self.parts.config.hub.ceremonies.max.get();
        let mut found: BTreeMap<&str, &Definition> = BTreeMap::new();
        for (id, definition) in &followed.listing.found {
            match found.len() < max {
                true => drop(found.insert(id, definition)),
                false => {
                    tracing::error!(id, max, "there are more ceremonies than hub.ceremonies.max, and it is left out")
                }
            }
        }
        for id in self.table.ids_of_files().iter().filter(|id| !found.contains_key(id.as_str())) {
            self.table.set_file(id, None);
        }
        let is_conflicting = |error: &StoreError| matches!(error, StoreError::VersionConflict { .. });
        for (id, definition) in &found {
            let ceremony =
                Ceremony { definition: (*definition).clone(), owner: Caller::local().id, source: Source::File };
            let timing = definition.timing();
            let is_stored = followed.rows.get(*id).is_some_and(|row| row.timing == timing.as_bytes());
            if !is_stored {
                let stored = self.store_file(&mut followed.rows, id, definition).await;
                if stored.as_ref().is_err_and(is_conflicting) {
                    // Another node has read the same file.
                    followed.rows = self.file_rows().await?;
                    if followed.rows.get(*id).is_none_or(|row| row.timing != timing.as_bytes()) {
                        self.store_file(&mut followed.rows, id, definition).await?;
                    }
                } else {
                    stored?;
                }
            }
            self.table.set_file(id, Some(Arc::new(ceremony)));
        }
        // Of a file that cannot be read now it is not known which ceremony it has.
        if followed.listing.problems.is_empty() {
            let gone: Vec<String> =
                followed.rows.keys().filter(|id| !found.contains_key(id.as_str())).cloned().collect();
            for id in gone {
                let removed = self.forget_file(&mut followed.rows, &id).await;
                if removed.as_ref().is_err_and(is_conflicting) {
                    followed.rows = self.file_rows().await?;
                    continue;
                }
                removed?;
            }
        }
        followed.is_unstored = false;
        Ok(())
    }

    /// Stores when a file is due from now on.
    async fn store_file(
        &self,
        rows: &mut BTreeMap<String, FileRow>,
        id: &str,
        definition: &Definition,
    ) -> Result<(), StoreError> {
        let job = self.next_job(definition).await?;
        let timing = Bytes::from(definition.timing());
        let version = rows.get(id).map_or(0, |row| row.version);
        let put = self.file_row(id, version, Some(timing.clone()), Some(job));
        let version = self.parts.store.put_registration(put).await?;
        rows.insert(id.to_owned(), FileRow { version, timing });
        Ok(())
    }

    /// Deletes what is stored of a file that is gone. A registration of its id is due by its own schedule from now on.
    async fn forget_file(&self, rows: &mut BTreeMap<String, FileRow>, id: &str) -> Result<(), StoreError> {
        let version = rows.get(id).map_or(0, |row| row.version);
        let registered = self.table.registered(id);
        let job = match &registered {
            Some(registered) => Some(self.next_job(&registered.definition).await?),
            None => None,
        };
        self.parts.store.put_registration(self.file_row(id, version, None, job)).await?;
        if registered.is_none() {
            self.parts.store.remove_jobs(vec![job_name(id)]).await?;
        }
        rows.remove(id);
        Ok(())
    }

    fn file_row(&self, id: &str, known: u64, timing: Option<Bytes>, job: Option<NewJob>) -> PutRegistration {
        PutRegistration {
            kind: FILE_KIND.to_owned(),
            name: id.to_owned(),
            expected_version: known,
            owner: Caller::local().id,
            at: self.parts.clock.now(),
            body: timing,
            job,
            journal: Vec::new(),
        }
    }

    /// The job of a definition that is new or due at other times, with what was last.
    pub(super) async fn next_job(&self, definition: &Definition) -> Result<NewJob, StoreError> {
        let before = progress_of(&*self.parts.store, &definition.id).await?;
        let last = before.and_then(|progress| progress.last);
        let progress = Progress::begin(definition, last, self.parts.clock.now());
        let run_at = fire::run_at(&self.parts.config.hub.ceremonies, definition, &progress);
        Ok(progress.job(&definition.id, run_at))
    }

    /// Whether a job without a ceremony may get it back.
    pub(super) async fn may_come_back(&self, id: &str) -> bool {
        self.followed.lock().await.knows(id)
    }
}

/// What has changed between two readings.
fn changes(before: &Listing<Definition>, after: &Listing<Definition>) -> Vec<(&'static str, String)> {
    let gone = before.found.keys().filter(|id| !after.found.contains_key(*id)).map(|id| ("removed", id.clone()));
    let there = after.found.iter().filter_map(|(id, definition)| match before.found.get(id) {
        None => Some(("added", id.clone())),
        Some(known) if known.written() != definition.written() => Some(("changed", id.clone())),
        Some(_) => None,
    });
    gone.chain(there).collect()
}
