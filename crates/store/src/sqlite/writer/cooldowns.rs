//! Cooldowns, which an append takes or is refused by.

use rusqlite::OptionalExtension;
use switchboard_a2a::Timestamp;
use switchboard_engine::store::{COOLDOWNS, Cooldown, StoreError};

use super::append::AppendFailure;
use super::session::Session;
use crate::sqlite::query::limit;

impl Session<'_> {
    /// Refuses a cooldown that is not over.
    pub(crate) fn check_cooldown(&self, cooldown: Option<&Cooldown>) -> Result<(), AppendFailure> {
        let Some(Cooldown { key, now, .. }) = cooldown else { return Ok(()) };
        let sql = "SELECT until FROM cooldown WHERE key = ?1 AND until > ?2";
        let found = self.connection.prepare_cached(sql)?.query_row((key, now.0), |row| row.get(0)).optional()?;
        match found {
            Some(until) => {
                let (key, until) = (key.clone(), Timestamp(until));
                Err(AppendFailure::Refused(StoreError::CoolingDown { key, until }))
            }
            None => Ok(()),
        }
    }

    /// Takes a cooldown. Those that are over make room, and the one that ends first if there are too many.
    pub(crate) fn take_cooldown(&self, cooldown: Option<&Cooldown>) -> rusqlite::Result<()> {
        let Some(Cooldown { key, now, until }) = cooldown else { return Ok(()) };
        self.execute("DELETE FROM cooldown WHERE until <= ?1", [now.0])?;
        let sql = "DELETE FROM cooldown WHERE key IN (SELECT key FROM cooldown ORDER BY until \
                   LIMIT max(0, (SELECT count(*) FROM cooldown) - ?1))";
        self.execute(sql, [limit(COOLDOWNS - 1)])?;
        self.execute("INSERT OR REPLACE INTO cooldown (key, until) VALUES (?1, ?2)", (key, until.0))?;
        Ok(())
    }
}
