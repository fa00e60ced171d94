//! Rows of webhooks: of a task, by key, those that lag behind or are overdue, and the operators' list.

use rusqlite::{Params, Row};
use switchboard_a2a::Timestamp;
use switchboard_engine::ids::{Seq, TaskKey};
use switchboard_engine::store::webhooks::{WebhookFilter, WebhookKey, WebhookRoute, WebhookRow, WebhookState};

use super::Reader;
use crate::sqlite::columns::{IdentifierText, webhook_state_from};
use crate::sqlite::query::rows;

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
    /// What a query finds: each webhook, combined with what is selected after [`WEBHOOK_COLUMNS`].
    pub(crate) fn webhook_rows<T>(
        &mut self,
        sql: &str,
        params: impl Params,
        combine: impl Fn(WebhookRow, &Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        let Self { connection, names } = self;
        rows(connection, sql, params, |row| {
            let IdentifierText(task) = row.get(2)?;
            let webhook = WebhookRow {
                key: WebhookKey(row.get(0)?),
                task_key: TaskKey(row.get(1)?),
                task: task.into(),
                owner: names.text(connection, row.get(3)?)?.into(),
                agent: names.text(connection, row.get(4)?)?.into(),
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
            combine(webhook, row)
        })
    }

    /// The routes that a query finds: its columns are the webhook, the endpoint and the owner.
    pub(crate) fn routes(&mut self, sql: &str, params: impl Params) -> rusqlite::Result<Vec<WebhookRoute>> {
        let Self { connection, names } = self;
        rows(connection, sql, params, |row| {
            let owner = names.text(connection, row.get(2)?)?.into();
            Ok(WebhookRoute { webhook: WebhookKey(row.get(0)?), owner, endpoint: row.get(1)? })
        })
    }
}
