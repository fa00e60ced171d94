//! The outbox: the steps of a webhook. A delivery is prepared, attempted, delivered or made a dead letter, and the cursor
//! moves with it.
//!
//! A step that comes too late, because its delivery or webhook has changed meanwhile, finds nothing to change.

use bytes::Bytes;
use rusqlite::{OptionalExtension, params};
use switchboard_a2a::Timestamp;
use switchboard_engine::ids::Seq;
use switchboard_engine::store::webhooks::{Attempt, DeliveryKey, DeliveryState, NewDelivery, OutboxWrite, WebhookKey};

use super::session::Session;
use crate::sqlite::columns::delivery_state_number;

/// Delivered deliveries that are kept of each webhook, for operators.
const HISTORY: i64 = 100;

/// Deliveries released per commit, so that appends wait a few milliseconds at most; there may be any number of them.
pub(crate) const RELEASED_AT_ONCE: usize = 512;
/// Parameters: the endpoint, the time, the limit. What is due already stays as it is, so that each call finds others.
pub(crate) const RELEASE: &str = "UPDATE delivery SET due_at = max(?2, not_before) WHERE key IN (SELECT delivery.key FROM delivery INDEXED BY \
     delivery_endpoint WHERE endpoint = ?1 AND state = 0 AND replay = 0 \
     AND due_at > ?2 AND due_at > not_before LIMIT ?3)";

/// The columns of a pending delivery that steps need.
struct Pending {
    key: i64,
    webhook: i64,
    replay: bool,
    last_seq: i64,
}

