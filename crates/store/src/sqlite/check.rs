//! The integrity check of a database file: SQLite's own, and the invariants of the store. It reads one snapshot of the
//! file, also while a server runs.

mod logs;
pub(crate) mod quick;
mod rows;

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode};

use super::columns::IdentifierText;
use super::open::database_path;
use super::{connection, migrate};

/// Why the file could not be checked at all.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// There is no database.
    #[error("there is no database at {}", .0.display())]
    Missing(PathBuf),
    /// A directory was named in place of a file.
    #[error("{} is a directory", .0.display())]
    Directory(PathBuf),
    /// A later version of the program has written it.
    #[error("{}", migrate::newer_schema(*.0))]
    NewerSchema(i64),
    /// It has not been brought to this version, or is no database of ours.
    #[error("the database has schema {0}, this program checks schema {known}", known = migrate::SCHEMA)]
    OlderSchema(i64),
    /// SQLite cannot read it.
    #[error("the database file is damaged beyond reading ({0})")]
    Damaged(#[source] rusqlite::Error),
    /// It cannot be read.
    #[error("cannot read the database: {0}")]
    Database(#[source] rusqlite::Error),
}

impl From<rusqlite::Error> for CheckError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged(error),
            _ => Self::Database(error),
        }
    }
}

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IntegrityReport {
    pub tasks: u64,
    pub event_rows: u64,
    /// One line each, naming the task where there is one; empty if all is well.
    pub problems: Vec<String>,
}

/// Checks the database of a data directory. Blocks until it is done; the log cannot be shortened meanwhile.
pub fn check(directory: &Path) -> Result<IntegrityReport, CheckError> {
    check_file(&database_path(directory))
}

/// Checks a database file wherever it is, such as a backup, and leaves nothing beside it. Blocks until it is done.
pub fn check_file(path: &Path) -> Result<IntegrityReport, CheckError> {
    find_file(path)?;
    check_connection(&mut connection::open_at_rest(path)?)
}

/// Whether a path names a file, so that the reason can be told if not: SQLite says no more than that it cannot be read.
pub(crate) fn find_file(path: &Path) -> Result<(), CheckError> {
    match path.metadata() {
        Ok(found) if found.is_dir() => Err(CheckError::Directory(path.to_owned())),
        Ok(_) => Ok(()),
        Err(_) => Err(CheckError::Missing(path.to_owned())),
    }
}

/// Checks what a connection sees.
pub(crate) fn check_connection(connection: &mut Connection) -> Result<IntegrityReport, CheckError> {
    let found = migrate::schema_of(connection)?;
    match found.cmp(&migrate::SCHEMA) {
        Ordering::Less => return Err(CheckError::OlderSchema(found)),
        Ordering::Greater => return Err(CheckError::NewerSchema(found)),
        Ordering::Equal => {}
    }
    let snapshot = connection.transaction()?;
    let mut report = IntegrityReport::default();
    report_rows(&snapshot, "PRAGMA integrity_check(100)", &mut report, |line| format!("database: {line}"))?;
    report.problems.retain(|problem| problem != "database: ok");
    logs::check(&snapshot, &mut report)?;
    rows::check(&snapshot, &mut report)?;
    Ok(report)
}

/// Adds a problem for each row of a query, named by its first column.
fn report_rows(
    connection: &Connection,
    sql: &str,
    report: &mut IntegrityReport,
    problem: impl Fn(&str) -> String,
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let name = match row.get_ref(0)? {
            ValueRef::Integer(number) => number.to_string(),
            _ => row.get(0).map_or_else(|_| "?".to_owned(), |IdentifierText(id)| id),
        };
        report.problems.push(problem(&name));
    }
    Ok(())
}
