//! Deliveries of the outbox: due, pending, past, and dead letters.

use bytes::Bytes;
use rusqlite::Row;
use switchboard_a2a::Timestamp;
use switchboard_engine::ids::{Cursor, Epoch, Seq};
use switchboard_engine::store::webhooks::{
    Attempt, DeliveryKey, DeliveryRow, DueDelivery, OutboxCounts, WebhookKey, WebhookRoute, WebhookRow,
};

use super::Reader;
use super::webhooks::{WEBHOOK_COLUMNS, WEBHOOK_WIDTH};
use crate::sqlite::columns::delivery_state_from;
use crate::sqlite::query::{limit, number, optional_row, rows};

/// The columns of a delivery in the order of [`delivery_at`], which expects the body or NULL after them.
const DELIVERY_COLUMNS: &str = "delivery.key, delivery.webhook, first_seq, last_seq, last_epoch, about, delivery.form, delivery.state, \
     replay, attempts, due_at, delivery.created_at, attempted_at, duration_ms, status, problem, delivery.began_at";

/// Parameters: the delivery to begin after (its time and key), the latest time, the limit.
pub(crate) const DUE: &str = "SELECT webhook, delivery.endpoint, delivery.key, due_at, owner FROM delivery INDEXED BY delivery_due \
     JOIN webhook ON webhook.key = delivery.webhook WHERE delivery.state = 0 AND held = 0 AND (due_at, delivery.key) > (?1, ?2) AND due_at <= ?3 ORDER BY due_at, delivery.key LIMIT ?4";
pub(crate) const NEXT_DUE: &str = "SELECT due_at FROM delivery INDEXED BY delivery_due \
     WHERE state = 0 AND held = 0 AND due_at > ?1 ORDER BY due_at LIMIT 1";
/// Counts the open webhooks with a pending delivery or an ended task, and since when at least the first is behind.
pub(crate) const BEHIND: &str = "SELECT count(*), min(min(coalesce(delivery.created_at, task.status_at), \
     iif(task.phase = 4, task.status_at, delivery.created_at))) FROM webhook INDEXED BY webhook_open \
     JOIN task ON task.key = task_key LEFT JOIN delivery INDEXED BY delivery_head ON delivery.webhook = webhook.key \
     AND delivery.state = 0 AND replay = 0 WHERE webhook.state < 2 AND (task.phase = 4 OR delivery.key IS NOT NULL)";

impl Reader {
    pub(crate) fn due_deliveries(
        &mut self,
        after: (Timestamp, DeliveryKey),
        until: Timestamp,
        max: usize,
    ) -> rusqlite::Result<Vec<DueDelivery>> {
        rows(&self.connection, DUE, (after.0.0, after.1.0, until.0, limit(max)), |row| {
            let owner = self.names.text(&self.connection, row.get(4)?)?.into();
            let route = WebhookRoute { webhook: WebhookKey(row.get(0)?), owner, endpoint: row.get(1)? };
            Ok(DueDelivery { due_at: Timestamp(row.get(3)?), delivery: DeliveryKey(row.get(2)?), route })
        })
    }

    pub(crate) fn next_due(&self, after: Timestamp) -> rusqlite::Result<Option<Timestamp>> {
        optional_row(&self.connection, NEXT_DUE, [after.0], |row| row.get(0).map(Timestamp))
    }

    /// The pending delivery in order of a webhook.
    pub(crate) fn pending_in_order(
        &self,
        webhook: WebhookKey,
        with_body: bool,
    ) -> rusqlite::Result<Option<DeliveryRow>> {
        let body = if with_body { "body" } else { "NULL" };
        let sql = format!(
            "SELECT {DELIVERY_COLUMNS}, {body} FROM delivery INDEXED BY delivery_head \
             WHERE webhook = ?1 AND state = 0 AND replay = 0"
        );
        optional_row(&self.connection, &sql, [webhook.0], |row| delivery_at(row, 0))
    }

    /// The first pending replay.
    pub(crate) fn first_replay(&self, webhook: WebhookKey) -> rusqlite::Result<Option<DeliveryRow>> {
        let sql = format!(
            "SELECT {DELIVERY_COLUMNS}, body FROM delivery INDEXED BY delivery_replay \
             WHERE webhook = ?1 AND state = 0 AND replay = 1 ORDER BY key LIMIT 1"
        );
        optional_row(&self.connection, &sql, [webhook.0], |row| delivery_at(row, 0))
    }

