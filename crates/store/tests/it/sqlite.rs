//! The suite on SQLite, and what is SQLite's own: files, locks, schemas, damage, full disks.

mod broken_writes;
mod check;
mod files;
mod keys;
mod limits;
mod migration;
mod nodes;
mod restore;
mod sharing;
mod stored_form;

use switchboard_store::{Durability, Options, SqliteStore};
use tempfile::TempDir;

use crate::suite::Fixture;

/// A data directory of its own.
pub(crate) struct SqliteFixture {
    pub(crate) directory: TempDir,
}

impl Fixture for SqliteFixture {
    type Store = SqliteStore;

    fn new() -> Self {
        Self { directory: TempDir::new().unwrap() }
    }

    fn open(&self) -> SqliteStore {
        // Whether a power cut loses something cannot be seen here, so the tests need not wait for the disk.
        self.open_with(Options { durability: Durability::Process, ..Options::default() })
    }
}

impl SqliteFixture {
    pub(crate) fn open_with(&self, options: Options) -> SqliteStore {
        SqliteStore::open(self.directory.path(), options).unwrap()
    }

    /// An operator with a database tool.
    pub(crate) fn tamper(&self, sql: &str) {
        let path = switchboard_store::database_path(self.directory.path());
        rusqlite::Connection::open(path).unwrap().execute_batch(sql).unwrap();
    }
}

crate::suite::conformance_suite!(SqliteFixture);
