//! Webhooks: of a task, by key, those that lag behind or are overdue, and the operators' list.

use rusqlite::{Params, Row, params};
use switchboard_a2a::{TaskId, Timestamp};
use switchboard_engine::ids::{Seq, TaskKey};
use switchboard_engine::store::Phase;
use switchboard_engine::store::webhooks::{
    OutboxHead, WebhookFilter, WebhookKey, WebhookRoute, WebhookRow, WebhookState, WebhookSummary,
};

use super::Reader;
use crate::sqlite::columns::{Identifier, IdentifierText, phase_number, webhook_state_from, webhook_state_number};
use crate::sqlite::query::{limit, rows};

/// The columns of a webhook in the order of [`Reader::webhook_rows`].
pub(crate) const WEBHOOK_COLUMNS: &str = "webhook.key, webhook.task_key, webhook.task, webhook.owner, webhook.agent, \
     webhook.id, webhook.config, webhook.endpoint, webhook.cursor, webhook.late, webhook.state, webhook.began_at, webhook.revision, \
     (SELECT bytes FROM task WHERE task.key = webhook.task_key)";
/// How many these are: the columns after them begin here.
pub(crate) const WEBHOOK_WIDTH: usize = 14;

/// Parameters: the key to begin after, the limit.
pub(crate) const LAGGING: &str = "SELECT webhook.key, endpoint, webhook.owner FROM webhook INDEXED BY webhook_open JOIN task ON task.key = task_key \
     WHERE webhook.state < 2 AND webhook.state = 0 AND webhook.key > ?1 AND (task.last_seq > cursor OR task.phase = 4) \
     AND NOT EXISTS (SELECT 1 FROM delivery INDEXED BY delivery_head WHERE webhook = webhook.key AND delivery.state = 0 AND replay = 0) \
     ORDER BY webhook.key LIMIT ?2";
/// Parameters: the time before which the task ended, the limit.
pub(crate) const OVERDUE: &str = "SELECT webhook.key FROM webhook INDEXED BY webhook_open JOIN task ON task.key = task_key \
     WHERE webhook.state < 2 AND task.phase = 4 AND max(task.status_at, began_at) < ?1 ORDER BY webhook.key LIMIT ?2";

/// Parameters: the key to begin after, the limit, the task, the state. Most webhooks are finished, and a list of those in
/// another state must not scan them.
pub(crate) fn listing(filter: &WebhookFilter) -> String {
    let of_task = if filter.task.is_some() { "AND webhook.task = ?3" } else { "AND ?3 IS NULL" };
    let (index, in_state) = match filter.state {
        None => ("", "AND ?4 IS NULL"),
        Some(_) if filter.task.is_some() => ("", "AND webhook.state = ?4"),
        Some(WebhookState::Active | WebhookState::Paused) => {
            ("INDEXED BY webhook_open", "AND webhook.state < 2 AND webhook.state = ?4")
        }
        Some(WebhookState::Disabled) => ("INDEXED BY webhook_disabled", "AND webhook.state = 2 AND webhook.state = ?4"),
        Some(WebhookState::Finished) => ("", "AND webhook.state = ?4"),
    };
    format!(
        "SELECT {WEBHOOK_COLUMNS}, delivered, \
         (SELECT count(*) FROM delivery WHERE webhook = webhook.key AND delivery.state = 2), \
         coalesce((SELECT last_seq > cursor FROM task WHERE task.key = task_key), 0) \
         FROM webhook {index} WHERE key > ?1 {of_task} {in_state} ORDER BY key LIMIT ?2"
    )
}

