//! A consistent copy of the database while a server writes to it.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use super::connection;
use super::open::database_path;

/// Why there is no backup.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The destination exists or cannot be created.
    #[error("cannot create the backup {}: {source}", path.display())]
    Destination { path: PathBuf, source: std::io::Error },
    /// The database could not be copied.
    #[error("cannot copy the database: {0}")]
    Database(#[from] rusqlite::Error),
    /// Another program keeps the database locked.
    #[error("cannot copy the database: another program keeps it locked")]
    Locked,
}

/// Copies the database of a data directory to a file that must not exist yet. The copy is one snapshot, marked as not
/// cleanly closed, so that a server started on it writes in a new epoch. Blocks until it is done.
pub fn backup(directory: &Path, destination: &Path) -> Result<(), BackupError> {
    let source = connection::open_for_reading(&database_path(directory))?;
    // Readable by its owner alone, like the database.
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(destination)
        .map_err(|source| BackupError::Destination { path: destination.to_owned(), source })?;
    let copied = copy(&source, destination);
    if copied.is_err()
        && let Err(error) = std::fs::remove_file(destination)
    {
        tracing::warn!(%error, path = %destination.display(), "half a backup could not be removed");
    }
    copied
}

pub(crate) fn copy(source: &Connection, destination: &Path) -> Result<(), BackupError> {
    let mut target = Connection::open(destination)?;
    {
        let backup = Backup::new(source, &mut target)?;
        // All pages in one step: a read transaction of one moment, which a server can write beside. Smaller steps would
        // begin again at each of its commits.
        match backup.step(-1)? {
            StepResult::Done => {}
            StepResult::More | StepResult::Busy | StepResult::Locked | _ => return Err(BackupError::Locked),
        }
    }
    target.execute_batch("UPDATE meta SET value = 0 WHERE name = 'clean'")?;
    Ok(())
}