impl Session<'_> {
    pub(crate) fn step(&mut self, write: &OutboxWrite) -> rusqlite::Result<()> {
        match write {
            OutboxWrite::IfStill { webhook, revision, write } => {
                let was_taken = matches!(**write, OutboxWrite::Delivered { .. });
                match self.is_current(*webhook, *revision, was_taken)? {
                    true => self.step(write),
                    false => Ok(()),
                }
            }
            OutboxWrite::Skipped { webhook, cursor } => {
                let sql = "UPDATE webhook SET cursor = ?2 WHERE key = ?1 AND cursor < ?2 AND state < 2 AND NOT EXISTS \
                           (SELECT 1 FROM delivery WHERE webhook = ?1 AND delivery.state = 0 AND replay = 0)";
                self.execute(sql, (webhook.0, cursor.0.cast_signed())).map(drop)
            }
            OutboxWrite::Prepare { webhook, delivery } => self.prepare(webhook.0, delivery),
            OutboxWrite::Delivered { delivery, attempt, finished, next } => {
                self.delivered(*delivery, attempt, *finished, next.as_ref())
            }
            OutboxWrite::Failed { delivery, attempt, due_at, not_before } => {
                let Some(pending) = self.pending(*delivery)? else { return Ok(()) };
                let sql = "UPDATE delivery SET not_before = ?2 WHERE key = ?1";
                self.execute(sql, (pending.key, not_before.0))?;
                self.record_attempt(&pending, attempt, DeliveryState::Pending, Some(*due_at))
            }
            OutboxWrite::Dead { delivery, attempt, finished, body } => {
                let Some(pending) = self.pending(*delivery)? else { return Ok(()) };
                self.store_body(&pending, body.as_ref())?;
                self.record_attempt(&pending, attempt, DeliveryState::Dead, None)?;
                self.advance_cursor(&pending, *finished, 0)?;
                Ok(())
            }
            OutboxWrite::Abandon { webhook, delivery, problem } => self.abandon(webhook.0, delivery, problem),
            OutboxWrite::Disabled { delivery, attempt, body } => {
                let Some(pending) = self.pending(*delivery)? else { return Ok(()) };
                self.store_body(&pending, body.as_ref())?;
                self.record_attempt(&pending, attempt, DeliveryState::Dead, None)?;
                self.advance_cursor(&pending, false, 0)?;
                self.execute("UPDATE webhook SET state = 2 WHERE key = ?1 AND state < 2", [pending.webhook])?;
                // There is one only if the endpoint refused a replay.
                self.hold_head(pending.webhook)
            }
            OutboxWrite::Finished { webhook, cursor } => self.finish(*webhook, *cursor),
        }
    }

    /// Whether the webhook has the same revision; for a delivered step, the same URL and form are enough.
    fn is_current(&self, webhook: WebhookKey, revision: u64, was_taken: bool) -> rusqlite::Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM webhook WHERE key = ?1 AND iif(?3, moved <= ?2, revision = ?2))";
        let values = (webhook.0, revision.cast_signed(), was_taken);
        self.connection.prepare_cached(sql)?.query_row(values, |row| row.get(0))
    }

    /// A dead letter outlives the log from which its body could be rendered again.
    fn store_body(&self, pending: &Pending, body: Option<&Bytes>) -> rusqlite::Result<()> {
        let Some(body) = body else { return Ok(()) };
        self.execute("UPDATE delivery SET body = ?2 WHERE key = ?1", (pending.key, &body[..])).map(drop)
    }

    fn pending(&self, delivery: DeliveryKey) -> rusqlite::Result<Option<Pending>> {
        let sql = "SELECT key, webhook, replay, last_seq FROM delivery WHERE key = ?1 AND state = 0";
        let mut statement = self.connection.prepare_cached(sql)?;
        let pending = statement.query_row([delivery.0], |row| {
            Ok(Pending { key: row.get(0)?, webhook: row.get(1)?, replay: row.get(2)?, last_seq: row.get(3)? })
        });
        pending.optional()
    }

    fn record_attempt(
        &self,
        pending: &Pending,
        attempt: &Attempt,
        state: DeliveryState,
        due_at: Option<Timestamp>,
    ) -> rusqlite::Result<()> {
        let sql = "UPDATE delivery SET state = ?2, attempts = attempts + 1, attempted_at = ?3, duration_ms = ?4, \
                   status = ?5, problem = ?6, due_at = coalesce(?7, due_at), body = iif(?2 = 1, NULL, body) WHERE key = ?1";
        let Attempt { at, duration_ms, status, problem } = attempt;
        let (state, due_at) = (delivery_state_number(state), due_at.map(|at| at.0));
        self.execute(sql, params![pending.key, state, at.0, duration_ms, status, problem, due_at]).map(drop)
    }

    /// Moves the cursor past a delivery, unless it is a replay. Returns how many were delivered.
    fn advance_cursor(&self, pending: &Pending, finished: bool, delivered: i64) -> rusqlite::Result<i64> {
        let sql = "UPDATE webhook SET cursor = max(cursor, ?2), late = iif(?2 > cursor, 0, late), \
                   state = iif(?3 AND state < 2, 3, state), delivered = delivered + ?4 WHERE key = ?1 RETURNING delivered";
        let cursor = if pending.replay { 0 } else { pending.last_seq };
        let values = (pending.webhook, cursor, finished && !pending.replay, delivered);
        self.connection.prepare_cached(sql)?.query_row(values, |row| row.get(0))
    }

    /// Inserts the delivery in order, due at once, unless there is one already or the cursor is past it.
    fn prepare(&mut self, webhook: i64, new: &NewDelivery) -> rusqlite::Result<()> {
        self.insert_delivery(webhook, new, None).map(drop)
    }

    /// Inserts a delivery; with a problem as a dead letter that was never attempted. Returns whether it was inserted.
    fn insert_delivery(&mut self, webhook: i64, new: &NewDelivery, problem: Option<&str>) -> rusqlite::Result<bool> {
        let sql = "INSERT INTO delivery (key, webhook, endpoint, first_seq, last_seq, last_epoch, about, form, body, \
                   state, replay, held, attempts, due_at, created_at, attempted_at, duration_ms, problem, began_at) \
                   SELECT ?1, key, endpoint, ?3, ?4, ?5, ?6, ?7, ?8, iif(?10 IS NULL, 0, 2), 0, ?10 IS NULL AND state <> 0, \
                   0, ?9, ?9, iif(?10 IS NULL, NULL, ?9), iif(?10 IS NULL, NULL, 0), ?10, began_at FROM webhook \
                   WHERE key = ?2 AND state < 2 AND cursor < ?3 AND NOT EXISTS \
                   (SELECT 1 FROM delivery WHERE webhook = ?2 AND delivery.state = 0 AND replay = 0)";
        let values = params![
            self.next_delivery,
            webhook,
            new.first.0.cast_signed(),
            new.last.seq.0.cast_signed(),
            new.last.epoch.0.cast_signed(),
            new.about,
            new.form,
            new.body.as_deref(),
            new.at.0,
            problem,
        ];
        let inserted = self.execute(sql, values)? > 0;
        self.next_delivery += i64::from(inserted);
        Ok(inserted)
    }

    fn delivered(
        &mut self,
        delivery: DeliveryKey,
        attempt: &Attempt,
        finished: bool,
        next: Option<&NewDelivery>,
    ) -> rusqlite::Result<()> {
        let Some(pending) = self.pending(delivery)? else { return Ok(()) };
        self.record_attempt(&pending, attempt, DeliveryState::Delivered, None)?;
        let delivered = self.advance_cursor(&pending, finished, 1)?;
        if delivered > HISTORY {
            // Scans the index entries of this webhook alone, and finds one row too many.
            let sql = "DELETE FROM delivery WHERE key IN (SELECT key FROM delivery INDEXED BY delivery_webhook \
                       WHERE webhook = ?1 AND state = 1 ORDER BY key DESC LIMIT -1 OFFSET ?2)";
            self.execute(sql, (pending.webhook, HISTORY))?;
        }
        if pending.replay {
            return self.delete_if_orphaned(pending.webhook);
        }
        next.map_or(Ok(()), |next| self.prepare(pending.webhook, next))
    }

    fn abandon(&mut self, webhook: i64, new: &NewDelivery, problem: &str) -> rusqlite::Result<()> {
        if self.insert_delivery(webhook, new, Some(problem))? {
            let sql = "UPDATE webhook SET cursor = ?2, late = 0 WHERE key = ?1";
            self.execute(sql, (webhook, new.last.seq.0.cast_signed()))?;
        }
        Ok(())
    }

    fn finish(&self, webhook: WebhookKey, cursor: Seq) -> rusqlite::Result<()> {
        let sql = "UPDATE webhook SET cursor = max(cursor, ?2), late = 0, state = 3 WHERE key = ?1 AND state < 2 AND NOT EXISTS \
                   (SELECT 1 FROM delivery WHERE webhook = ?1 AND delivery.state = 0 AND replay = 0)";
        self.execute(sql, (webhook.0, cursor.0.cast_signed())).map(drop)
    }
}
