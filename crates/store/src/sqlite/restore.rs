//! Restore: replaces the database of a data directory by a backup, after a check, and keeps the old database beside it.
//!
//! At every moment `switchboard.db` is either the whole old file or the whole new one: the copy is written and checked
//! under another name, synced, and renamed over the old file, which has a second hard link by then.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::check::{CheckError, IntegrityReport, check_connection, find_file};
use super::lock::DirectoryLock;
use super::open::{self, OpenError, database_path};
use super::{Options, backup, connection, migrate};

/// Why a backup was not restored. The data directory is as it was.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The data directory cannot be taken: a server runs on it, or it cannot be written.
    #[error(transparent)]
    Directory(#[from] OpenError),
    /// The backup is no database that this program can use.
    #[error("{} cannot be restored: {source}", file.display())]
    Unusable {
        file: PathBuf,
        /// What is wrong with it.
        source: CheckError,
    },
    /// The integrity check found problems.
    #[error("{} cannot be restored: {} problems, the first: {first}", file.display(), count)]
    Damaged {
        file: PathBuf,
        /// How many problems it has.
        count: usize,
        first: String,
    },
    /// The backup is the database itself.
    #[error("{} is the database of this data directory", .0.display())]
    Same(PathBuf),
    /// Files could not be copied or moved.
    #[error("cannot write {}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    /// The backup is in use.
    #[error("another program keeps {} locked", .0.display())]
    Locked(PathBuf),
    /// The backup could not be copied.
    #[error("cannot copy the backup: {0}")]
    Copy(#[from] rusqlite::Error),
}

/// What was restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The integrity check of the backup.
    pub report: IntegrityReport,
    /// The schema of the backup, before its migration.
    pub schema: i64,
    /// Where the old database is, if there was one.
    pub before: Option<PathBuf>,
}

/// Replaces the database of a data directory by a backup. `stamp` is part of the new name of the old database, so that
/// several restores can be told apart. Blocks until it is done.
pub fn restore(directory: &Path, file: &Path, stamp: &str) -> Result<Restored, RestoreError> {
    let target = database_path(directory);
    find_file(file).map_err(|source| RestoreError::Unusable { file: file.to_owned(), source })?;
    if target.exists() && file.canonicalize().ok() == target.canonicalize().ok() {
        return Err(RestoreError::Same(file.to_owned()));
    }
    let _lock = DirectoryLock::take(directory, "switchboard db restore")?;
    let copy = with_suffix(&target, ".restoring");
    // Left over from an interrupted restore.
    remove(&copy)?;
    let prepared = prepare(file, &copy, &target);
    let (report, schema) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => {
            remove(&copy)?;
            return Err(error);
        }
    };
    let before = replace_database(&copy, &target, stamp)?;
    Ok(Restored { report, schema, before })
}

/// Copies the backup, migrates the copy, and checks it.
fn prepare(file: &Path, copy: &Path, target: &Path) -> Result<(IntegrityReport, i64), RestoreError> {
    let unusable = |source: CheckError| RestoreError::Unusable { file: file.to_owned(), source };
    let source = connection::open_at_rest(file).map_err(|error| unusable(error.into()))?;
    let found = migrate::schema_of(&source).map_err(|error| unusable(error.into()))?;
    match found {
        0 => return Err(unusable(CheckError::OlderSchema(found))),
        newer if newer > migrate::SCHEMA => return Err(unusable(CheckError::NewerSchema(found))),
        _ => {}
    }
    open::create(copy)?;
    backup::copy(&source, copy).map_err(|error| match error {
        backup::BackupError::Database(error) => unusable(error.into()),
        backup::BackupError::Locked => RestoreError::Locked(file.to_owned()),
        backup::BackupError::Destination { path, source } => RestoreError::File { path, source },
    })?;
    let mut connection = connection::open_for_writing(copy, &Options::default())?;
    migrate::migrate(&mut connection)?;
    let report = check_connection(&mut connection).map_err(unusable)?;
    if let Some(first) = report.problems.first() {
        let (count, first) = (report.problems.len(), first.clone());
        return Err(RestoreError::Damaged { file: file.to_owned(), count, first });
    }
    raise_epoch(&connection, target)?;
    // A full checkpoint, so that one file is all there is.
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    drop(connection);
    sync(copy)?;
    Ok((report, found))
}

/// The next start must not repeat an epoch of the old database: event ids that callers hold would mean other events.
fn raise_epoch(connection: &Connection, target: &Path) -> rusqlite::Result<()> {
    let Ok(old) = connection::open_for_reading(target) else { return Ok(()) };
    for name in ["epoch", "start"] {
        let before = open::meta(&old, name).ok().flatten().unwrap_or(0);
        let now = open::meta(connection, name)?.unwrap_or(0);
        open::set_meta(connection, name, now.max(before))?;
    }
    open::set_meta(connection, "clean", 0)?;
    Ok(())
}

/// Renames the copy to the database, and returns the new name of the old one.
fn replace_database(copy: &Path, target: &Path, stamp: &str) -> Result<Option<PathBuf>, RestoreError> {
    let file_error = |path: &Path| {
        let path = path.to_owned();
        move |source| RestoreError::File { path, source }
    };
    let mut before = None;
    if target.exists() {
        let kept = with_suffix(target, &format!(".before-restore-{stamp}"));
        checkpoint_old(target);
        // A log that could not be checkpointed moves along: beside the new file it would destroy that.
        for suffix in ["-wal", "-shm"] {
            let (from, to) = (with_suffix(target, suffix), with_suffix(&kept, suffix));
            match std::fs::rename(&from, &to) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(file_error(&to)(error)),
                _ => {}
            }
        }
        match std::fs::hard_link(target, &kept) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(file_error(&kept)(error)),
            // Without hard links there is a moment without a database, but none without its data.
            Err(_) => std::fs::rename(target, &kept).map_err(file_error(&kept))?,
            Ok(()) => {}
        }
        before = Some(kept);
    }
    std::fs::rename(copy, target).map_err(file_error(target))?;
    if let Some(directory) = target.parent() {
        sync(directory)?;
    }
    Ok(before)
}

/// Checkpoints the old database if possible; it may be damaged, which may be why it is replaced.
fn checkpoint_old(path: &Path) {
    if let Ok(connection) = connection::open_for_writing(path, &Options::default()) {
        let settled = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        if let Err(error) = settled {
            tracing::warn!(%error, path = %path.display(), "the write-ahead log of the data from before stays beside it");
        }
    }
}

fn remove(path: &Path) -> Result<(), RestoreError> {
    for suffix in ["", "-wal", "-shm"] {
        let path = with_suffix(path, suffix);
        match std::fs::remove_file(&path) {
            Err(source) if source.kind() != ErrorKind::NotFound => return Err(RestoreError::File { path, source }),
            _ => {}
        }
    }
    Ok(())
}

fn sync(path: &Path) -> Result<(), RestoreError> {
    let synced = File::open(path).and_then(|file| file.sync_all());
    synced.map_err(|source| RestoreError::File { path: path.to_owned(), source })
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
