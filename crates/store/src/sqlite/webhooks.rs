//! The outbox in SQLite. Its steps are group-committed with appends, so that a delivery costs no disk sync of its own;
//! writes that may touch many rows do so in batches.

use std::sync::Arc;

use bytes::Bytes;
use rusqlite::{Row, params};
use switchboard_a2a::{TaskId, Timestamp};
use switchboard_engine::ids::{Seq, TaskKey};
use switchboard_engine::store::webhooks::{
    DeliveryKey, DeliveryRow, DueDelivery, OutboxCounts, OutboxHead, OutboxWrite, Signing, WebhookFilter, WebhookKey,
    WebhookRoute, WebhookRow, WebhookState, WebhookStore, WebhookSummary,
};
use switchboard_engine::store::{Phase, Retention, StoreFuture};

use super::SqliteStore;
use super::columns::{Identifier, phase_number, webhook_state_number};
use super::query::{limit, number, optional_row, rows};
use super::readers::Reader;
use super::readers::deliveries::{BEHIND, DELIVERY_COLUMNS, DUE, NEXT_DUE, delivery_at};
use super::readers::webhooks::{LAGGING, OVERDUE, WEBHOOK_COLUMNS, WEBHOOK_WIDTH, listing};
use super::writer::dead_letters::PRUNED_AT_ONCE;
use super::writer::outbox::{RELEASE, RELEASED_AT_ONCE};
use super::writer::session::Session;
use super::writer::signing::signing;

impl SqliteStore {
    /// Repeats a write, each time in another commit, until a batch is not full.
    fn in_batches(
        &self,
        whole: usize,
        portion: impl Fn(&mut Session<'_>) -> rusqlite::Result<usize> + Send + Sync + 'static,
    ) -> StoreFuture<usize> {
        let (queue, portion) = (Arc::clone(&self.queue), Arc::new(portion));
        Box::pin(async move {
            let mut total = 0;
            loop {
                let portion = Arc::clone(&portion);
                let done = queue.write_shared(0, move |session| portion(session)).await?;
                total += done;
                if done < whole {
                    return Ok(total);
                }
            }
        })
    }
}

impl WebhookStore for SqliteStore {
    fn webhook(&self, task: TaskKey, id: &str) -> StoreFuture<Option<WebhookRow>> {
        let id = id.to_owned();
        let sql = format!("SELECT {WEBHOOK_COLUMNS} FROM webhook WHERE task_key = ?1 AND id = ?2");
        self.read(move |reader| Ok(reader.webhook_rows(&sql, (task.0, id), |row, _| Ok(row))?.pop()))
    }

    fn webhooks(&self, task: TaskKey, after: WebhookKey, max: usize) -> StoreFuture<Vec<WebhookRow>> {
        let sql = format!(
            "SELECT {WEBHOOK_COLUMNS} FROM webhook INDEXED BY webhook_task WHERE task_key = ?1 AND key > ?2 ORDER BY key LIMIT ?3"
        );
        self.read(move |reader| reader.webhook_rows(&sql, (task.0, after.0, limit(max)), |row, _| Ok(row)))
    }

    fn delete_webhook(&self, task: TaskKey, id: &str) -> StoreFuture<bool> {
        let id = id.to_owned();
        self.queue.write_shared(0, move |session| session.delete_webhook(task, &id))
    }

    fn head(&self, webhook: WebhookKey) -> StoreFuture<Option<OutboxHead>> {
        let sql = format!(
            "SELECT {WEBHOOK_COLUMNS}, task.last_seq, task.phase, task.status_at FROM webhook \
             LEFT JOIN task ON task.key = webhook.task_key WHERE webhook.key = ?1"
        );
        self.read(move |reader| {
            let mut found = reader.webhook_rows(&sql, [webhook.0], |webhook, row| {
                let last: Option<i64> = row.get(WEBHOOK_WIDTH)?;
                let done = row.get::<_, Option<i64>>(WEBHOOK_WIDTH + 1)? == Some(phase_number(Phase::Done));
                let status_at: Option<i64> = row.get(WEBHOOK_WIDTH + 2)?;
                let task_last = last.map_or(webhook.cursor, |last| Seq(last.cast_unsigned()));
                let task_ended_at = status_at.filter(|_| done).map(Timestamp);
                Ok(OutboxHead { webhook, delivery: None, replay: None, task_last, task_ended_at })
            })?;
            let Some(head) = found.pop() else { return Ok(None) };
            let delivery = reader.pending_in_order(webhook, true)?;
            Ok(Some(OutboxHead { delivery, replay: reader.first_replay(webhook)?, ..head }))
        })
    }