    pub(crate) fn delivery(&mut self, key: DeliveryKey) -> rusqlite::Result<Option<(WebhookRow, DeliveryRow)>> {
        let sql = format!(
            "SELECT {WEBHOOK_COLUMNS}, {DELIVERY_COLUMNS}, body FROM delivery \
             JOIN webhook ON webhook.key = delivery.webhook WHERE delivery.key = ?1"
        );
        Ok(self.webhook_rows(&sql, [key.0], |row| delivery_at(row, WEBHOOK_WIDTH))?.pop())
    }

    pub(crate) fn deliveries(&self, webhook: WebhookKey, max: usize) -> rusqlite::Result<Vec<DeliveryRow>> {
        // The inner query sorts index entries, so that only the returned rows are read.
        let sql = format!(
            "SELECT {DELIVERY_COLUMNS}, NULL FROM delivery WHERE key IN (SELECT key FROM delivery INDEXED BY delivery_webhook \
             WHERE webhook = ?1 ORDER BY key DESC LIMIT ?2) ORDER BY key DESC"
        );
        rows(&self.connection, &sql, (webhook.0, limit(max)), |row| delivery_at(row, 0))
    }

    pub(crate) fn dead_letters(
        &mut self,
        after: DeliveryKey,
        max: usize,
    ) -> rusqlite::Result<Vec<(WebhookRow, DeliveryRow)>> {
        let sql = format!(
            "SELECT {WEBHOOK_COLUMNS}, {DELIVERY_COLUMNS}, NULL FROM delivery INDEXED BY delivery_dead \
             JOIN webhook ON webhook.key = delivery.webhook \
             WHERE delivery.state = 2 AND delivery.key > ?1 ORDER BY delivery.key LIMIT ?2"
        );
        self.webhook_rows(&sql, (after.0, limit(max)), |row| delivery_at(row, WEBHOOK_WIDTH))
    }

    pub(crate) fn outbox_census(&self) -> rusqlite::Result<OutboxCounts> {
        let (behind, since): (i64, Option<i64>) =
            self.connection.prepare_cached(BEHIND)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let dead = "SELECT count(*) FROM delivery INDEXED BY delivery_dead WHERE state = 2";
        let dead = number(&self.connection, dead)?;
        let replays = "SELECT count(*) FROM delivery INDEXED BY delivery_replay WHERE state = 0 AND replay = 1";
        let replays = number(&self.connection, replays)?;
        Ok(OutboxCounts { behind: behind.cast_unsigned() + replays, behind_since: since.map(Timestamp), dead })
    }
}

/// A delivery out of [`DELIVERY_COLUMNS`] and a body, beginning at a column.
fn delivery_at(row: &Row<'_>, column: usize) -> rusqlite::Result<DeliveryRow> {
    let seq = |offset| row.get::<_, i64>(column + offset).map(i64::cast_unsigned);
    let mut last_attempt = None;
    if let Some(at) = row.get(column + 12)? {
        let duration_ms = row.get::<_, Option<u32>>(column + 13)?.unwrap_or(0);
        let problem = row.get::<_, Option<String>>(column + 15)?.unwrap_or_default();
        last_attempt = Some(Attempt { at: Timestamp(at), duration_ms, status: row.get(column + 14)?, problem });
    }
    Ok(DeliveryRow {
        key: DeliveryKey(row.get(column)?),
        webhook: WebhookKey(row.get(column + 1)?),
        first: Seq(seq(2)?),
        last: Cursor { epoch: Epoch(seq(4)?), seq: Seq(seq(3)?) },
        about: row.get(column + 5)?,
        form: row.get(column + 6)?,
        body: row.get::<_, Option<Vec<u8>>>(column + 17)?.map(Bytes::from),
        state: delivery_state_from(column + 7, row.get(column + 7)?)?,
        replay: row.get(column + 8)?,
        attempts: row.get(column + 9)?,
        due_at: Timestamp(row.get(column + 10)?),
        created_at: Timestamp(row.get(column + 11)?),
        began_at: Timestamp(row.get(column + 16)?),
        last_attempt,
    })
}
