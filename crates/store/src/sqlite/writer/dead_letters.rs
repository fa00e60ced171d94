//! Dead letters: replayed, or pruned when they are old or too many.

use rusqlite::OptionalExtension;
use switchboard_a2a::Timestamp;
use switchboard_engine::store::webhooks::DeliveryKey;

use super::session::Session;

/// Deleted per commit, so that appends wait a few milliseconds at most.
pub(crate) const PRUNED_AT_ONCE: usize = 64;

impl Session<'_> {
    /// Makes a delivered or dead delivery a pending replay; one that is a replay already becomes due now.
    pub(crate) fn replay(&mut self, delivery: DeliveryKey, now: Timestamp) -> rusqlite::Result<bool> {
        let sql = "SELECT webhook, state FROM delivery WHERE key = ?1 AND (state <> 0 OR replay = 1)";
        let mut find = self.connection.prepare_cached(sql)?;
        let found: Option<(i64, i64)> =
            find.query_row([delivery.0], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let Some((webhook, state)) = found else { return Ok(false) };
        let sql = "UPDATE delivery SET state = 0, replay = 1, held = 0, due_at = ?2, \
                   endpoint = (SELECT endpoint FROM webhook WHERE webhook.key = delivery.webhook) WHERE key = ?1";
        self.execute(sql, (delivery.0, now.0))?;
        if state == 1 {
            // It counts again once the replay is delivered.
            self.execute("UPDATE webhook SET delivered = delivered - 1 WHERE key = ?1", [webhook])?;
        }
        Ok(true)
    }

    /// Deletes dead letters, oldest first; returns how many, fewer than [`PRUNED_AT_ONCE`] if all.
    pub(crate) fn prune_dead_letters(
        &mut self,
        died_before: Timestamp,
        keep: usize,
        keep_bytes: u64,
    ) -> rusqlite::Result<usize> {
        let connection = self.connection;
        let sql =
            "SELECT count(*), coalesce(sum(length(body)), 0) FROM delivery INDEXED BY delivery_dead WHERE state = 2";
        let (dead, bytes): (i64, i64) =
            connection.prepare_cached(sql)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let excess = usize::try_from(dead).unwrap_or(0).saturating_sub(keep);
        let excess_bytes = bytes.cast_unsigned().saturating_sub(keep_bytes);
        let sql = "SELECT key, webhook, coalesce(length(body), 0) FROM delivery INDEXED BY delivery_died WHERE state = 2 AND attempted_at < ?1 \
                   ORDER BY attempted_at, key LIMIT ?2";
        let mut oldest = connection.prepare_cached(sql)?;
        let mut some = |before: i64, max: usize| -> rusqlite::Result<Vec<(i64, i64, u64)>> {
            let rows = oldest.query_map((before, max.cast_signed()), |row| {
                Ok((row.get(0)?, row.get(1)?, row.get::<_, i64>(2)?.cast_unsigned()))
            })?;
            rows.collect()
        };
        let mut pruned = some(died_before.0, PRUNED_AT_ONCE)?;
        if pruned.len() < excess.min(PRUNED_AT_ONCE) {
            pruned = some(i64::MAX, excess.min(PRUNED_AT_ONCE))?;
        }
        if pruned.is_empty() && excess_bytes > 0 {
            let mut freed = 0;
            for (key, webhook, bytes) in some(i64::MAX, PRUNED_AT_ONCE)? {
                if freed < excess_bytes {
                    freed += bytes;
                    pruned.push((key, webhook, bytes));
                }
            }
        }
        if pruned.is_empty() {
            return Ok(0);
        }
        self.save_highest_webhook_keys()?;
        for (key, webhook, _) in &pruned {
            self.execute("DELETE FROM delivery WHERE key = ?1", [key])?;
            self.delete_if_orphaned(*webhook)?;
        }
        Ok(pruned.len())
    }
}
