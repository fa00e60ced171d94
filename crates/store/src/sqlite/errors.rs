//! Database errors: their text for operators, and whether they concern one write, the batch, or the connection.

use rusqlite::{Error, ErrorCode};
use switchboard_engine::store::StoreError;

pub(crate) fn store_error(error: &Error) -> StoreError {
    let words = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "the disk is full or the file has reached its limit".to_owned(),
        Some(ErrorCode::SystemIoFailure) => format!("the disk reported an error ({error})"),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => "the database file is not writable".to_owned(),
        Some(ErrorCode::CannotOpen) => "the database file cannot be opened".to_owned(),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            format!("the database file is damaged, run `switchboard db check` ({error})")
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another program keeps the database file locked".to_owned()
        }
        _ => error.to_string(),
    };
    StoreError::Failed(words)
}

/// Whether the error concerns one write alone, so that the rest of the batch may still succeed.
pub(crate) fn affects_one_write(error: &Error) -> bool {
    match error.sqlite_error_code() {
        Some(code) => {
            matches!(code, ErrorCode::ConstraintViolation | ErrorCode::TooBig | ErrorCode::TypeMismatch)
        }
        // Not from the database but from reading a column: the row of that one task is damaged.
        None => true,
    }
}

/// Whether the connection must be opened again.
pub(crate) fn needs_reopening(error: &Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::SystemIoFailure
                | ErrorCode::DatabaseCorrupt
                | ErrorCode::NotADatabase
                | ErrorCode::CannotOpen
                | ErrorCode::ReadOnly
                | ErrorCode::OutOfMemory
                | ErrorCode::FileLockingProtocolFailed
                | ErrorCode::ApiMisuse
                | ErrorCode::InternalMalfunction
        )
    )
}