impl Reader {
    /// The webhooks that a query finds, each with what it selects after [`WEBHOOK_COLUMNS`].
    pub(crate) fn webhook_rows<T>(
        &mut self,
        sql: &str,
        params: impl Params,
        beside: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<(WebhookRow, T)>> {
        rows(&self.connection, sql, params, |row| {
            let IdentifierText(task) = row.get(2)?;
            let mut name = |column| -> rusqlite::Result<String> {
                Ok(self.names.text(&self.connection, row.get(column)?)?.to_owned())
            };
            let webhook = WebhookRow {
                key: WebhookKey(row.get(0)?),
                task_key: TaskKey(row.get(1)?),
                task: task.into(),
                owner: name(3)?.into(),
                agent: name(4)?.into(),
                id: row.get(5)?,
                config: row.get(6)?,
                endpoint: row.get(7)?,
                cursor: Seq(row.get::<_, i64>(8)?.cast_unsigned()),
                late: row.get(9)?,
                state: webhook_state_from(10, row.get(10)?)?,
                began_at: Timestamp(row.get(11)?),
                revision: row.get::<_, i64>(12)?.cast_unsigned(),
                task_bytes: row.get::<_, Option<i64>>(13)?.unwrap_or_default().cast_unsigned(),
            };
            Ok((webhook, beside(row)?))
        })
    }

    pub(crate) fn webhook(&mut self, task: TaskKey, id: &str) -> rusqlite::Result<Option<WebhookRow>> {
        let sql = format!("SELECT {WEBHOOK_COLUMNS} FROM webhook WHERE task_key = ?1 AND id = ?2");
        Ok(self.webhook_rows(&sql, (task.0, id), |_| Ok(()))?.pop().map(|(webhook, ())| webhook))
    }

    pub(crate) fn webhooks(
        &mut self,
        task: TaskKey,
        after: WebhookKey,
        max: usize,
    ) -> rusqlite::Result<Vec<WebhookRow>> {
        let sql = format!(
            "SELECT {WEBHOOK_COLUMNS} FROM webhook INDEXED BY webhook_task WHERE task_key = ?1 AND key > ?2 ORDER BY key LIMIT ?3"
        );
        let rows = self.webhook_rows(&sql, (task.0, after.0, limit(max)), |_| Ok(()))?;
        Ok(rows.into_iter().map(|(webhook, ())| webhook).collect())
    }

    pub(crate) fn head(&mut self, webhook: WebhookKey) -> rusqlite::Result<Option<OutboxHead>> {
        let sql = format!(
            "SELECT {WEBHOOK_COLUMNS}, task.last_seq, task.phase, task.status_at FROM webhook \
             LEFT JOIN task ON task.key = webhook.task_key WHERE webhook.key = ?1"
        );
        let found = self.webhook_rows(&sql, [webhook.0], |row| {
            let last: Option<i64> = row.get(WEBHOOK_WIDTH)?;
            let done = row.get::<_, Option<i64>>(WEBHOOK_WIDTH + 1)? == Some(phase_number(Phase::Done));
            let status_at: Option<i64> = row.get(WEBHOOK_WIDTH + 2)?;
            Ok((last, status_at.filter(|_| done).map(Timestamp)))
        });
        let Some((webhook, (last, task_ended_at))) = found?.pop() else { return Ok(None) };
        let delivery = self.pending_in_order(webhook.key, true)?;
        let replay = self.first_replay(webhook.key)?;
        let task_last = last.map_or(webhook.cursor, |last| Seq(last.cast_unsigned()));
        Ok(Some(OutboxHead { webhook, delivery, replay, task_last, task_ended_at }))
    }

    pub(crate) fn active_webhooks(&mut self, task: TaskKey) -> rusqlite::Result<Vec<WebhookRoute>> {
        let sql = "SELECT key, endpoint, owner FROM webhook WHERE task_key = ?1 AND state = 0 ORDER BY key";
        self.routes(sql, [task.0])
    }

    pub(crate) fn lagging_webhooks(&mut self, after: WebhookKey, max: usize) -> rusqlite::Result<Vec<WebhookRoute>> {
        self.routes(LAGGING, (after.0, limit(max)))
    }

    fn routes(&mut self, sql: &str, params: impl Params) -> rusqlite::Result<Vec<WebhookRoute>> {
        rows(&self.connection, sql, params, |row| {
            let owner = self.names.text(&self.connection, row.get(2)?)?.into();
            Ok(WebhookRoute { webhook: WebhookKey(row.get(0)?), owner, endpoint: row.get(1)? })
        })
    }

    pub(crate) fn overdue_webhooks(&self, ended_before: Timestamp, max: usize) -> rusqlite::Result<Vec<WebhookKey>> {
        rows(&self.connection, OVERDUE, (ended_before.0, limit(max)), |row| row.get(0).map(WebhookKey))
    }

    pub(crate) fn list_webhooks(&mut self, filter: &WebhookFilter) -> rusqlite::Result<Vec<WebhookSummary>> {
        let sql = listing(filter);
        let task = filter.task.as_ref().map(TaskId::as_str).map(Identifier::new);
        let values = params![filter.after.0, limit(filter.max), task, filter.state.map(webhook_state_number)];
        let rows = self.webhook_rows(&sql, values, |row| {
            let count = |column| row.get::<_, i64>(column).map(i64::cast_unsigned);
            Ok((count(WEBHOOK_WIDTH)?, count(WEBHOOK_WIDTH + 1)?, row.get(WEBHOOK_WIDTH + 2)?))
        })?;
        let mut found = Vec::with_capacity(rows.len());
        for (webhook, (delivered, dead, lags)) in rows {
            let pending = self.pending_in_order(webhook.key, false)?;
            found.push(WebhookSummary { webhook, pending, delivered, dead, lags });
        }
        Ok(found)
    }
}
