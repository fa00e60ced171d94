//! Schema migrations: numbered, forward only. All that a file lacks run in one transaction with the number of the last,
//! so that a crash leaves the file as it was or as it should be, and a new file costs one commit.

use rusqlite::{Connection, OptionalExtension, Transaction};

use super::open::OpenError;

/// In order; the first one is number 1. Never edited once released, only added to.
const MIGRATIONS: [&str; 6] = [
    include_str!("migrations/0001_tasks.sql"),
    include_str!("migrations/0002_webhooks.sql"),
    include_str!("migrations/0003_notes.sql"),
    include_str!("migrations/0004_requeued.sql"),
    include_str!("migrations/0005_live_index.sql"),
    include_str!("migrations/0006_hub.sql"),
];

/// The schema this binary writes.
pub(crate) const SCHEMA: i64 = MIGRATIONS.len() as i64;

/// The message of [`OpenError`] and of the check for the schema of a later program.
pub(crate) fn newer_schema(found: i64) -> String {
    format!("the database has schema {found}, this program knows up to {SCHEMA}")
}

/// The schema of a file; zero if it is empty.
pub(crate) fn schema_of(connection: &Connection) -> rusqlite::Result<i64> {
    let has_meta: bool =
        connection
            .query_row("SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'meta')", [], |row| row.get(0))?;
    if !has_meta {
        return Ok(0);
    }
    let schema: Option<i64> =
        connection.query_row("SELECT value FROM meta WHERE name = 'schema'", [], |row| row.get(0)).optional()?;
    Ok(schema.unwrap_or(0))
}

/// Runs what is missing.
pub(crate) fn migrate(connection: &mut Connection) -> Result<(), OpenError> {
    let transaction = connection.transaction()?;
    migrate_in(&transaction)?;
    Ok(transaction.commit()?)
}

/// Runs what is missing, in a transaction that may do more.
pub(crate) fn migrate_in(transaction: &Transaction<'_>) -> Result<(), OpenError> {
    let found = schema_of(transaction)?;
    if found == SCHEMA {
        return Ok(());
    }
    if found > SCHEMA {
        return Err(OpenError::NewerSchema(found));
    }
    if found == 0 {
        let foreign: i64 = transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        if foreign > 0 {
            return Err(OpenError::ForeignDatabase);
        }
        transaction.execute_batch("CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID")?;
    }
    for (_, migration) in (1i64..).zip(MIGRATIONS).filter(|(number, _)| *number > found) {
        transaction.execute_batch(migration)?;
    }
    transaction.execute("INSERT OR REPLACE INTO meta (name, value) VALUES ('schema', ?1)", [SCHEMA])?;
    Ok(())
}
