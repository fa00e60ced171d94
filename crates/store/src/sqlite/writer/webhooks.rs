//! Webhook rows: set with an append, paused, resumed, deleted, and evicted with their task.
//!
//! What an append does about its webhook is planned before anything is written, like everything that can refuse it.

use rusqlite::{OptionalExtension, params};
use switchboard_a2a::Timestamp;
use switchboard_engine::ids::TaskKey;
use switchboard_engine::store::webhooks::{NewWebhook, WebhookKey, WebhookState};
use switchboard_engine::store::{Append, Phase, RowState, StoreError};

use super::append::AppendFailure;
use super::session::Session;
use crate::sqlite::columns::webhook_state_number;

/// What an append does about webhooks.
pub(crate) enum WebhookPlan<'a> {
    Nothing,
    /// The task ends hidden, and no endpoint may be told about it.
    DeleteAll,
    Insert {
        new: &'a NewWebhook,
    },
    Replace {
        key: i64,
        new: &'a NewWebhook,
        /// It was finished or disabled, and begins again.
        again: bool,
    },
}

impl Session<'_> {
    /// Refuses one webhook too many. `task` is its key and number of webhooks, unless the append creates it; `row` is the
    /// row after the append.
    pub(crate) fn plan_webhook<'a>(
        &mut self,
        task: Option<(TaskKey, i64)>,
        row: &RowState,
        append: &'a Append,
    ) -> Result<WebhookPlan<'a>, AppendFailure> {
        let count = task.map_or(0, |(_, count)| count);
        if row.hidden && row.phase == Phase::Done {
            return Ok(if count > 0 { WebhookPlan::DeleteAll } else { WebhookPlan::Nothing });
        }
        let Some(new) = &append.sides.webhook else { return Ok(WebhookPlan::Nothing) };
        let same = match task {
            Some((task, 1..)) => self.webhook_by_name(task, &new.id)?,
            _ => None,
        };
        if same.is_none() && usize::try_from(count).is_ok_and(|count| count >= new.max) {
            return Err(AppendFailure::Refused(StoreError::TooManyWebhooks { max: new.max }));
        }
        Ok(match same {
            None => WebhookPlan::Insert { new },
            Some((key, state)) => {
                let again = state > webhook_state_number(WebhookState::Paused);
                WebhookPlan::Replace { key, new, again }
            }
        })
    }

    /// Carries out the plan, once the task's row is there.
    pub(crate) fn write_webhook(&mut self, task: i64, plan: WebhookPlan<'_>) -> rusqlite::Result<()> {
        match plan {
            WebhookPlan::Nothing => Ok(()),
            WebhookPlan::DeleteAll => self.delete_webhook_rows(task),
            WebhookPlan::Insert { new } => self.insert_webhook(task, new),
            WebhookPlan::Replace { key, new, again } => {
                // A delivery in another form would be sent under the `webhook-id` of that form.
                let sql = "DELETE FROM delivery WHERE webhook = ?1 AND state = 0 AND replay = 0 \
                           AND (SELECT form FROM webhook WHERE key = ?1) <> ?2";
                self.execute(sql, (key, new.form))?;
                // Setting the same configuration again, as some clients do with every message, keeps the revision.
                let sql = "UPDATE webhook SET config = ?2, endpoint = ?3, form = ?4, \
                           revision = revision + (?6 OR config <> ?2 OR endpoint <> ?3 OR form <> ?4), \
                           moved = iif(?6 OR endpoint <> ?3 OR form <> ?4 \
                               OR iif(json_valid(config), config ->> 'url', config) IS NOT iif(json_valid(?2), ?2 ->> 'url', ?2), \
                               revision + 1, moved), \
                           began_at = iif(form = ?4, began_at, max(began_at + 1, ?5)) WHERE key = ?1";
                self.execute(sql, (key, &new.config, &new.endpoint, new.form, new.at.0, again))?;
                if again {
                    let sql = "UPDATE webhook SET cursor = ?2, late = ?3, state = 0, began_at = max(began_at + 1, ?4) \
                               WHERE key = ?1";
                    self.execute(sql, (key, new.cursor.0.cast_signed(), new.late, new.at.0))?;
                    // A delivery left over from before it was disabled lies before its new beginning.
                    self.execute("DELETE FROM delivery WHERE webhook = ?1 AND state = 0 AND replay = 0", [key])?;
                }
                // The caller may have fixed the endpoint, so the backoff is skipped.
                let sql = "UPDATE delivery SET endpoint = ?2, due_at = min(due_at, ?3), not_before = 0 \
                           WHERE webhook = ?1 AND state = 0";
                self.execute(sql, (key, &new.endpoint, new.at.0))?;
                Ok(())
            }
        }
    }

    fn insert_webhook(&mut self, task: i64, new: &NewWebhook) -> rusqlite::Result<()> {
        let key = self.next_webhook;
        let sql = "INSERT INTO webhook (key, task_key, task, owner, agent, id, config, endpoint, cursor, late, state, began_at, form) \
                   SELECT ?1, key, id, owner, agent, ?3, ?4, ?5, ?6, ?7, 0, ?8, ?9 FROM task WHERE key = ?2";
        let cursor = new.cursor.0.cast_signed();
        self.execute(sql, params![key, task, new.id, new.config, new.endpoint, cursor, new.late, new.at.0, new.form])?;
        self.next_webhook += 1;
        self.execute("UPDATE task SET webhooks = webhooks + 1 WHERE key = ?1", [task]).map(drop)
    }

    fn webhook_by_name(&self, task: TaskKey, id: &str) -> rusqlite::Result<Option<(i64, i64)>> {
        let sql = "SELECT key, state FROM webhook WHERE task_key = ?1 AND id = ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        statement.query_row((task.0, id), |row| Ok((row.get(0)?, row.get(1)?))).optional()
    }

    pub(crate) fn delete_webhook(&mut self, task: TaskKey, id: &str) -> rusqlite::Result<bool> {
        let Some((key, _)) = self.webhook_by_name(task, id)? else { return Ok(false) };
        self.save_highest_webhook_keys()?;
        self.delete_webhook_row(key)?;
        self.execute("UPDATE task SET webhooks = webhooks - 1 WHERE key = ?1", [task.0])?;
        Ok(true)
    }

    fn delete_webhook_rows(&mut self, task: i64) -> rusqlite::Result<()> {
        self.save_highest_webhook_keys()?;
        for key in self.webhooks_of(task)? {
            self.delete_webhook_row(key)?;
        }
        self.execute("UPDATE task SET webhooks = 0 WHERE key = ?1", [task]).map(drop)
    }

    /// When a task is evicted, dead letters and pending replays stay.
    pub(crate) fn evict_webhooks(&mut self, task: i64) -> rusqlite::Result<()> {
        for key in self.webhooks_of(task)? {
            // A body that is not stored can no longer be rendered from the log.
            let sql =
                "DELETE FROM delivery WHERE webhook = ?1 AND (state = 0 AND replay = 0 OR state <> 1 AND body IS NULL)";
            self.execute(sql, [key])?;
            self.delete_if_orphaned(key)?;
        }
        Ok(())
    }

    fn webhooks_of(&self, task: i64) -> rusqlite::Result<Vec<i64>> {
        let mut statement = self.connection.prepare_cached("SELECT key FROM webhook WHERE task_key = ?1")?;
        let keys = statement.query_map([task], |row| row.get(0))?;
        keys.collect()
    }

    /// Deletes the history of a webhook whose task is evicted, and the webhook itself with its last dead letter.
    pub(crate) fn delete_if_orphaned(&self, key: i64) -> rusqlite::Result<()> {
        let sql =
            "SELECT EXISTS (SELECT 1 FROM task JOIN webhook ON webhook.task_key = task.key WHERE webhook.key = ?1)";
        let has_task: bool = self.connection.prepare_cached(sql)?.query_row([key], |row| row.get(0))?;
        if has_task {
            return Ok(());
        }
        self.execute("DELETE FROM delivery WHERE webhook = ?1 AND state = 1", [key])?;
        let sql = "DELETE FROM webhook WHERE key = ?1 AND NOT EXISTS (SELECT 1 FROM delivery WHERE webhook = ?1)";
        self.execute(sql, [key]).map(drop)
    }

    fn delete_webhook_row(&self, key: i64) -> rusqlite::Result<()> {
        self.execute("DELETE FROM delivery WHERE webhook = ?1", [key])?;
        self.execute("DELETE FROM webhook WHERE key = ?1", [key]).map(drop)
    }

    pub(crate) fn set_webhook_state(
        &mut self,
        webhook: WebhookKey,
        state: WebhookState,
        now: Timestamp,
    ) -> rusqlite::Result<bool> {
        match state {
            WebhookState::Active => {
                // There is nothing more to deliver of an evicted task.
                let sql = "UPDATE webhook SET state = 0 WHERE key = ?1 AND state IN (1, 2) \
                           AND EXISTS (SELECT 1 FROM task WHERE task.key = task_key)";
                if self.execute(sql, [webhook.0])? == 0 {
                    return Ok(false);
                }
                let sql = "UPDATE delivery SET held = 0, due_at = ?2 WHERE webhook = ?1 AND state = 0 AND replay = 0";
                self.execute(sql, (webhook.0, now.0))?;
                Ok(true)
            }
            WebhookState::Paused => {
                if self.execute("UPDATE webhook SET state = 1 WHERE key = ?1 AND state = 0", [webhook.0])? == 0 {
                    return Ok(false);
                }
                self.hold_head(webhook.0)?;
                Ok(true)
            }
            WebhookState::Disabled | WebhookState::Finished => Ok(false),
        }
    }

    /// Holds the next delivery until the webhook is active again.
    pub(crate) fn hold_head(&self, webhook: i64) -> rusqlite::Result<()> {
        self.execute("UPDATE delivery SET held = 1 WHERE webhook = ?1 AND state = 0 AND replay = 0", [webhook])
            .map(drop)
    }
}