    fn active_webhooks(&self, task: TaskKey) -> StoreFuture<Vec<WebhookRoute>> {
        let sql = "SELECT key, endpoint, owner FROM webhook WHERE task_key = ?1 AND state = 0 ORDER BY key";
        self.read(move |reader| reader.routes(sql, [task.0]))
    }

    fn lagging_webhooks(&self, after: WebhookKey, max: usize) -> StoreFuture<Vec<WebhookRoute>> {
        self.read(move |reader| reader.routes(LAGGING, (after.0, limit(max))))
    }

    fn due_deliveries(
        &self,
        after: (Timestamp, DeliveryKey),
        until: Timestamp,
        max: usize,
    ) -> StoreFuture<Vec<DueDelivery>> {
        let values = (after.0.0, after.1.0, until.0, limit(max));
        self.read(move |Reader { connection, names }| {
            rows(connection, DUE, values, |row| {
                let owner = names.text(connection, row.get(4)?)?.into();
                let route = WebhookRoute { webhook: WebhookKey(row.get(0)?), owner, endpoint: row.get(1)? };
                Ok(DueDelivery { due_at: Timestamp(row.get(3)?), delivery: DeliveryKey(row.get(2)?), route })
            })
        })
    }

    fn next_due(&self, after: Timestamp) -> StoreFuture<Option<Timestamp>> {
        self.read(move |reader| optional_row(&reader.connection, NEXT_DUE, [after.0], |row| row.get(0).map(Timestamp)))
    }

    fn delivery(&self, delivery: DeliveryKey) -> StoreFuture<Option<(WebhookRow, DeliveryRow)>> {
        let sql = format!(
            "SELECT {WEBHOOK_COLUMNS}, {DELIVERY_COLUMNS}, body FROM delivery \
             JOIN webhook ON webhook.key = delivery.webhook WHERE delivery.key = ?1"
        );
        self.read(move |reader| Ok(reader.webhook_rows(&sql, [delivery.0], with_delivery)?.pop()))
    }

    fn outbox(&self, write: OutboxWrite) -> StoreFuture<()> {
        let bytes = body_of(&write).map_or(0, Bytes::len);
        self.queue.write_shared(bytes, move |session| session.step(&write))
    }

    fn release_endpoint(&self, endpoint: &str, now: Timestamp) -> StoreFuture<usize> {
        let endpoint = endpoint.to_owned();
        let at_once = RELEASED_AT_ONCE.cast_signed();
        self.in_batches(RELEASED_AT_ONCE, move |session| session.execute(RELEASE, (&endpoint, now.0, at_once)))
    }

    fn overdue_webhooks(&self, ended_before: Timestamp, max: usize) -> StoreFuture<Vec<WebhookKey>> {
        let values = (ended_before.0, limit(max));
        self.read(move |reader| rows(&reader.connection, OVERDUE, values, |row| row.get(0).map(WebhookKey)))
    }

    fn held_beyond_caps(&self, retention: Retention, max: usize) -> StoreFuture<Vec<WebhookKey>> {
        self.read(move |reader| reader.held_beyond_caps(retention, max))
    }

    fn list_webhooks(&self, filter: WebhookFilter) -> StoreFuture<Vec<WebhookSummary>> {
        self.read(move |reader| {
            let task = filter.task.as_ref().map(TaskId::as_str).map(Identifier::new);
            let values = params![filter.after.0, limit(filter.max), task, filter.state.map(webhook_state_number)];
            let mut found = reader.webhook_rows(&listing(&filter), values, |webhook, row| {
                let count = |column| row.get::<_, i64>(column).map(i64::cast_unsigned);
                let (delivered, dead) = (count(WEBHOOK_WIDTH)?, count(WEBHOOK_WIDTH + 1)?);
                Ok(WebhookSummary { webhook, pending: None, delivered, dead, lags: row.get(WEBHOOK_WIDTH + 2)? })
            })?;
            for summary in &mut found {
                summary.pending = reader.pending_in_order(summary.webhook.key, false)?;
            }
            Ok(found)
        })
    }

    fn deliveries(&self, webhook: WebhookKey, max: usize) -> StoreFuture<Vec<DeliveryRow>> {
        // The inner query sorts index entries, so that only the returned rows are read.
        let sql = format!(
            "SELECT {DELIVERY_COLUMNS}, NULL FROM delivery WHERE key IN (SELECT key FROM delivery INDEXED BY delivery_webhook \
             WHERE webhook = ?1 ORDER BY key DESC LIMIT ?2) ORDER BY key DESC"
        );
        let values = (webhook.0, limit(max));
        self.read(move |reader| rows(&reader.connection, &sql, values, |row| delivery_at(row, 0)))
    }

