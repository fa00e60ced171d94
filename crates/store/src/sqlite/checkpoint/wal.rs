//! The write-ahead log as the checkpointer uses it, and SQLite's.
//!
//! SQLite syncs the database file only in a checkpoint that leaves nothing over, which is the one that the writer waits
//! for. So the file is synced beforehand, through a handle of our own, and that checkpoint finds little to sync.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;

use crate::sqlite::open::OpenError;
use crate::sqlite::{Durability, connection};

/// What a checkpoint came to.
#[derive(Clone, Copy, Debug)]
pub(super) struct CheckpointResult {
    /// Pages in the log.
    pub(super) log: i64,
    /// How many of them the database file has, too.
    pub(super) copied: i64,
    /// A reader was in the way of what was asked for.
    pub(super) busy: bool,
}

impl CheckpointResult {
    pub(super) fn remainder(self) -> i64 {
        self.log - self.copied
    }
}

/// The operations on a log, so that the order in which the checkpointer uses them can be tested without one.
pub(super) trait WriteAheadLog: Send {
    /// Copies what no reader is in the way of. The writer goes on meanwhile.
    fn copy(&mut self) -> rusqlite::Result<CheckpointResult>;

    /// Syncs what was copied. The writer goes on meanwhile.
    fn sync(&mut self) -> std::io::Result<()>;

    /// Copies and syncs the remainder and waits until no reader uses the log, so that the next transaction begins it anew.
    /// Only between two transactions of the writer.
    fn restart(&mut self, patience: Duration) -> rusqlite::Result<CheckpointResult>;

    /// The same, and gives the space back.
    fn truncate(&mut self, patience: Duration) -> rusqlite::Result<CheckpointResult>;
}

pub(super) struct SqliteLog {
    connection: Connection,
    database: Arc<File>,
}

impl SqliteLog {
    /// Opens the log of a database. The file it syncs is to stay open as long as any connection: closing it would release
    /// the locks that SQLite has on the same file in this process.
    pub(super) fn open(path: &Path, durability: Durability) -> Result<(Self, Arc<File>), OpenError> {
        let connection = connection::open_for_checkpoints(path, durability)?;
        let file_error = |source| OpenError::File { path: path.to_owned(), source };
        let database = Arc::new(File::open(path).map_err(file_error)?);
        Ok((Self { connection, database: Arc::clone(&database) }, database))
    }

    fn checkpoint(&self, mode: &str, patience: Duration) -> rusqlite::Result<CheckpointResult> {
        self.connection.busy_timeout(patience)?;
        self.connection.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| {
            Ok(CheckpointResult { busy: row.get(0)?, log: row.get(1)?, copied: row.get(2)? })
        })
    }
}

impl WriteAheadLog for SqliteLog {
    fn copy(&mut self) -> rusqlite::Result<CheckpointResult> {
        self.checkpoint("PASSIVE", Duration::ZERO)
    }

    fn sync(&mut self) -> std::io::Result<()> {
        self.database.sync_data()
    }

    fn restart(&mut self, patience: Duration) -> rusqlite::Result<CheckpointResult> {
        self.checkpoint("RESTART", patience)
    }

    fn truncate(&mut self, patience: Duration) -> rusqlite::Result<CheckpointResult> {
        self.checkpoint("TRUNCATE", patience)
    }
}
