//! The writer's state on one connection: prepared statements, the next keys, the caches of the open transaction.

use std::sync::Arc;

use parking_lot::Mutex;
use rusqlite::{Connection, Params};
use tokio::sync::watch;

use super::counters::{CounterKey, TaskCounters};
use super::names::Names;
use super::statements::Statements;
use crate::sqlite::open::{Start, meta, newest_row, set_meta};
use crate::sqlite::replies::Announcement;
use crate::sqlite::sent_keys::SentKeys;

/// An ordinary append is smaller, so the store works again once this much can be written.
const PROBE_BYTES: i64 = 64 << 10;

pub(crate) struct Session<'c> {
    pub(crate) connection: &'c Connection,
    pub(crate) statements: Statements<'c>,
    pub(crate) names: Names,
    pub(crate) counters: TaskCounters,
    pub(crate) start: Start,
    /// Keys are never reused, not even that of an evicted row: [`Self::save_highest_keys`].
    pub(crate) next_task: i64,
    /// Of event rows and journal lines, which are in one order.
    pub(crate) next_event: i64,
    pub(crate) next_webhook: i64,
    pub(crate) next_delivery: i64,
    /// Held during a transaction, so that the checkpointer can restart the log between two of them.
    gate: Arc<Mutex<()>>,
    /// Knows every key before it is committed.
    pub(crate) sent_keys: Arc<SentKeys>,
    /// The greatest row that is committed.
    committed: watch::Sender<i64>,
    /// The greatest one that readers of all rows were told of.
    announced: i64,
}

impl<'c> Session<'c> {
    pub(crate) fn new(
        connection: &'c Connection,
        start: Start,
        gate: Arc<Mutex<()>>,
        sent_keys: Arc<SentKeys>,
        committed: watch::Sender<i64>,
    ) -> rusqlite::Result<Self> {
        let next = |sql: &str, saved: &str| -> rusqlite::Result<i64> {
            let highest: Option<i64> = connection.query_row(sql, [], |row| row.get(0))?;
            Ok(highest.max(meta(connection, saved)?).unwrap_or(0) + 1)
        };
        let newest = newest_row(connection)?;
        Ok(Self {
            connection,
            statements: Statements::prepare(connection)?,
            names: Names::default(),
            counters: TaskCounters::default(),
            start,
            next_task: next("SELECT max(key) FROM task", "highest_task")?,
            next_event: newest + 1,
            next_webhook: next("SELECT max(key) FROM webhook", "highest_webhook")?,
            next_delivery: next("SELECT max(key) FROM delivery", "highest_delivery")?,
            gate,
            sent_keys,
            committed,
            announced: newest,
        })
    }

    /// Runs `work` in a transaction of its own, everything or nothing, and wakes the readers of all rows.
    pub(crate) fn transaction<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let value = self.unannounced_transaction(work)?;
        if let Some(announcement) = self.announcement() {
            announcement.send();
        }
        Ok(value)
    }

    /// What the readers of all rows have to be told since the last announcement.
    pub(crate) fn announcement(&mut self) -> Option<Announcement> {
        let newest = self.next_event - 1;
        let is_new = std::mem::replace(&mut self.announced, newest) != newest;
        is_new.then(|| Announcement(self.committed.clone()))
    }

    /// The same, but the readers are told by [`Self::announcement`]; who looks sees the new rows at once.
    pub(crate) fn unannounced_transaction<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let gate = Arc::clone(&self.gate);
        let _open = gate.lock();
        self.statements.begin.execute([])?;
        let result = work(self).and_then(|value| {
            self.flush_counters()?;
            self.statements.commit.execute([])?;
            let newest = self.next_event - 1;
            self.committed.send_if_modified(|row| {
                *row = newest;
                false
            });
            Ok(value)
        });
        if result.is_err() {
            self.roll_back();
        }
        result
    }

    /// Runs a cached statement that is not on the hot path.
    pub(crate) fn execute(&self, sql: &str, params: impl Params) -> rusqlite::Result<usize> {
        self.connection.prepare_cached(sql)?.execute(params)
    }

    /// Writes the gathered counters into the open transaction.
    pub(crate) fn flush_counters(&mut self) -> rusqlite::Result<Vec<CounterKey>> {
        self.counters.write(&mut self.statements.count)
    }

    /// Saves the highest keys, in the transaction that may delete the rows that have them.
    pub(crate) fn save_highest_keys(&self) -> rusqlite::Result<()> {
        set_meta(self.connection, "highest_task", self.next_task - 1)?;
        set_meta(self.connection, "highest_event", self.next_event - 1)?;
        self.save_highest_webhook_keys()
    }

    /// The same for a transaction that deletes no tasks.
    pub(crate) fn save_highest_webhook_keys(&self) -> rusqlite::Result<()> {
        set_meta(self.connection, "highest_webhook", self.next_webhook - 1)?;
        set_meta(self.connection, "highest_delivery", self.next_delivery - 1)?;
        Ok(())
    }

    /// Tries whether an ordinary write would succeed.
    pub(crate) fn probe(&mut self) -> rusqlite::Result<()> {
        self.transaction(|session| {
            let sql = "INSERT OR REPLACE INTO meta (name, value) VALUES ('probe', zeroblob(?1))";
            session.connection.execute(sql, [PROBE_BYTES])
        })?;
        self.transaction(|session| session.connection.execute("DELETE FROM meta WHERE name = 'probe'", []))?;
        Ok(())
    }

    fn roll_back(&mut self) {
        self.counters.forget();
        self.names.forget();
        // Some errors have rolled back already.
        if !self.connection.is_autocommit()
            && let Err(error) = self.statements.rollback.execute([])
        {
            tracing::warn!(%error, "a failed transaction could not be rolled back");
        }
    }
}
