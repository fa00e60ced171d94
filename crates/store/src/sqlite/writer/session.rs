//! The writer's state on one connection: prepared statements, the next numbers, the caches of the open transaction.

use std::sync::Arc;

use parking_lot::Mutex;
use rusqlite::{Connection, Params};

use super::counters::{CounterKey, TaskCounters};
use super::names::Names;
use super::statements::Statements;
use crate::sqlite::open::{Start, meta, set_meta};

/// An ordinary append is smaller than this, so if so much can be written, the store works again.
const PROBE_BYTES: i64 = 64 << 10;

pub(crate) struct Session<'c> {
    pub(crate) connection: &'c Connection,
    pub(crate) statements: Statements<'c>,
    pub(crate) names: Names,
    pub(crate) counters: TaskCounters,
    pub(crate) start: Start,
    /// Numbers are never given twice, not even after the row that had the highest one is evicted: [`Self::save_highest_keys`].
    pub(crate) next_task: i64,
    pub(crate) next_event: i64,
    pub(crate) next_webhook: i64,
    pub(crate) next_delivery: i64,
    /// Held during a transaction, so that the checkpointer can restart the log between two of them.
    gate: Arc<Mutex<()>>,
}

impl<'c> Session<'c> {
    pub(crate) fn new(connection: &'c Connection, start: Start, gate: Arc<Mutex<()>>) -> rusqlite::Result<Self> {
        let highest = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, Option<i64>>(0));
        let task = highest("SELECT max(key) FROM task")?.max(meta(connection, "highest_task")?);
        let event = highest("SELECT max(id) FROM event")?.max(meta(connection, "highest_event")?);
        let webhook = highest("SELECT max(key) FROM webhook")?.max(meta(connection, "highest_webhook")?);
        let delivery = highest("SELECT max(key) FROM delivery")?.max(meta(connection, "highest_delivery")?);
        Ok(Self {
            connection,
            statements: Statements::prepare(connection)?,
            names: Names::default(),
            counters: TaskCounters::default(),
            start,
            next_task: task.unwrap_or(0) + 1,
            next_event: event.unwrap_or(0) + 1,
            next_webhook: webhook.unwrap_or(0) + 1,
            next_delivery: delivery.unwrap_or(0) + 1,
            gate,
        })
    }

    /// Runs `work` in a transaction of its own; everything or nothing.
    pub(crate) fn transaction<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let gate = Arc::clone(&self.gate);
        let _open = gate.lock();
        self.statements.begin.execute([])?;
        let result = work(self).and_then(|value| {
            self.flush_counters()?;
            self.statements.commit.execute([])?;
            Ok(value)
        });
        if result.is_err() {
            self.roll_back();
        }
        result
    }

    /// Runs a statement that is not on the path of every append; it stays prepared all the same.
    pub(crate) fn execute(&self, sql: &str, params: impl Params) -> rusqlite::Result<usize> {
        self.connection.prepare_cached(sql)?.execute(params)
    }

    /// Writes the gathered counters into the open transaction.
    pub(crate) fn flush_counters(&mut self) -> rusqlite::Result<Vec<CounterKey>> {
        self.counters.write(&mut self.statements.count)
    }

    /// Remembers the highest numbers given, in the transaction that may delete the rows that have them.
    pub(crate) fn save_highest_keys(&self) -> rusqlite::Result<()> {
        set_meta(self.connection, "highest_task", self.next_task - 1)?;
        set_meta(self.connection, "highest_event", self.next_event - 1)?;
        self.save_highest_webhook_keys()
    }

    /// The same for what deletes no tasks.
    pub(crate) fn save_highest_webhook_keys(&self) -> rusqlite::Result<()> {
        set_meta(self.connection, "highest_webhook", self.next_webhook - 1)?;
        set_meta(self.connection, "highest_delivery", self.next_delivery - 1)?;
        Ok(())
    }

    /// Finds out whether an ordinary write would succeed.
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
