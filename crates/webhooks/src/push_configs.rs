//! The push notification config operations of callers: set, get, list, delete. Only the owner of a task sees its webhooks,
//! and a task of another owner looks like one that does not exist.

use switchboard_a2a::{PushConfig, TaskId, Version};
use switchboard_engine::store::StoreError;
use switchboard_engine::store::webhooks::{NewWebhook, WebhookKey, WebhookRow};
use switchboard_engine::{Address, Caller, Error, Seq};
use uuid::Uuid;

use crate::Webhooks;
use crate::config::{Config, invalid};
use crate::metric_definitions as metric;
use crate::outcome::with_hint;

/// The id that some clients use for a webhook they set without one.
const UNNAMED: &str = "default";

impl Webhooks {
    /// Whether webhooks can be set at all.
    pub fn is_enabled(&self) -> bool {
        self.outbox.options.enabled
    }

    /// Validates a configuration that came with a message, to be stored together with it.
    pub async fn prepare(&self, caller: &Caller, version: Version, asked: &PushConfig) -> Result<NewWebhook, Error> {
        let config = Config::read(version, asked)?;
        let lookups = &self.outbox.lookups;
        let permit = lookups.acquire(&caller.id, &lookups.share(&caller.id), 1).await;
        let checked = self.outbox.egress.check(&config.push.url).await;
        drop(permit);
        let target = checked.map_err(|refusal| {
            metrics::counter!(metric::REFUSED).increment(1);
            invalid("url", with_hint(&refusal, Some(&refusal)))
        })?;
        let form = config.form();
        let config = serde_json::to_string(&config).map_err(|error| invalid("url", error.to_string()))?;
        // Version 0.3 sets the one webhook of a task; 1.0 creates another one each time.
        let unnamed = || if version == Version::V03 { String::new() } else { Uuid::now_v7().to_string() };
        Ok(NewWebhook {
            id: asked.id.clone().unwrap_or_else(unnamed),
            config,
            form,
            endpoint: target.origin(),
            cursor: Seq(0),
            late: false,
            max: self.outbox.options.per_task,
            at: self.clock().now(),
        })
    }

    /// Sets a webhook of a task and returns it as callers read it.
    pub async fn set(
        &self,
        address: &Address,
        caller: &Caller,
        version: Version,
        task: &TaskId,
        asked: &PushConfig,
    ) -> Result<PushConfig, Error> {
        // The owner is checked first, so that no caller triggers DNS look-ups with the task of another.
        self.outbox.engine.find(address, caller, task).await?;
        let webhook = self.prepare(caller, version, asked).await?;
        let id = if webhook.id.is_empty() { task.as_str().to_owned() } else { webhook.id.clone() };
        self.outbox.engine.set_webhook(address, caller, task, webhook).await?;
        let config = Config::read(version, asked)?;
        Ok(config.shown(task.as_str(), &id, self.outbox.options.return_secrets))
    }

    /// One webhook of a task; without an id the one named after the task, or else the first.
    pub async fn get(
        &self,
        address: &Address,
        caller: &Caller,
        task: &TaskId,
        id: Option<&str>,
    ) -> Result<PushConfig, Error> {
        let key = self.outbox.engine.find(address, caller, task).await?;
        let store = &self.outbox.store;
        let mut found = store.webhook(key, id.unwrap_or(task.as_str())).await?;
        if found.is_none() && id == Some(UNNAMED) {
            found = store.webhook(key, task.as_str()).await?;
        }
        if found.is_none() && id.is_none() {
            found = store.webhooks(key, WebhookKey(0), 1).await?.into_iter().next();
        }
        let missing = || Error::WebhookNotFound { task: task.clone(), id: id.map(str::to_owned) };
        self.shown(found.ok_or_else(missing)?)
    }

    /// The webhooks of a task after one of them, oldest first, and where the next page begins.
    pub async fn list(
        &self,
        address: &Address,
        caller: &Caller,
        task: &TaskId,
        after: WebhookKey,
        page_size: usize,
    ) -> Result<(Vec<PushConfig>, Option<WebhookKey>), Error> {
        let key = self.outbox.engine.find(address, caller, task).await?;
        let mut rows = self.outbox.store.webhooks(key, after, page_size.saturating_add(1)).await?;
        let next = (rows.len() > page_size).then(|| {
            rows.truncate(page_size);
            rows.last().map_or(after, |last| last.key)
        });
        let configs = rows.into_iter().map(|row| self.shown(row)).collect::<Result<_, _>>()?;
        Ok((configs, next))
    }

    /// Deletes a webhook and its pending deliveries; succeeds if there is none.
    pub async fn delete(&self, address: &Address, caller: &Caller, task: &TaskId, id: &str) -> Result<(), Error> {
        let key = self.outbox.engine.find(address, caller, task).await?;
        let deleted = self.outbox.store.delete_webhook(key, id).await?;
        if !deleted && id == UNNAMED {
            self.outbox.store.delete_webhook(key, task.as_str()).await?;
        }
        Ok(())
    }

    fn shown(&self, row: WebhookRow) -> Result<PushConfig, Error> {
        let config = Config::stored(&row).map_err(|error| {
            tracing::error!(task = %row.task, %error, "the configuration of a webhook cannot be read");
            StoreError::Failed("a webhook is damaged, run `switchboard db check`".to_owned())
        })?;
        Ok(config.shown(row.task.as_str(), &row.id, self.outbox.options.return_secrets))
    }
}
