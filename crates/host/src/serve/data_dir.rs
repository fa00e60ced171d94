//! Creates the data directory, and explains why one cannot be used.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use switchboard_store::{ErrorCode, OpenError};

use crate::serve::error::StartError;

/// Creates the directory if it does not exist, and returns its full path. Only this user may read it, because it holds
/// messages.
pub fn create(directory: &Path) -> Result<PathBuf, StartError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.and_then(|()| directory.canonicalize()).map_err(|error| unusable(directory, &error))
}

/// Why a store could not be opened, and what to do.
pub fn open_problem(directory: &Path, error: OpenError) -> StartError {
    let problem = error.to_string();
    let (problem, next) = match error {
        OpenError::Held { directory, holder } => return StartError::DataHeld { directory, holder },
        OpenError::File { source, .. } => return unusable(directory, &source),
        OpenError::Database(error) => match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => ("the disk is full".to_owned(), FREE_SPACE),
            // A full disk can show as this code as well.
            Some(ErrorCode::SystemIoFailure) => (format!("the disk is full or broken ({error})"), FREE_SPACE),
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
                ("the database file cannot be written".to_owned(), WRITABLE)
            }
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                (format!("the database file is damaged ({error})"), RESTORE)
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => (
                "another program keeps the database file locked".to_owned(),
                "close the program that has switchboard.db open",
            ),
            _ => (error.to_string(), "switchboard db check looks for damage"),
        },
        OpenError::NewerSchema(_) => (problem, "use the switchboard program that wrote it, or a later one"),
        // The message says what to do.
        OpenError::ForeignDatabase => (problem, ""),
    };
    StartError::DataUnusable { directory: directory.to_owned(), problem, next }
}

/// What to do about a damaged database file.
pub const RESTORE: &str = "restore a backup with switchboard db restore FILE (switchboard db backup makes them), \
                                  or use another directory with --data-dir DIR";
const FREE_SPACE: &str = "free some space, or use a directory on another disk with --data-dir DIR";
const WRITABLE: &str = "make it writable for this user, or use another directory with --data-dir DIR";

fn unusable(directory: &Path, error: &io::Error) -> StartError {
    let (problem, next) = match error.kind() {
        io::ErrorKind::PermissionDenied => ("this user may not write there".to_owned(), WRITABLE),
        io::ErrorKind::ReadOnlyFilesystem => ("its file system is mounted read-only".to_owned(), WRITABLE),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ("the disk is full".to_owned(), FREE_SPACE),
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            ("there is a file in its place".to_owned(), "remove the file, or use another directory with --data-dir DIR")
        }
        _ => (error.to_string(), WRITABLE),
    };
    StartError::DataUnusable { directory: directory.to_owned(), problem, next }
}
