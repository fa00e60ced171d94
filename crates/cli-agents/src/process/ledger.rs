//! The ledger: pid files of the runs, by which the guard or the next server finds the orphans of a killed one.
//!
//! One small file per run, and one with the name that all markers of this folder begin with. Only one server has the
//! folder at a time. A copy of the folder may serve another server beside it: it takes another name, and leaves alone
//! what the copied entries name. The machine may lose its power at any moment without harm: then nothing runs.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tracing::warn;
use uuid::Uuid;

use super::process_table::{self, ProcessIdentity};

const NAME: &str = "name";
const ENDING: &str = "run";

#[derive(Debug)]
pub(super) struct Ledger {
    folder: PathBuf,
    name: String,
    /// The server that has it open: its guard must not touch what a later server has started.
    server: String,
    boot: String,
    /// Whether this server has made the name, so that no earlier process can have a marker that begins with it.
    is_new: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RunRecord {
    #[serde(flatten)]
    root: ProcessIdentity,
    boot: String,
    pub(super) marker: String,
    label: String,
}

#[derive(Debug)]
pub(super) struct LedgerEntry(PathBuf);

impl Ledger {
    /// Opens the folder, and makes it if needed.
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let place = folder.join(NAME);
        let here = fs::metadata(folder)?;
        let here = format!("{}:{}", here.dev(), here.ino());
        let written = fs::read_to_string(&place).unwrap_or_default();
        // Older name files have no inode behind the name.
        let (name, home) = written.split_once(' ').unwrap_or((&written, &here));
        let server = Uuid::new_v4().simple().to_string();
        let boot = process_table::boot();
        let ledger = |name: String, is_new| Self { folder: folder.to_owned(), name, server, boot, is_new };
        if home == here && Uuid::try_parse(name).is_ok() {
            return Ok(ledger(name.to_owned(), false));
        }
        let new = ledger(Uuid::new_v4().simple().to_string(), true);
        for (entry, _) in new.entries()? {
            entry.remove();
        }
        write(&place, format!("{} {here}", new.name).as_bytes())?;
        Ok(new)
    }

    /// Whether there was no server before this one that may have left processes.
    pub(super) fn is_new(&self) -> bool {
        self.is_new
    }

    /// What all markers of this folder begin with.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// What all markers of this server begin with.
    pub(super) fn markers(&self) -> String {
        format!("{}.{}", self.name, self.server)
    }

    pub(super) fn marker(&self, number: u64) -> String {
        format!("{}.{number}", self.markers())
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes the pid file of a run.
    pub(super) fn record(&self, number: u64, root: ProcessIdentity, label: &str) -> io::Result<LedgerEntry> {
        let (marker, boot, label) = (self.marker(number), self.boot.clone(), label.to_owned());
        let record = RunRecord { root, boot, marker, label };
        let place = self.folder.join(format!("{number}.{ENDING}"));
        write(&place, &serde_json::to_vec(&record)?)?;
        Ok(LedgerEntry(place))
    }

    /// The pid files of an earlier server. Unreadable ones are removed.
    pub(super) fn entries(&self) -> io::Result<Vec<(LedgerEntry, RunRecord)>> {
        let mut entries = Vec::new();
        for file in fs::read_dir(&self.folder)? {
            let place = file?.path();
            if place.file_name().is_some_and(|name| name == NAME) {
                continue;
            }
            match read(&place) {
                Ok(record) => entries.push((LedgerEntry(place), record)),
                Err(error) => {
                    warn!(file = %place.display(), error, "an entry about a child process cannot be read and is removed");
                    LedgerEntry(place).remove();
                }
            }
        }
        Ok(entries)
    }

    /// The process of a record, unless the machine was rebooted since.
    pub(super) fn identity(&self, record: &RunRecord) -> Option<ProcessIdentity> {
        (record.boot == self.boot).then_some(record.root)
    }
}

impl LedgerEntry {
    pub(super) fn remove(self) {
        if let Err(error) = fs::remove_file(&self.0) {
            warn!(file = %self.0.display(), %error, "an entry about a child process cannot be removed");
        }
    }
}

/// The root processes of one server's runs. Changes nothing: a later server may have the folder by now.
pub(super) fn roots(folder: &Path, markers: &str) -> Vec<ProcessIdentity> {
    let boot = process_table::boot();
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let records = files.filter_map(|file| read(&file.path()).ok());
    let is_of_server = |record: &RunRecord| {
        record.boot == boot && record.marker.strip_prefix(markers).is_some_and(|rest| rest.starts_with('.'))
    };
    records.filter(is_of_server).map(|record| record.root).collect()
}

fn read(place: &Path) -> Result<RunRecord, String> {
    let bytes = fs::read(place).map_err(|error| error.to_string())?;
    serde_json::from_slice(&bytes).map_err(|error| error.to_string())
}

fn write(place: &Path, content: &[u8]) -> io::Result<()> {
    let mut half = place.as_os_str().to_owned();
    half.push(".half");
    let half = PathBuf::from(half);
    fs::write(&half, content)?;
    fs::rename(&half, place)
}
