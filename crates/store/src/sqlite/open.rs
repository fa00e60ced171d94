//! Opening a data directory: file lock, database file, migration, and the start counters (epoch, node number).

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};
use switchboard_engine::ids::Epoch;

use super::lock::{DirectoryLock, LockHolder};
use super::{Options, connection, migrate};

/// Why a data directory could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it.
    #[error("the data directory {} is in use by {holder}; stop it or choose another directory", directory.display())]
    Held { directory: PathBuf, holder: LockHolder },
    /// A file or directory could not be used.
    #[error("cannot use {}: {source}", path.display())]
    File { path: PathBuf, source: std::io::Error },
    /// A later version of the program has written the file.
    #[error("{}", migrate::newer_schema(*.0))]
    NewerSchema(i64),
    /// The file is a database of some other program.
    #[error("the database file holds tables of another program; choose another data directory")]
    ForeignDatabase,
    /// The database could not be read or written.
    #[error("cannot open the database: {0}")]
    Database(#[from] rusqlite::Error),
}

/// Where the tasks of a data directory are.
pub fn database_path(directory: &Path) -> PathBuf {
    directory.join("switchboard.db")
}

/// A locked and migrated database.
pub(crate) struct Opened {
    pub(crate) lock: DirectoryLock,
    pub(crate) path: PathBuf,
    /// The writer's. Were it closed in between, SQLite would empty the log that the writer begins anew at once.
    pub(crate) connection: Connection,
    pub(crate) start: Start,
    /// The greatest id that an event row or a journal line has had.
    pub(crate) newest_row: i64,
}

/// What identifies this start of the store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    /// Rises at each unclean start; stamped on event rows.
    pub(crate) epoch: Epoch,
    /// The number of the first node of this start, above all earlier ones; stamped on running rows as their holder.
    pub(crate) number: i64,
    /// Made at the first start.
    pub(crate) secret: [u8; 32],
}

/// Locks the directory and prepares the file.
pub(crate) fn open(directory: &Path, options: &Options, nodes: u32) -> Result<Opened, OpenError> {
    let file_error = |source| OpenError::File { path: directory.to_owned(), source };
    std::fs::create_dir_all(directory).map_err(file_error)?;
    let lock = DirectoryLock::take(directory, &options.note)?;
    let path = database_path(directory);
    create(&path)?;
    let mut connection = connection::open_for_writing(&path, options)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    migrate::migrate_in(&transaction)?;
    let start = record_start(&transaction, nodes)?;
    transaction.commit()?;
    let newest_row = newest_row(&connection)?;
    Ok(Opened { lock, path, connection, start, newest_row })
}

/// Creates the file readable by its owner alone; SQLite gives its other files the same mode. An existing file keeps its
/// mode.
pub(crate) fn create(path: &Path) -> Result<(), OpenError> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(source) => Err(OpenError::File { path: path.to_owned(), source }),
    }
}

/// Must be on disk before anything else is written: if a power cut could take the cleared flag away and keep the one
/// that the last clean end set, rolled-back numbers would be written again in the same epoch.
fn record_start(transaction: &Transaction<'_>, nodes: u32) -> rusqlite::Result<Start> {
    let epoch = meta(transaction, "epoch")?;
    let clean = meta(transaction, "clean")? == Some(1);
    let epoch = match epoch {
        None => 1,
        Some(epoch) if clean => epoch,
        Some(epoch) => epoch + 1,
    };
    let number = meta(transaction, "start")?.unwrap_or(0) + 1;
    set_meta(transaction, "epoch", epoch)?;
    set_meta(transaction, "start", number + i64::from(nodes) - 1)?;
    set_meta(transaction, "clean", 0)?;
    transaction.execute("INSERT OR IGNORE INTO meta (name, value) VALUES ('secret', randomblob(32))", [])?;
    let secret = transaction.query_row("SELECT value FROM meta WHERE name = 'secret'", [], |row| row.get(0))?;
    Ok(Start { epoch: Epoch(epoch.cast_unsigned()), number, secret })
}

/// Marks the end as clean, on disk.
pub(crate) fn mark_clean(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "synchronous", "FULL")?;
    set_meta(connection, "clean", 1)?;
    Ok(())
}

pub(crate) fn meta(connection: &Connection, name: &str) -> rusqlite::Result<Option<i64>> {
    connection.query_row("SELECT value FROM meta WHERE name = ?1", [name], |row| row.get(0)).optional()
}

pub(crate) fn set_meta(connection: &Connection, name: &str, value: i64) -> rusqlite::Result<usize> {
    connection.execute("INSERT OR REPLACE INTO meta (name, value) VALUES (?1, ?2)", (name, value))
}

/// The greatest id that an event row or a journal line has had, deleted ones too.
pub(crate) fn newest_row(connection: &Connection) -> rusqlite::Result<i64> {
    let sql = "SELECT max(coalesce((SELECT max(id) FROM event), 0), coalesce((SELECT max(id) FROM journal), 0))";
    let newest: i64 = connection.query_row(sql, [], |row| row.get(0))?;
    Ok(newest.max(meta(connection, "highest_event")?.unwrap_or(0)))
}
