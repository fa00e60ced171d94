//! Eviction of ended tasks, a few per transaction, and incremental vacuum.

use rusqlite::{OptionalExtension, Row};
use switchboard_engine::ids::Epoch;
use switchboard_engine::store::Phase;

use super::counters::CounterKey;
use super::session::Session;
use crate::sqlite::columns::phase_number;
use crate::sqlite::query::rows;

/// Pages freed per transaction: about a millisecond.
const VACUUM_PAGES: i64 = 256;
/// Free pages left in the file, the cheapest space for new tasks.
const SPARE_PAGES: i64 = 256;

impl Session<'_> {
    /// Deletes those of the tasks that have ended and have no open webhook, in one transaction; returns how many.
    pub(crate) fn evict(&mut self, keys: &[i64]) -> rusqlite::Result<usize> {
        self.transaction(|session| {
            session.save_highest_keys()?;
            let mut evicted = 0;
            let mut rows = Vec::new();
            for key in keys {
                evicted += usize::from(session.evict_one(*key, &mut rows)?);
            }
            session.save_evicted(rows.into_iter().max_by_key(|(row, _)| *row))?;
            for counter in session.flush_counters()? {
                session.drop_empty_counter(counter)?;
            }
            Ok(evicted)
        })
    }

    /// Returns a few free pages to the file system; returns whether there are more.
    pub(crate) fn vacuum_step(&mut self) -> rusqlite::Result<bool> {
        let free: i64 = self.connection.pragma_query_value(None, "freelist_count", |row| row.get(0))?;
        if free <= SPARE_PAGES {
            return Ok(false);
        }
        let pages = VACUUM_PAGES.min(free - SPARE_PAGES);
        self.transaction(|session| {
            let mut statement = session.connection.prepare(&format!("PRAGMA incremental_vacuum({pages})"))?;
            let mut rows = statement.query([])?;
            while rows.next()?.is_some() {}
            Ok(())
        })?;
        Ok(free - pages > SPARE_PAGES)
    }

    /// Adds the deleted event rows with their epochs.
    fn evict_one(&mut self, key: i64, deleted_rows: &mut Vec<(i64, Epoch)>) -> rusqlite::Result<bool> {
        let connection = self.connection;
        let sql = "DELETE FROM task WHERE key = ?1 AND phase = ?2 AND (webhooks = 0 OR NOT EXISTS (SELECT 1 FROM webhook \
                   WHERE task_key = ?1 AND webhook.state < 2)) RETURNING owner, agent, state, hidden, first_row, webhooks";
        let mut delete_task = connection.prepare_cached(sql)?;
        let deleted = delete_task.query_row((key, phase_number(Phase::Done)), |row| {
            let (owner, agent, state, hidden) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
            let (first_row, webhooks): (Option<i64>, i64) = (row.get(4)?, row.get(5)?);
            Ok((CounterKey { owner, agent, state, hidden, parked: false }, first_row, webhooks))
        });
        let Some((counter, first_row, webhooks)) = deleted.optional()? else {
            return Ok(false);
        };
        self.counters.add(counter, -1);
        for (sql, of) in [
            ("DELETE FROM event WHERE id = ?1 RETURNING id, epoch", first_row),
            ("DELETE FROM event WHERE task_key = ?1 AND first_seq > 1 RETURNING id, epoch", Some(key)),
        ] {
            let row = |row: &Row<'_>| Ok((row.get(0)?, Epoch(row.get::<_, i64>(1)?.cast_unsigned())));
            deleted_rows.extend(rows(connection, sql, [of], row)?);
        }
        self.execute("DELETE FROM send WHERE task_key = ?1", [key])?;
        self.evict_callback(key)?;
        if webhooks > 0 {
            self.evict_webhooks(key)?;
        }
        Ok(true)
    }

    /// Deletes a counter with the last of its tasks, because callers come and go.
    fn drop_empty_counter(&self, counter: CounterKey) -> rusqlite::Result<()> {
        let CounterKey { owner, agent, state, hidden, parked } = counter;
        let sql = "DELETE FROM tally WHERE owner = ?1 AND agent = ?2 AND state = ?3 AND hidden = ?4 AND parked = ?5 AND n = 0";
        self.execute(sql, (owner, agent, state, hidden, parked)).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use switchboard_a2a::{TaskId, TaskState, Timestamp};
    use switchboard_engine::ids::Seq;
    use switchboard_engine::store::lineage::Lineage;
    use switchboard_engine::store::webhooks::{NewWebhook, WebhookStore};
    use switchboard_engine::store::{Append, AppendGuard, Phase, RowPatch, SideWrites, Store, TaskIdentity};

    use crate::{Options, SqliteStore};

    #[tokio::test]
    async fn a_webhook_set_after_a_task_was_selected_keeps_it_from_eviction() {
        let directory = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(directory.path(), Options::default()).unwrap();
        let id = TaskId::generate();
        let webhook = NewWebhook {
            id: "a".to_owned(),
            config: "{}".to_owned(),
            form: 0,
            endpoint: "https://one".to_owned(),
            cursor: Seq(0),
            late: true,
            max: 1,
            at: Timestamp(1),
        };
        let append = Append {
            guard: AppendGuard::Create(Arc::new(TaskIdentity {
                id: id.clone(),
                owner: "ann".into(),
                agent: "echo".into(),
                context: "c".into(),
                lineage: Lineage::default(),
            })),
            events: Bytes::from_static(b"1"),
            count: 1,
            row: RowPatch {
                status: Some((TaskState::Completed, Timestamp(1))),
                phase: Some(Phase::Done),
                ..RowPatch::default()
            },
            snapshot: None,
            note: None,
            sides: SideWrites { webhook: Some(webhook), ..SideWrites::default() },
            refusable: false,
        };
        let key = store.append(append).await.unwrap().key;
        assert_eq!(store.queue.write_exclusive(move |session| session.evict(&[key.0])).await.unwrap(), 0);
        assert!(store.row(&id).await.unwrap().is_some());
        assert!(store.delete_webhook(key, "a").await.unwrap());
        assert_eq!(store.queue.write_exclusive(move |session| session.evict(&[key.0])).await.unwrap(), 1);
    }
}
