//! Rows of deliveries: due, pending, past, and dead letters.

use bytes::Bytes;
use rusqlite::Row;
use switchboard_a2a::Timestamp;
use switchboard_engine::ids::{Cursor, Epoch, Seq};
use switchboard_engine::store::webhooks::{Attempt, DeliveryKey, DeliveryRow, WebhookKey};

use super::Reader;
use crate::sqlite::columns::delivery_state_from;
use crate::sqlite::query::optional_row;

/// The columns of a delivery in the order of [`delivery_at`], which expects the body or NULL after them.
pub(crate) const DELIVERY_COLUMNS: &str = "delivery.key, delivery.webhook, first_seq, last_seq, last_epoch, about, delivery.form, delivery.state, \
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
}

/// A delivery out of [`DELIVERY_COLUMNS`] and a body, beginning at a column.
pub(crate) fn delivery_at(row: &Row<'_>, column: usize) -> rusqlite::Result<DeliveryRow> {
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