    fn dead_letters(&self, after: DeliveryKey, max: usize) -> StoreFuture<Vec<(WebhookRow, DeliveryRow)>> {
        let sql = format!(
            "SELECT {WEBHOOK_COLUMNS}, {DELIVERY_COLUMNS}, NULL FROM delivery INDEXED BY delivery_dead \
             JOIN webhook ON webhook.key = delivery.webhook \
             WHERE delivery.state = 2 AND delivery.key > ?1 ORDER BY delivery.key LIMIT ?2"
        );
        self.read(move |reader| reader.webhook_rows(&sql, (after.0, limit(max)), with_delivery))
    }

    fn replay(&self, delivery: DeliveryKey, now: Timestamp) -> StoreFuture<bool> {
        self.queue.write_shared(0, move |session| session.replay(delivery, now))
    }

    fn set_webhook_state(&self, webhook: WebhookKey, state: WebhookState, now: Timestamp) -> StoreFuture<bool> {
        self.queue.write_shared(0, move |session| session.set_webhook_state(webhook, state, now))
    }

    fn prune_dead_letters(&self, died_before: Timestamp, keep: usize, keep_bytes: u64) -> StoreFuture<usize> {
        self.in_batches(PRUNED_AT_ONCE, move |session| session.prune_dead_letters(died_before, keep, keep_bytes))
    }

    fn signing(&self) -> StoreFuture<Signing> {
        self.read(|reader| signing(&reader.connection))
    }

    fn rotate_signing(&self, now: Timestamp, previous_until: Timestamp) -> StoreFuture<Signing> {
        self.queue.write_shared(0, move |session| session.rotate_signing(now, previous_until))
    }

    fn outbox_census(&self) -> StoreFuture<OutboxCounts> {
        self.read(|Reader { connection, .. }| {
            let behind = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?));
            let (behind, since) = connection.prepare_cached(BEHIND)?.query_row([], behind)?;
            let dead = "SELECT count(*) FROM delivery INDEXED BY delivery_dead WHERE state = 2";
            let replays = "SELECT count(*) FROM delivery INDEXED BY delivery_replay WHERE state = 0 AND replay = 1";
            let behind = behind.cast_unsigned() + number(connection, replays)?;
            Ok(OutboxCounts { behind, behind_since: since.map(Timestamp), dead: number(connection, dead)? })
        })
    }
}

/// A webhook and the delivery behind its columns.
fn with_delivery(webhook: WebhookRow, row: &Row<'_>) -> rusqlite::Result<(WebhookRow, DeliveryRow)> {
    Ok((webhook, delivery_at(row, WEBHOOK_WIDTH)?))
}

fn body_of(write: &OutboxWrite) -> Option<&Bytes> {
    match write {
        OutboxWrite::IfStill { write, .. } => body_of(write),
        OutboxWrite::Prepare { delivery, .. } | OutboxWrite::Abandon { delivery, .. } => delivery.body.as_ref(),
        OutboxWrite::Delivered { next, .. } => next.as_ref().and_then(|next| next.body.as_ref()),
        OutboxWrite::Dead { body, .. } | OutboxWrite::Disabled { body, .. } => body.as_ref(),
        OutboxWrite::Failed { .. } | OutboxWrite::Skipped { .. } | OutboxWrite::Finished { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;
    use crate::sqlite::migrate::migrate;

    /// What SQLite says it will do.
    fn plan(connection: &Connection, sql: &str) -> Vec<String> {
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let unbound = rusqlite::params_from_iter(vec![rusqlite::types::Null; statement.parameter_count()]);
        let lines = statement.query_map(unbound, |row| row.get(3)).unwrap();
        lines.collect::<rusqlite::Result<_>>().unwrap()
    }

    #[test]
    fn periodic_queries_scan_no_table_and_lists_do_not_scan_finished_webhooks() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        for sql in [DUE, NEXT_DUE, LAGGING, OVERDUE, RELEASE, BEHIND] {
            let lines = plan(&connection, sql);
            // `webhook_open` is a partial index of the open webhooks, so a scan of it is short.
            let fine = |line: &String| {
                !line.contains("TEMP B-TREE") && (!line.starts_with("SCAN") || line.contains("INDEX webhook_open"))
            };
            assert!(lines.iter().all(fine), "{sql}: {lines:#?}");
        }
        let states = [
            (WebhookState::Active, "INDEX webhook_open"),
            (WebhookState::Paused, "INDEX webhook_open"),
            (WebhookState::Disabled, "INDEX webhook_disabled"),
        ];
        for (state, index) in states {
            let of_all = WebhookFilter { state: Some(state), ..WebhookFilter::default() };
            let of_task = WebhookFilter { task: Some("task 1".into()), ..of_all.clone() };
            for (filter, index) in [(of_all, index), (of_task, "INDEX webhook_task_id")] {
                let lines = plan(&connection, &listing(&filter));
                assert!(lines.iter().any(|line| line.contains(index)), "{lines:#?}");
            }
        }
    }
}
