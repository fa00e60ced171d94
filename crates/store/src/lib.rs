//! Where tasks live. [`SqliteStore`] keeps them in one file of a data directory and is all a single node needs.
//!
//! The suite in `tests/it/suite` says what any store owes the kernel; every implementation has to pass it.

#![expect(missing_docs, reason = "only what a name and its type do not say is written down")]

pub mod metric_definitions;
mod sqlite;

pub use metric_definitions::describe_metrics;
pub use rusqlite::ErrorCode;
pub use sqlite::backup::{BackupError, backup};
pub use sqlite::check::quick::quick_check;
pub use sqlite::check::{CheckError, IntegrityReport, check, check_file};
pub use sqlite::lock::{LockHolder, lock_holder};
pub use sqlite::open::{OpenError, database_path};
pub use sqlite::restore::{RestoreError, Restored, restore};
pub use sqlite::{Durability, Options, SqliteStore};
