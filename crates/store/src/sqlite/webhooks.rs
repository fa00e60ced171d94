//! The outbox in SQLite. Its steps are group-committed with appends, so that a delivery costs no disk sync of its own;
//! writes that may touch many rows do so in batches.

use std::sync::Arc;

use bytes::Bytes;
use switchboard_a2a::Timestamp;
use switchboard_engine::ids::TaskKey;
use switchboard_engine::store::webhooks::{
    DeliveryKey, DeliveryRow, DueDelivery, OutboxCounts, OutboxHead, OutboxWrite, Signing, WebhookFilter, WebhookKey,
    WebhookRoute, WebhookRow, WebhookState, WebhookStore, WebhookSummary,
};
use switchboard_engine::store::{Retention, StoreFuture};

use super::SqliteStore;
use super::writer::dead_letters::PRUNED_AT_ONCE;
use super::writer::outbox::RELEASED_AT_ONCE;
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
        self.read(move |reader| reader.webhook(task, &id))
    }

    fn webhooks(&self, task: TaskKey, after: WebhookKey, max: usize) -> StoreFuture<Vec<WebhookRow>> {
        self.read(move |reader| reader.webhooks(task, after, max))
    }

    fn delete_webhook(&self, task: TaskKey, id: &str) -> StoreFuture<bool> {
        let id = id.to_owned();
        self.queue.write_shared(0, move |session| session.delete_webhook(task, &id))
    }

    fn head(&self, webhook: WebhookKey) -> StoreFuture<Option<OutboxHead>> {
        self.read(move |reader| reader.head(webhook))
    }

    fn active_webhooks(&self, task: TaskKey) -> StoreFuture<Vec<WebhookRoute>> {
        self.read(move |reader| reader.active_webhooks(task))
    }

    fn lagging_webhooks(&self, after: WebhookKey, max: usize) -> StoreFuture<Vec<WebhookRoute>> {
        self.read(move |reader| reader.lagging_webhooks(after, max))
    }

    fn due_deliveries(
        &self,
        after: (Timestamp, DeliveryKey),
        until: Timestamp,
        max: usize,
    ) -> StoreFuture<Vec<DueDelivery>> {
        self.read(move |reader| reader.due_deliveries(after, until, max))
    }

    fn next_due(&self, after: Timestamp) -> StoreFuture<Option<Timestamp>> {
        self.read(move |reader| reader.next_due(after))
    }

    fn delivery(&self, delivery: DeliveryKey) -> StoreFuture<Option<(WebhookRow, DeliveryRow)>> {
        self.read(move |reader| reader.delivery(delivery))
    }

    fn outbox(&self, write: OutboxWrite) -> StoreFuture<()> {
        let bytes = body_of(&write).map_or(0, Bytes::len);
        self.queue.write_shared(bytes, move |session| session.step(&write))
    }

    fn release_endpoint(&self, endpoint: &str, now: Timestamp) -> StoreFuture<usize> {
        let endpoint = endpoint.to_owned();
        self.in_batches(RELEASED_AT_ONCE, move |session| session.release_endpoint(&endpoint, now))
    }

    fn overdue_webhooks(&self, ended_before: Timestamp, max: usize) -> StoreFuture<Vec<WebhookKey>> {
        self.read(move |reader| reader.overdue_webhooks(ended_before, max))
    }

    fn held_beyond_caps(&self, retention: Retention, max: usize) -> StoreFuture<Vec<WebhookKey>> {
        self.read(move |reader| reader.held_beyond_caps(retention, max))
    }

    fn list_webhooks(&self, filter: WebhookFilter) -> StoreFuture<Vec<WebhookSummary>> {
        self.read(move |reader| reader.list_webhooks(&filter))
    }

    fn deliveries(&self, webhook: WebhookKey, max: usize) -> StoreFuture<Vec<DeliveryRow>> {
        self.read(move |reader| reader.deliveries(webhook, max))
    }

    fn dead_letters(&self, after: DeliveryKey, max: usize) -> StoreFuture<Vec<(WebhookRow, DeliveryRow)>> {
        self.read(move |reader| reader.dead_letters(after, max))
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
        self.read(|reader| reader.outbox_census())
    }
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
    use switchboard_engine::store::webhooks::{WebhookFilter, WebhookState};

    use crate::sqlite::migrate::migrate;
    use crate::sqlite::readers::deliveries::{BEHIND, DUE, NEXT_DUE};
    use crate::sqlite::readers::webhooks::{LAGGING, OVERDUE, listing};
    use crate::sqlite::writer::outbox::RELEASE;

    /// What SQLite says it will do.
    fn plan(connection: &Connection, sql: &str) -> Vec<String> {
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let unbound = rusqlite::params_from_iter(vec![rusqlite::types::Null; statement.parameter_count()]);
        let lines = statement.query_map(unbound, |row| row.get(3)).unwrap();
        lines.collect::<rusqlite::Result<_>>().unwrap()
    }

    #[test]
    fn periodic_queries_scan_no_table_and_sort_nothing() {
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
    }

    #[test]
    fn listing_webhooks_by_state_does_not_scan_the_finished_ones() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        let states = [
            (WebhookState::Active, "webhook_open"),
            (WebhookState::Paused, "webhook_open"),
            (WebhookState::Disabled, "webhook_disabled"),
        ];
        for (state, index) in states {
            let of_all = WebhookFilter { state: Some(state), ..WebhookFilter::default() };
            let lines = plan(&connection, &listing(&of_all));
            assert!(lines.iter().any(|line| line.contains("webhook USING") && line.contains(index)), "{lines:#?}");
            let of_task = WebhookFilter { task: Some("task 1".into()), ..of_all };
            let lines = plan(&connection, &listing(&of_task));
            assert!(lines.iter().any(|line| line.contains("INDEX webhook_task_id")), "{lines:#?}");
        }
    }
}
