//! Deliveries: what is due, what is next, what was, and what was given up.

use bytes::Bytes;
use rusqlite::{OptionalExtension, Row};
use switchboard_a2a::Timestamp;
use switchboard_engine::ids::{Cursor, Epoch, Seq};
use switchboard_engine::store::webhooks::{
    Attempt, DeliveryKey, DeliveryRow, Due, OutboxCensus, Route, WebhookKey, WebhookRow,
};

use super::Reader;
use super::unfinished::limit;
use super::webhooks::{WEBHOOK_COLUMNS, WEBHOOK_WIDTH};
use crate::sqlite::columns::delivery_state_from;

/// The columns of a delivery but its body, in the order in which they are read; the body follows if it is wanted.
const DELIVERY_COLUMNS: &str = "delivery.key, delivery.webhook, first_seq, last_seq, last_epoch, about, delivery.form, delivery.state, \
     replay, attempts, due_at, delivery.created_at, attempted_at, duration_ms, status, problem, delivery.began_at";

/// Takes a place in the order, a time and how many.
pub(crate) const DUE: &str = "SELECT webhook, delivery.endpoint, delivery.key, due_at, owner FROM delivery INDEXED BY delivery_due \
     JOIN webhook ON webhook.key = delivery.webhook WHERE delivery.state = 0 AND held = 0 AND (due_at, delivery.key) > (?1, ?2) AND due_at <= ?3 ORDER BY due_at, delivery.key LIMIT ?4";
/// Takes a time.
pub(crate) const NEXT_DUE: &str = "SELECT due_at FROM delivery INDEXED BY delivery_due \
     WHERE state = 0 AND held = 0 AND due_at > ?1 ORDER BY due_at LIMIT 1";
/// Open webhooks with a delivery that waits or a task that has ended, and since when the first of them is so at least.
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
    ) -> rusqlite::Result<Vec<Due>> {
        let mut statement = self.connection.prepare_cached(DUE)?;
        let mut rows = statement.query((after.0.0, after.1.0, until.0, limit(max)))?;
        let mut due = Vec::new();
        while let Some(row) = rows.next()? {
            due.push(Due {
                due_at: Timestamp(row.get(3)?),
                delivery: DeliveryKey(row.get(2)?),
                route: Route {
                    webhook: WebhookKey(row.get(0)?),
                    owner: self.names.text(&self.connection, row.get(4)?)?.into(),
                    endpoint: row.get(1)?,
                },
            });
        }
        Ok(due)
    }

    pub(crate) fn next_due(&self, after: Timestamp) -> rusqlite::Result<Option<Timestamp>> {
        let mut statement = self.connection.prepare_cached(NEXT_DUE)?;
        statement.query_row([after.0], |row| row.get(0).map(Timestamp)).optional()
    }

    /// The delivery that is next in the order of a webhook.
    pub(crate) fn pending_in_order(
        &self,
        webhook: WebhookKey,
        with_body: bool,
    ) -> rusqlite::Result<Option<DeliveryRow>> {
        let body = body_column(with_body);
        let sql = format!(
            "SELECT {DELIVERY_COLUMNS}, {body} FROM delivery INDEXED BY delivery_head \
             WHERE webhook = ?1 AND state = 0 AND replay = 0"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        statement.query_row([webhook.0], |row| delivery_at(row, 0)).optional()
    }

    /// The first of those that an operator sends once more.
    pub(crate) fn first_replay(&self, webhook: WebhookKey) -> rusqlite::Result<Option<DeliveryRow>> {
        let sql = format!(
            "SELECT {DELIVERY_COLUMNS}, body FROM delivery INDEXED BY delivery_replay \
             WHERE webhook = ?1 AND state = 0 AND replay = 1 ORDER BY key LIMIT 1"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        statement.query_row([webhook.0], |row| delivery_at(row, 0)).optional()
    }

    pub(crate) fn delivery(&mut self, key: DeliveryKey) -> rusqlite::Result<Option<(WebhookRow, DeliveryRow)>> {
        let sql = format!(
            "SELECT {WEBHOOK_COLUMNS}, {DELIVERY_COLUMNS}, body FROM delivery \
             JOIN webhook ON webhook.key = delivery.webhook WHERE delivery.key = ?1"
        );
        Ok(self.webhook_rows(&sql, [key.0], |row| delivery_at(row, WEBHOOK_WIDTH))?.pop())
    }

    pub(crate) fn deliveries(&self, webhook: WebhookKey, max: usize) -> rusqlite::Result<Vec<DeliveryRow>> {
        // The inner query orders entries of the index, so that only the rows that are shown are read.
        let sql = format!(
            "SELECT {DELIVERY_COLUMNS}, NULL FROM delivery WHERE key IN (SELECT key FROM delivery INDEXED BY delivery_webhook \
             WHERE webhook = ?1 ORDER BY key DESC LIMIT ?2) ORDER BY key DESC"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let rows = statement.query_map((webhook.0, limit(max)), |row| delivery_at(row, 0))?;
        rows.collect()
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

    pub(crate) fn outbox_census(&self) -> rusqlite::Result<OutboxCensus> {
        let number = |sql: &str| -> rusqlite::Result<u64> {
            let count: i64 = self.connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
            Ok(count.cast_unsigned())
        };
        let (behind, since): (i64, Option<i64>) =
            self.connection.prepare_cached(BEHIND)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let dead = number("SELECT count(*) FROM delivery INDEXED BY delivery_dead WHERE state = 2")?;
        let replays =
            number("SELECT count(*) FROM delivery INDEXED BY delivery_replay WHERE state = 0 AND replay = 1")?;
        Ok(OutboxCensus { behind: behind.cast_unsigned() + replays, behind_since: since.map(Timestamp), dead })
    }
}

fn body_column(with_body: bool) -> &'static str {
    if with_body { "body" } else { "NULL" }
}

/// A delivery out of [`DELIVERY_COLUMNS`] and a body, beginning at a column.
fn delivery_at(row: &Row<'_>, column: usize) -> rusqlite::Result<DeliveryRow> {
    let seq = |offset| row.get::<_, i64>(column + offset).map(i64::cast_unsigned);
    let attempted_at: Option<i64> = row.get(column + 12)?;
    let last_attempt = match attempted_at {
        None => None,
        Some(at) => Some(Attempt {
            at: Timestamp(at),
            duration_ms: row.get::<_, Option<u32>>(column + 13)?.unwrap_or(0),
            status: row.get(column + 14)?,
            problem: row.get::<_, Option<String>>(column + 15)?.unwrap_or_default(),
        }),
    };
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
