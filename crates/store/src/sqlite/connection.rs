//! How each role opens the file, in one place, so that no role forgets a setting that matters for durability.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::{Durability, Options};

/// Readers never wait for the writer; this covers the moments in which the log is restarted.
const READER_BUSY: Duration = Duration::from_secs(5);
/// The only other writers are foreign tools, so the writer may wait for them.
const WRITER_BUSY: Duration = Duration::from_secs(5);

/// Five ordinary event rows fit a page of this size with hardly any waste, but only two a page of half of it; measured,
/// that is about a tenth of the cost of a task.
const PAGE_BYTES: i64 = 8192;
/// The hot pages of the writer are the right edges of its trees; this is plenty.
const WRITER_CACHE_KIB: i64 = 4096;
/// The inner pages of the trees of a million tasks; for the others readers lean on the operating system's cache.
const READER_CACHE_KIB: i64 = 2048;
/// Enough for all statements besides those of appends, which are not cached here.
const WRITER_STATEMENTS: usize = 64;
/// A log that grew beyond this is cut when it is restarted.
const JOURNAL_LIMIT_BYTES: i64 = 64 << 20;

/// Opens the file for writing; always with full synchronisation, which [`relax`] may take back.
pub(crate) fn open_for_writing(path: &Path, options: &Options) -> rusqlite::Result<Connection> {
    // Never created here: where a database was, an empty one would look like a store that has lost everything.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(WRITER_BUSY)?;
    // These two take effect only in an empty file, and only before the journal mode has been written to it.
    connection.pragma_update(None, "page_size", PAGE_BYTES)?;
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "journal_size_limit", JOURNAL_LIMIT_BYTES)?;
    connection.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.set_prepared_statement_cache_capacity(WRITER_STATEMENTS);
    keep_plans(&connection)?;
    connection.pragma_update(None, "reverse_unordered_selects", cfg!(debug_assertions))?;
    if let Some(max_bytes) = options.max_file_bytes {
        let page_size: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
        connection.pragma_update(
            None,
            "max_page_count",
            (i64::try_from(max_bytes).unwrap_or(i64::MAX) / page_size).max(1),
        )?;
    }
    Ok(connection)
}

/// Has a statement keep the plan that it was prepared with. Otherwise each run with other parameters plans it again where a
/// partial index may be used: measured, that is a twelfth of the time of a server whose tasks are short.
fn keep_plans(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop)
}

/// Gives up the power-cut guarantee if that is what was asked for.
pub(crate) fn relax(connection: &Connection, durability: Durability) -> rusqlite::Result<()> {
    match durability {
        Durability::Full => Ok(()),
        Durability::Process => connection.pragma_update(None, "synchronous", "NORMAL"),
    }
}

/// Opens the file for reading only.
pub(crate) fn open_for_reading(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(READER_BUSY)?;
    connection.pragma_update(None, "cache_size", -READER_CACHE_KIB)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.set_prepared_statement_cache_capacity(64);
    keep_plans(&connection)?;
    // A query that relies on an order it does not ask for gets the other one in every test.
    connection.pragma_update(None, "reverse_unordered_selects", cfg!(debug_assertions))?;
    Ok(connection)
}

/// Opens a file that no process writes to, such as a backup, and leaves nothing beside it. One with a write-ahead log is in use or
/// was left by a crash, and is opened as such.
pub(crate) fn open_at_rest(path: &Path) -> rusqlite::Result<Connection> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    if Path::new(&log).exists() {
        return open_for_reading(path);
    }
    let full = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let name: String = full
        .as_os_str()
        .as_bytes()
        .iter()
        .map(|byte| match byte {
            b'/' | b'.' | b'-' | b'_' => char::from(*byte).to_string(),
            byte if byte.is_ascii_alphanumeric() => char::from(*byte).to_string(),
            byte => format!("%{byte:02X}"),
        })
        .collect();
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(format!("file:{name}?immutable=1"), flags)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(connection)
}

/// Opens the file for checkpoints, each of which says how long it waits.
pub(crate) fn open_for_checkpoints(path: &Path, durability: Durability) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "journal_size_limit", JOURNAL_LIMIT_BYTES)?;
    relax(&connection, durability)?;
    Ok(connection)
}
